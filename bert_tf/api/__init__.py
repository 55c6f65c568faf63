"""What `import bert_tf` offers to programs: models, answers, a tokenizer.

Raises InputError if Keras computes with another backend than TensorFlow, which
would show as an error of Keras in the first call of a model.
"""

from bert_tf.errors import InputError

import keras

if keras.config.backend() in ("jax", "numpy", "openvino", "torch"):
    raise InputError(
        "bert_tf computes with TensorFlow. Set KERAS_BACKEND=tensorflow, or "
        'backend to "tensorflow" in keras.json, before Keras is imported. '
        f"Received: backend={keras.config.backend()}"
    )
