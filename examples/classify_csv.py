"""Trains a classifier on your own CSV, and asks it.

The file has a header and two columns, `text` and `label`:

    python examples/classify_csv.py reviews.csv \
        uncased_L-12_H-768_A-12/bert_model.ckpt reviews.keras
"""

import csv
import sys

import bert_tf

import keras
import numpy as np


def read(path):
    """Returns the texts and the labels of a CSV."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def main(csv_path, checkpoint, model_path, epochs=3):
    """Trains, says how well, writes the model, and asks it a text."""
    texts, names = read(csv_path)
    labels = sorted(set(names))
    ids = np.array([labels.index(name) for name in names])

    # Strings -> word pieces -> logits.
    tokenizer = bert_tf.Tokenizer(checkpoint, max_seq_length=128)
    model = bert_tf.BertClassifier.from_checkpoint(checkpoint, labels=labels)
    inputs = tokenizer(texts)

    # A tenth is held out: every tenth row, whatever their order.
    is_dev = np.arange(len(texts)) % 10 == 9
    train, dev = (
        ({name: np.array(x)[rows] for name, x in inputs.items()}, ids[rows])
        for rows in (~is_dev, is_dev)
    )
    model.compile(
        keras.optimizers.AdamW(2e-5),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(*train, validation_data=dev, epochs=epochs, batch_size=32)
    model.save(model_path)

    best = model.predict(tokenizer(texts[:1]), verbose=0).argmax(-1)[0]
    print(f"{texts[0]!r} is {labels[best]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
