"""BERT for TensorFlow 2: the original's files, flags and numbers.

Importing this package, before TensorFlow is imported, sets three environment
variables unless the user has set them:

- ``TF_ENABLE_ONEDNN_OPTS=1``: on AMD and older Intel processors TensorFlow
  leaves its oneDNN kernels off; with them a training step takes three
  quarters of the time.
- ``KERAS_BACKEND=tensorflow``: the code computes with TensorFlow only.
- ``TF_CPP_MIN_LOG_LEVEL=1``: TensorFlow's notes stay off the user's screen,
  its warnings and errors do not. (TensorFlow 2.21 prints the notes of its
  first second whatever this says.)
"""

import os
import sys

__version__ = "0.1.0"

if "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
