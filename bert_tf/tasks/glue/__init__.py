"""All of GLUE at once: runs, scores, the submission."""
