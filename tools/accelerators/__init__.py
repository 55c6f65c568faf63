"""The training step compiled for GPUs and TPUs on a machine without either."""
