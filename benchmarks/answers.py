r"""Compares the answers of all exports of every head on real lines.

    pip install -e '.[litert,onnx]'
    python -m benchmarks.answers --vocab_file=/data/bert_uncased.txt \
        --glue_dir=$GLUE_DIR --squad_file=/data/dev-v1.1.json \
        --ner_file=/data/wnut17/train.conll

Each head gets random weights that give different answers to different lines,
and runs on --lines lines: sentences of SST-2 (one in seven words masked, for
masked words), pairs of MRPC, questions of SQuAD, sentences of an NER file, and
sentences of SST-2 as choices. The reference is the model in the form in which
it is trained. It is compared with exports in all formats, in float32 and int8.
Prints a row for each export: the fraction of lines with equal labels, texts and
positions; for these lines, the largest difference of a number (a probability;
for vectors, one of their values; for spans, a score, which is a sum of two
logits); the number of lines with distinct answers; and seconds.

Exits with 1 if an export in float32 has a different label, or differs from the
model by more than 1e-5 (for the score of a span, relative to its size).
"""

import csv
import functools
import itertools
import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import bert_tf
from bert_tf import heads, modeling, options, vocabularies
from bert_tf.api import predictor
from bert_tf.exporting import inference, quantized, runtimes, saved_model
from bert_tf.serving import serving_model
from bert_tf.tasks import next_sentence_model
from bert_tf.tasks.features import feature_layers, features_model
from bert_tf.tasks.masked_words import masked_words_model
from bert_tf.tasks.multiple_choice import choice_model
from bert_tf.tasks.squad import (
    squad_model,
    squad_options,
)
from bert_tf.tasks.tagging import tagging_model

import keras
import numpy as np
from absl import app, flags

_VOCAB_FILE = flags.DEFINE_string("vocab_file", None, "Uncased.", required=True)
_GLUE_DIR = flags.DEFINE_string(
    "glue_dir", None, "With SST-2 and MRPC.", required=True
)
_SQUAD_FILE = flags.DEFINE_string("squad_file", None, "JSON.", required=True)
_NER_FILE = flags.DEFINE_string("ner_file", None, "CoNLL.", required=True)
_LINES = flags.DEFINE_integer("lines", 1000, "Of each head.", 1)
_HEADS = flags.DEFINE_list("heads", [], "Which; by default all.")
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Lines at a time.", 1)
_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "Tokens per row.", 16)
_CLOSE = 1e-5
_TAGS = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


# ---- Lines ------------------------------------------------------------------


def _column(name, *columns):
    """Returns the columns of a task's training file, row by row."""
    path = os.path.join(_GLUE_DIR.value, name, "train.tsv")
    with open(path, encoding="utf-8-sig", newline="") as rows:
        found = csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [tuple(row[x] for x in columns) for row in found]


def sentences():
    """Returns sentences of SST-2."""
    return [text for (text,) in _column("SST-2", "sentence")]


def pairs():
    """Returns pairs of MRPC."""
    return _column("MRPC", "#1 String", "#2 String")


def masked():
    """Returns sentences of SST-2 with some words masked."""
    generator = np.random.default_rng(5)
    found = []
    for text in sentences():
        words = np.array(text.split(), object)
        words[generator.random(len(words)) < 1 / 7] = "[MASK]"
        if "[MASK]" in words:
            found.append(" ".join(words))
    return found


def choices():
    """Returns sentences of SST-2, each with the next four as choices."""
    texts = sentences()
    return [
        (texts[i], texts[i + 1 : i + 5]) for i in range(0, len(texts) - 5, 5)
    ]


def questions():
    """Returns questions of SQuAD, and their contexts."""
    data = json.loads(pathlib.Path(_SQUAD_FILE.value).read_text("utf-8"))
    paragraphs = itertools.chain.from_iterable(
        article["paragraphs"] for article in data["data"]
    )
    return [
        (each["question"], paragraph["context"])
        for paragraph in paragraphs
        for each in paragraph["qas"]
    ]


def tagged():
    """Returns sentences of an NER file, words separated by spaces."""
    text = pathlib.Path(_NER_FILE.value).read_text("utf-8")
    rows = [x.split("\n") for x in text.split("\n\n") if x.strip()]
    return [
        " ".join(line.split()[0] for line in row if line.strip())
        for row in rows
    ]


# ---- Models -----------------------------------------------------------------

# Forms of a model: as in training, in float32 or in int8.
_WAYS: Mapping[str, Callable[[Any], Any]] = {
    "trained": inference.AsTrained,
    "float32": inference.make_inference_model,
    "int8": lambda model: inference.make_inference_model(
        model, weights=quantized.Int8()
    ),
}


def _bert(vocabulary):
    config = modeling.BertConfig(
        vocab_size=len(vocabulary.pieces),
        hidden_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=512,
        # Makes answers vary.
        initializer_range=0.2,
    )
    keras.utils.set_random_seed(1)
    return modeling.Bert(config)


def _classifier(takes_pairs, bert, of, vocabulary):
    model = of(heads.BertClassifier(bert, 3))
    labels = ("no", "maybe", "yes")
    common = bert.config, vocabulary, labels, _LENGTH.value
    return saved_model.classifier(model, *common, takes_pairs)


