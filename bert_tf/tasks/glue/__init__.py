"""All of GLUE at once: runs, scores and the submission."""
