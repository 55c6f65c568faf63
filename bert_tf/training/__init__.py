"""The training loop, the hardware it runs on, and its reports."""