def _span(bert, of, vocabulary):
    return squad_model.span_finder(
        of(heads.BertSpanFinder(bert)),
        bert.config,
        vocabulary,
        squad_options.Layout(_LENGTH.value, 64, 32),
        squad_options.Search(20, 30, False),
        None,
    )


def _features(bert, of, vocabulary):
    choice = feature_layers.Choice("last")
    return features_model.extractor(
        of(bert), vocabulary, _LENGTH.value, choice, "mean"
    )


def _other(head, make, *more):
    """Returns a builder of exports for a head with extra arguments."""

    def of_bert(bert, of, vocabulary):
        return make(of(head(bert)), bert.config, vocabulary, *more)

    return of_bert


def kinds():
    """Returns the builder of the export and the lines of each head."""
    length = _LENGTH.value
    return {
        "sentences": (functools.partial(_classifier, False), sentences),
        "pairs": (functools.partial(_classifier, True), pairs),
        "next sentence": (
            _other(
                heads.BertNextSentence,
                next_sentence_model.next_sentence,
                length,
            ),
            pairs,
        ),
        "tagging": (
            _other(
                lambda bert: heads.BertTagger(bert, len(_TAGS)),
                tagging_model.tagger,
                *(_TAGS, "BIO", length),
            ),
            tagged,
        ),
        "span": (_span, questions),
        "multiple choice": (
            _other(heads.BertMultipleChoice, choice_model.chooser, length),
            choices,
        ),
        "masked words": (
            _other(
                heads.BertMaskedLM,
                masked_words_model.masked_words_finder,
                *(length, 3),
            ),
            masked,
        ),
        "features": (_features, sentences),
    }


# ---- Answers ----------------------------------------------------------------


def _parted(answer):
    """Splits an answer into text, which must be equal, and numbers."""
    numbers = []

    def kept(value):
        if isinstance(value, Mapping):
            return {name: kept(x) for name, x in value.items()}
        if isinstance(value, list | tuple | np.ndarray):
            return [kept(x) for x in value]
        if isinstance(value, float | np.floating):
            numbers.append(float(value))
            return "number"
        return value

    said = json.dumps(kept(answer), sort_keys=True, default=str)
    return said, np.array(numbers)


def _answers(model, lines):
    found = [_parted(answer) for answer in model(lines)]
    return [said for said, _ in found], [numbers for _, numbers in found]


def compare(found, expected, is_score):
    """Returns the fraction of equal labels, and the max difference there.

    For scores, the difference is relative to values above 1.
    """
    equal, largest = 0, 0.0
    for said, numbers, theirs, exact in zip(*found, *expected, strict=True):
        equal += said == theirs
        if said == theirs and numbers.size:
            size = np.maximum(np.abs(exact), 1) if is_score else 1
            largest = max(largest, np.max(np.abs(numbers - exact) / size))
    return equal / len(found[0]), largest


def _saved(make, path, export_format, kept):
    """Writes a model, and returns it after loading."""
    # Other runtimes quantize the float32 model.
    is_tensorflow = export_format == "saved_model"
    made = make(_WAYS[kept if is_tensorflow else "float32"])
    runtimes.save(path, made, export_format, kept)
    return bert_tf.load(path, batch_size=_BATCH_SIZE.value)


def measure(name, make, lines):
    """Prints a row for each export; returns whether float32 ones agree."""
    made = make(_WAYS["trained"])
    model = serving_model.of_export(made)
    trained = predictor.Predictor(name, model, made.files, _BATCH_SIZE.value)
    expected = _answers(trained, lines)
    agree = True
    for export_format, kept in itertools.product(
        options.EXPORT_FORMATS, options.EXPORT_WEIGHTS
    ):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "1")
            loaded = _saved(make, path, export_format, kept)
            began = time.perf_counter()
            found = _answers(loaded, lines)
            seconds = time.perf_counter() - began
        equal, largest = compare(found, expected, name == "span")
        agree &= kept != "float32" or (equal == 1 and largest <= _CLOSE)
        row = f"{equal:.4f}", f"{largest:.1e}", str(len(set(expected[0])))
        print(
            "\t".join((name, export_format, kept, *row, f"{seconds:.1f}")),
            flush=True,
        )
    return agree


def main(_):
    """Compares all requested heads."""
    vocabulary = vocabularies.open(_VOCAB_FILE.value, do_lower_case=True)
    print("head\tformat\tweights\tequal\tlargest\tkinds\tseconds")
    agree = True
    for name, (make, lines) in kinds().items():
        if _HEADS.value and name not in _HEADS.value:
            continue
        asked = lines()[: _LINES.value]
        print(f"{name}: {len(asked)} lines", file=sys.stderr)

        def of_way(way, make=make):
            return make(_bert(vocabulary), way, vocabulary)

        agree &= measure(name, of_way, asked)
    if not agree:
        raise SystemExit("Exports in float32 answer otherwise than the model.")


if __name__ == "__main__":
    app.run(main)
