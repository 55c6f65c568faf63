"""Models with random weights and their files, for tests of checkpoints."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

from bert_tf import (
    heads,
    joint_answers,
    modeling,
    replaced_tokens,
    vocabularies,
)
from bert_tf.checkpoints import (
    formats,
    names,
    opened,
    restoring,
    tf1_files,
)
from bert_tf.encoders import families
from tests import reference

import keras
import numpy as np

_PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on a mat ##s . , dog"
VOCAB = [*_PIECES.split(), *(f"w{i}" for i in range(25))]


def vocab_files(pieces: Sequence[str]) -> vocabularies.Files:
    """Returns WordPiece tokens as a checkpoint's vocabulary files."""
    text = "".join(f"{piece}\n" for piece in pieces)
    return vocabularies.Files("word_pieces", {"vocab.txt": text.encode()})


SMALL: dict[str, Any] = {
    "vocab_size": len(VOCAB),
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 20,
    "type_vocab_size": 2,
}
WIDE = SMALL | {
    "hidden_size": 768,
    "num_hidden_layers": 2,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}
# For comparisons without a library, with three heads and token types.
TINY = modeling.BertConfig(
    vocab_size=11,
    hidden_size=4,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
    max_position_embeddings=8,
)
THREES = modeling.BertConfig(
    vocab_size=50,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=16,
    type_vocab_size=3,
)
NUM_LABELS = 3
# Absolute, in float32.
TOLERANCE = 1e-5


def model(head: str, config: modeling.BertConfig) -> keras.Model:
    """Returns our model with a head."""
    kinds: dict[str, Any] = {
        "encoder": lambda bert: bert,
        "pretraining": heads.BertPretrainer,
        "masked_lm": heads.BertMaskedLM,
        "next_sentence": heads.BertNextSentence,
        "replaced_tokens": replaced_tokens.BertReplacedTokens,
        "span": heads.BertSpanFinder,
        "joint_span": joint_answers.BertJointSpanFinder,
        "multiple_choice": heads.BertMultipleChoice,
        "next_piece": heads.BertNextPiece,
        "classification": lambda bert: heads.BertClassifier(bert, NUM_LABELS),
        "tagging": lambda bert: heads.BertTagger(bert, NUM_LABELS),
    }
    return kinds[head](families.make(config))


def random_model(head: str, config: modeling.BertConfig) -> keras.Model:
    """Returns our model with random weights."""
    made = model(head, config)
    randomize(made.variables)
    return made


def spread(kind: str, in_size: int) -> float:
    """Returns a standard deviation that gives activations a realistic size.

    With a much smaller one, the two forms of GELU could not be distinguished.
    """
    small = kind.endswith("embeddings") or kind.startswith("output_")
    return 0.02 if small else in_size**-0.5


def config_of(made: keras.Model) -> modeling.BertConfig:
    return getattr(made, "bert", made).config


def write_tf1(
    folder: pathlib.Path,
    made: keras.Model,
    labels: Sequence[str] = (),
    vocab: Sequence[str] = VOCAB,
) -> str:
    """Writes a model as the original would, and returns the folder."""
    folder.mkdir(exist_ok=True)
    weights = {v.path: v.value for v in made.variables}
    tf1_files.write(str(folder / "bert_model.ckpt"), weights)
    (folder / "bert_config.json").write_text(config_of(made).to_json())
    for name, lines in (("vocab.txt", vocab), ("labels.txt", labels)):
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            (folder / name).write_text(text, encoding="utf-8")
    return str(folder)


def source(
    folder: pathlib.Path,
    made: keras.Model,
    labels: Sequence[str] = (),
    vocab: Sequence[str] = VOCAB,
) -> opened.Checkpoint:
    """Writes a model as the original would, and opens it."""
    return formats.open_checkpoint(write_tf1(folder, made, labels, vocab))


def load(path: str) -> tuple[keras.Model, str]:
    """Returns our model with the weights of a checkpoint, and its head."""
    source = formats.open_checkpoint(path)
    head = names.find_head(source.shapes, source.path)
    assert source.config is not None
    made = model(head, source.config)
    restoring.restore_weights(made.variables, source)
    return made, head


def batch(config: modeling.BertConfig) -> dict[str, np.ndarray]:
    """Returns padded sequences with two segments, up to the max length."""
    inputs = reference.batch(config, rows=3, length=11)
    every = np.tile(np.arange(11, dtype=np.int32), (3, 1))
    return inputs | {"masked_lm_positions": every}


def convert(
    path: str, output_format: str, target: str, head: str | None = None
) -> formats.Written:
    """Writes a checkpoint, or one head of it, in another format."""
    found = formats.open_checkpoint(str(path))
    if head:
        found = formats.with_head(found, head)
    return formats.write(str(target), output_format, found)


def values(path: str) -> dict[str, np.ndarray]:
    """Returns name -> weights, for a checkpoint in any format."""
    found = formats.open_checkpoint(str(path))
    return dict(found.read(list(found.shapes)))


def assert_equal(path: str, other: str) -> None:
    """Asserts that two checkpoints have the same tensors, bit for bit."""
    reference.assert_same(values(path), values(other))


def keras_hub_inputs(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns a batch with the keys of KerasHub."""
    return {
        "token_ids": inputs["input_ids"],
        "padding_mask": inputs["input_mask"],
        "segment_ids": inputs["segment_ids"],
    }


def randomize(variables: Iterable[keras.Variable], seed: int = 0) -> None:
    """Sets variables to random values of a realistic size."""
    rng = np.random.default_rng(seed)
    for variable in variables:
        kind = variable.path.rpartition("/")[2]
        size = spread(kind, variable.shape[0])
        value = rng.normal(0, size, variable.shape)
        if kind.endswith("gamma"):
            value = rng.uniform(0.5, 1.5, variable.shape)
        variable.assign(value)
