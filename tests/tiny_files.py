"""Tiny models in files: config, vocabulary and weights."""

import pathlib
import random

from bert_tf import heads, modeling
from bert_tf.checkpoints import tf1_files

import keras
import numpy as np
import tensorflow as tf

_LINE = (
    "the a cat dog bird fish sat ran sees sings red blue old new in on is was "
    "he she it said so yes no rome paris anna bob 0 1 2 3 . , ? ! ##s ##ing"
)
WORDS = _LINE.split()
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
CONFIG = modeling.BertConfig(
    vocab_size=len(VOCAB),
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=32,
    type_vocab_size=2,
)


def write_files(
    folder: pathlib.Path, config: modeling.BertConfig = CONFIG
) -> None:
    """Writes vocab.txt and bert_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{x}\n" for x in VOCAB))
    (folder / "bert_config.json").write_text(config.to_json())


def write_documents(path: pathlib.Path) -> None:
    """Writes 30 documents with one sentence per line."""
    rng = random.Random(0)
    documents = [
        "\n".join(
            " ".join(rng.choices(WORDS[:-2], k=rng.randint(3, 30)))
            for _ in range(rng.randint(1, 60))
        )
        for _ in range(30)
    ]
    path.write_text("\n\n".join(documents))


def write_model(
    folder: pathlib.Path,
    model: keras.Model | None = None,
    name: str = "bert_model.ckpt",
) -> None:
    """Writes a model in the released format: config, vocabulary, weights.

    Args:
        folder: Folder of the files.
        model: The model; by default one for pre-training, with random weights.
        name: Name of the checkpoint.
    """
    write_files(folder)
    keras.utils.set_random_seed(1)
    model = model or heads.BertPretrainer(modeling.Bert(CONFIG))
    weights = {v.path: tf.convert_to_tensor(v.value) for v in model.variables}
    tensors = {**weights, "global_step": np.int64(0)}
    tf1_files.write(str(folder / name), tensors)
