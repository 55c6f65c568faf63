"""A tiny model for each head: its training run, its export, its answers.

All models share one vocabulary and one config. Their weights are random, and
large enough that different texts get different answers. Runs and exports are
cached by tests/store.py: each is made once for all tests.
"""

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import bert_tf
from bert_tf import heads, modeling, tokenization
from bert_tf.checkpoints import tf1_files
from bert_tf.contrib import left_to_right
from bert_tf.encoders import families
from bert_tf.exporting import runtimes, saved_model
from bert_tf.tasks.features import feature_layers, features_model
from bert_tf.vocabularies import word_pieces
from tests import saved_models, serving_session, store

import keras
import numpy as np
import tensorflow as tf

_WORDS = "a film what ##ever good bad cafe , . 博 o ##δος"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS.split()]
VOCABULARY = word_pieces.WordPiece(tuple(VOCAB), True)
CONFIG = saved_models.config(VOCAB)
LABELS = ["no", "yes, médium", "博"]
TAGS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
LENGTH = 12
# Empty, too long, unknown, multilingual and control characters.
PAIRS = [
    ("What a film.", ""),
    ("Whatever", "good, good Café"),
    ("", "bad"),
    ("good " * 30, ""),
    ("good " * 30, "bad " * 7 + "Film"),
    ("bad\u2028博博 ΟΔΟΣ", "a\u200b \x00film [MASK]"),
    ("", ""),
    ("unheard", " \t"),
]
TEXTS_A, TEXTS_B = map(list, zip(*PAIRS, strict=True))


class Head(NamedTuple):
    """A kind of model.

    Attributes:
        make: Builds the model on an encoder.
        labels: The names of its classes.
        flags: The flags of its training run.
        config: Additional fields of its config.
        kind: The class of its config.
    """

    make: Callable[[Any], keras.Model]
    labels: Sequence[str] = ()
    flags: Sequence[str] = ()
    config: Mapping[str, Any] = {}
    kind: Any = modeling.BertConfig


def _classifier(bert):
    return heads.BertClassifier(bert, len(LABELS))


_SINGLE, _PAIR = ("--text_a_column=a",), ("--text_b_column=b",)
_SPAN = ("--doc_stride=3", "--max_query_length=4", "--n_best_size=5")
# The heads by name, and variants of the classifier and the encoder.
HEADS = {
    "classification": Head(_classifier, LABELS, _PAIR),
    "one text": Head(_classifier, LABELS, _SINGLE),
    "several labels": Head(
        *(_classifier, LABELS, _SINGLE),
        config={"problem_type": modeling.MULTI_LABEL},
    ),
    "regression": Head(lambda bert: heads.BertClassifier(bert, 1), (), _PAIR),
    "score": Head(lambda bert: heads.BertClassifier(bert, 1), (), _SINGLE),
    "tagging": Head(lambda bert: heads.BertTagger(bert, len(TAGS)), TAGS),
    "span": Head(heads.BertSpanFinder, (), _SPAN),
    "multiple_choice": Head(heads.BertMultipleChoice),
    "masked_lm": Head(heads.BertMaskedLM),
    "next_sentence": Head(heads.BertNextSentence),
    "next_piece": Head(
        heads.BertNextPiece, kind=left_to_right.LeftToRightConfig
    ),
    "encoder": Head(lambda bert: bert),
    "tokens": Head(lambda bert: bert),
    "pretraining": Head(heads.BertPretrainer),
}
# Each head that is served.
NAMES = (
    *("classification", "tagging", "span", "multiple_choice"),
    *("masked_lm", "next_sentence", "next_piece", "encoder"),
)


def model(name: str, config: modeling.BertConfig = CONFIG) -> keras.Model:
    """Builds a model of HEADS, always with the same weights."""
    head = HEADS[name]
    if head.config or head.kind is not modeling.BertConfig:
        config = head.kind(**{**dataclasses.asdict(config), **head.config})
    keras.utils.set_random_seed(1)
    return head.make(families.make(config))


