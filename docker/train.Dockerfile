# Runs any script on NVIDIA GPUs, or on the CPU: docs/installation.md.
#   make docker-train
#   docker run --rm --gpus all -v /data:/data:ro -v /runs:/runs bert-tf-train \
#     run_classifier --train_file=/data/train.csv --output_dir=/runs/mine ...
# Not on an image with CUDA: the extra `cuda` installs the libraries of the
# version that TensorFlow was built with, and the driver is the host's.
FROM python:3.11-slim

COPY . /src
RUN pip install --no-cache-dir --disable-pip-version-check \
      -c /src/constraints.txt '/src[all,cuda,parquet,viz]' \
 && rm -r /src \
 && useradd --uid 1000 bert \
 && install --directory --owner=bert /data /runs

# What the NVIDIA Container Toolkit adds with --gpus; and a folder for caches
# that any `docker run --user` may write to.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility HOME=/tmp
USER 1000
WORKDIR /runs
VOLUME ["/data", "/runs"]

ENTRYPOINT ["bert-tf"]
# Alone, it lists the scripts.
CMD []
