"""Compiles the training step for GPUs and TPUs on machines without them."""
