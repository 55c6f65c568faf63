r"""Trains a classifier on your own CSV with Keras, and predicts one text.

The file has a header and the columns `text` and `label`:

    python examples/classify_csv.py reviews.csv \
        uncased_L-12_H-768_A-12/bert_model.ckpt reviews.keras
"""

import argparse
import csv

import bert_tf

import keras
import numpy as np


def read(path):
    """Returns the texts and the labels of a CSV."""
    # Excel begins a CSV in UTF-8 with a byte order mark.
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def main(csv_path, checkpoint, model_path, epochs=3):
    """Trains and evaluates the model, saves it, and predicts one text."""
    texts, names = read(csv_path)
    labels = sorted(set(names))
    ids = np.array([labels.index(name) for name in names])

    # Strings -> tokens -> logits.
    tokenizer = bert_tf.Tokenizer(checkpoint, max_seq_length=128)
    model = bert_tf.BertClassifier.from_checkpoint(checkpoint, labels=labels)
    inputs = tokenizer(texts)

    # Every tenth row is held out.
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
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("csv_path", help="columns text and label")
    parser.add_argument("checkpoint", help="checkpoint of any format")
    parser.add_argument("model_path", help=".keras file to write")
    parser.add_argument("--epochs", type=int, default=3, help="default: 3")
    main(**vars(parser.parse_args()))
