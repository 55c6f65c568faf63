"""Predicts raw sentences with a SavedModel, without this project's code.

    python examples/quickstart/predict.py runs/quickstart/fine_tuned/export

Only TensorFlow and tensorflow-text are needed.
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the tokenizer's op)

_SENTENCES = (
    "Wait until the other worker thread has released the lock.",
    "Send a request to the server and read the headers of its response.",
    "Return the square root of the sum, rounded to the nearest integer.",
)


def main(folder: str) -> None:
    """Prints the label of each sentence and its probability."""
    predict = tf.saved_model.load(folder).signatures["serving_default"]
    outputs = predict(text_a=tf.constant(_SENTENCES))
    rows = zip(
        _SENTENCES,
        outputs["label"].numpy(),  # [B]
        outputs["probabilities"].numpy(),  # [B, C]
        strict=True,
    )
    for sentence, label, probabilities in rows:
        print(f"  {label.decode():<12} {max(probabilities):4.0%}  {sentence}")
    if "bert_tf" in sys.modules:
        sys.exit("error: the SavedModel should not need bert_tf")


if __name__ == "__main__":
    main(sys.argv[1])