def write_run(
    folder: pathlib.Path,
    name: str,
    *flags: str,
    config: modeling.BertConfig = CONFIG,
    vocab: Sequence[str] | Mapping[str, bytes] = VOCAB,
    labels: Sequence[str] | None = None,
) -> pathlib.Path:
    """Writes the files of a training run and returns its folder.

    Args:
        folder: The output folder.
        name: A key of HEADS.
        *flags: Flags of the run in addition to those of the head.
        config: The config of the encoder.
        vocab: WordPiece tokens, or the files of another vocabulary.
        labels: The class names, if not those of HEADS.
    """
    made = model(name, config)
    if not isinstance(vocab, Mapping):
        vocab = {"vocab.txt": ("\n".join(vocab) + "\n").encode()}
    labels = HEADS[name].labels if labels is None else labels
    files = {
        **vocab,
        "bert_config.json": getattr(made, "bert", made).config.to_json(),
        "flags.txt": "\n".join(
            [f"--max_seq_length={LENGTH}", *HEADS[name].flags, *flags, ""]
        ),
        **({"labels.txt": "\n".join([*labels, ""])} if labels else {}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        data = data.encode() if isinstance(data, str) else data
        (folder / file).write_bytes(data)
    prefix = str(folder / "model.ckpt-7")
    tf1_files.write(prefix, {v.path: v.value for v in made.variables})
    tf1_files.write_state(str(folder), [prefix])
    return folder


def run(name: str) -> pathlib.Path:
    """Returns the folder of a training run; do not change it."""

    def make(folder: pathlib.Path) -> None:
        write_run(folder, name)

    return store.made(f"run_{name}".replace(" ", "_"), make)


@functools.cache
def made(name: str) -> saved_model.Export:
    """Returns a model of HEADS as functions of raw text, not saved."""
    if name == "tokens":  # `bert_tf.load` serves vectors of whole texts only.
        return features_model.extractor(
            *(model(name), VOCABULARY, LENGTH),
            *(feature_layers.Choice("last"), "token"),
        )
    found = bert_tf.load(run(name))._made
    assert found is not None
    return found


def exported(
    name: str, export_format: str = "saved_model", weights: str = "float32"
) -> pathlib.Path:
    """Returns the folder of an export, version 1; do not change it."""

    def make(folder: pathlib.Path) -> None:
        runtimes.save(str(folder / "1"), made(name), export_format, weights)

    named = f"{name}_{export_format}_{weights}".replace(" ", "_")
    return store.made(named, make) / "1"


@functools.cache
def loaded(name: str) -> Any:
    """Returns an export loaded with `tf.saved_model.load`."""
    return tf.saved_model.load(str(exported(name)))


@functools.cache
def server(name: str) -> serving_session.Server:
    """Returns an export served by the rules of TensorFlow Serving."""
    return serving_session.Server(exported(name))


def forget() -> bool:
    """Drops loaded models from memory; False if there are none."""
    functions = (made, loaded, server)
    any_loaded = any(x.cache_info().currsize for x in functions)
    for function in functions:
        function.cache_clear()
    return any_loaded


# ---- Reference in Python -----------------------------------------------------


def python_row(
    text_a: str,
    text_b: str = "",
    length: int = LENGTH,
    tokenizer: tokenization.FullTokenizer | None = None,
) -> tuple[list[int], list[int]]:
    """Returns the ids and segments of FullTokenizer, without padding."""
    tokenizer = tokenizer or tokenization.FullTokenizer.from_vocab(
        {piece: index for index, piece in enumerate(VOCAB)}
    )
    first, second = tokenizer.tokenize(text_a), tokenizer.tokenize(text_b)
    while len(first) + len(second) > length - (3 if second else 2):
        (first if len(first) > len(second) else second).pop()
    pieces = ["[CLS]", *first, "[SEP]"]
    segments = [0] * len(pieces)
    if second:
        pieces += [*second, "[SEP]"]
        segments += [1] * (len(second) + 1)
    return tokenizer.convert_tokens_to_ids(pieces), segments


def python_logits(model: keras.Model, *pairs: tuple[str, ...]) -> np.ndarray:
    """Returns the logits [B, C] of each sequence computed alone."""
    found = []
    for pair in pairs:
        ids, segments = python_row(pair[0], "".join(pair[1:]))
        row = {
            "input_ids": tf.constant([ids]),
            "input_mask": tf.ones([1, len(ids)], tf.int32),
            "segment_ids": tf.constant([segments]),
        }
        found.append(model(row).numpy()[0])
    return np.array(found)
