"""Compares byte-pair and SentencePiece tokenizers with reference libraries.

    python -m benchmarks.parity.learned_vocabularies --data=/data \
        --vocab_file=pairs/vocab.json

--vocab_file is learned by learn_vocabulary.py, as described in
../create_pretraining_data.py. The sets, selected by --sets:

- characters: every assigned character alone, doubled, between letters, digits
  and spaces
- text: every line of text/*.txt: naughty strings, emoji, Chinese
- random: strings of mixed scripts
- wikipedia: the first --megabytes of corpus/*.txt, one text per line

Byte pairs are compared with `tokenizers`, and SentencePiece models with
`sentencepiece` after the original's preprocessing, one line at a time. A row
has the number of texts, and the number of texts for which the ids differ
between the reference and the Python tokenizer, the bulk tokenizer, and a
SavedModel in tf.data. If a SentencePiece model scores two segmentations
equally, to 1e-3 or four roundings, sentencepiece decides by the preceding text
in the line, and the graph's op by its own rounding: such ties are counted
separately.
All other counts must be 0; otherwise the exit code is 1.
"""

import dataclasses
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bert_tf import vocabularies
from bert_tf.text import text_graph
from bert_tf.vocabularies import byte_pairs, sentence_pieces
from tests import sample_texts
from tests.vocabularies import sentence_models

import numpy as np
import sentencepiece
import tensorflow as tf
import tokenizers
from absl import app, flags

_SETS = ("characters", "text", "random", "wikipedia")

_DATA = flags.DEFINE_string("data", None, "Folder with text and corpus.")
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file", None, "A vocab.json with its merges.txt, or a spiece.model."
)
_CHOSEN = flags.DEFINE_list("sets", list(_SETS), "Of texts.")
_DO_LOWER_CASE = flags.DEFINE_boolean(
    "do_lower_case", True, "Of sentence pieces."
)
_RANDOM_TEXTS = flags.DEFINE_integer("random_texts", 100_000, "How many.")
_MEGABYTES = flags.DEFINE_float("megabytes", 20.0, "Of Wikipedia.")

_BATCH = 1000
# Scores of lines that differ by less are ties, due to single precision. Sums of
# long lines are rounded more coarsely: up to four of its steps are a tie.
_TIE, _STEPS = 1e-3, 4


# ---- Texts -------------------------------------------------------------------


def texts_of(name: str, data: pathlib.Path) -> list[str]:
    """Returns the texts of a set."""
    if name == "characters":
        return [*map(sample_texts.in_contexts, sample_texts.characters(True))]
    if name == "random":
        return sample_texts.random_texts(11, _RANDOM_TEXTS.value)
    if name == "text":
        return [
            line
            for path in sorted(data.glob("text/*.txt"))
            for line in path.read_text("utf-8").split("\n")
        ]
    lines: list[str] = []
    for path in sorted(data.glob("corpus/*.txt")):
        with path.open(encoding="utf-8", newline="\n") as file:
            lines += file.readlines(int(_MEGABYTES.value * 1e6))
    return lines


# ---- Tokenizers --------------------------------------------------------------

_Reference = Callable[[Sequence[str]], list[list[int]]]


def reference(vocabulary: Any) -> _Reference:
    """Returns the library's own tokenizer."""
    if vocabulary.kind == byte_pairs.BytePairs.kind:
        model = tokenizers.models.BPE(
            dict(vocabulary.ids), list(vocabulary.merges)
        )
        library = tokenizers.Tokenizer(model)
        library.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
            add_prefix_space=False
        )
        return lambda texts: [x.ids for x in library.encode_batch(texts)]
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=vocabulary.model
    )
    return lambda texts: [
        sentence_models.original_ids(processor, x, vocabulary.do_lower_case)
        for x in texts
    ]


def saved(vocabulary: vocabularies.Vocabulary) -> Callable[..., Any]:
    """Returns the graph's tokenizer, loaded from a SavedModel."""
    module = tf.Module()
    module.tokenizer = text_graph.make_tokenizer(vocabulary)
    module.ids = tf.function(
        module.tokenizer.tokenize,
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        return tf.saved_model.load(folder).ids


def in_bulk(
    tokenizer: vocabularies.BulkTokenizer, texts: Sequence[str]
) -> list[list[int]]:
    """Returns the ids of texts from the bulk tokenizer."""
    ids, counts = tokenizer.tokenize(texts)
    return [x.tolist() for x in np.split(ids, np.cumsum(counts)[:-1])]


# ---- Comparison --------------------------------------------------------------


@dataclasses.dataclass
class Counts:
    """Numbers of texts, and examples of unexplained differences."""

    texts: int = 0
    python: int = 0
    bulk: int = 0
    graph: int = 0
    ties: int = 0
    examples: list[str] = dataclasses.field(default_factory=list)

    def __str__(self):
        numbers = self.texts, self.python, self.bulk, self.graph, self.ties
        return " | ".join(f"{x:>9,}" for x in numbers)


class Comparison:
    """All tokenizers of a vocabulary."""

    def __init__(self, vocabulary: Any):
        self._python = vocabulary.tokenizer()
        self._bulk = vocabulary.bulk_tokenizer()
        self._graph = saved(vocabulary)
        self._reference = reference(vocabulary)
        self._scores: list[float] = []
        if vocabulary.kind == sentence_pieces.SentencePieces.kind:
            self._scores = _scores(vocabulary.proto)

    def count(self, texts: Sequence[str]) -> Counts:
        """Tokenizes the texts with all tokenizers."""
        counts = Counts()
        data = tf.data.Dataset.from_tensor_slices(list(texts)).batch(_BATCH)
        batches = _batches(texts)
        for batch, rows in zip(batches, data.map(self._graph), strict=True):
            wanted = self._reference(batch)
            bulk = in_bulk(self._bulk, batch)
            for row in zip(batch, wanted, bulk, rows.to_list(), strict=True):
                self._count(counts, *row)
        return counts

    def _count(
        self,
        counts: Counts,
        text: str,
        wanted: list[int],
        bulk: list[int],
        graph: list[int],
    ) -> None:
        python = self._python.ids(text)
        counts.texts += 1
        is_tie = False
        if self._is_tie(python, wanted):
            is_tie = True
            # Our Python and bulk tokenizers must agree.
            wanted = python
        if self._is_tie(python, graph):
            is_tie = True
            graph = wanted
        counts.ties += is_tie
        wrong = [x != wanted for x in (python, bulk, graph)]
        counts.python += wrong[0]
        counts.bulk += wrong[1]
        counts.graph += wrong[2]
        if any(wrong):
            counts.examples.append(text)

    def _is_tie(self, ours: list[int], theirs: list[int]) -> bool:
        if ours == theirs or not self._scores:
            return False
        sums = [sum(self._scores[x] for x in ids) for ids in (ours, theirs)]
        step = float(np.spacing(np.float32(max(map(abs, sums)))))
        return abs(sums[0] - sums[1]) < max(_TIE, _STEPS * step)


def _scores(proto: Any) -> list[float]:
    """Returns the score of each token; unknown tokens get the min minus 10."""
    kinds = type(proto.pieces[0])
    least = min(x.score for x in proto.pieces if x.type == kinds.NORMAL)
    return [
        least - 10 if x.type == kinds.UNKNOWN else x.score for x in proto.pieces
    ]


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), _BATCH):
        yield list(texts[start : start + _BATCH])


def main(_):
    """Prints a row for each set of texts."""
    if not _DATA.value or not _VOCAB_FILE.value:
        sys.exit("error: give --data, the folder of texts, and --vocab_file.")
    vocabulary = vocabularies.open(_VOCAB_FILE.value, _DO_LOWER_CASE.value)
    print(f"{len(vocabulary.pieces):,} pieces of {vocabulary.kind}")
    print(
        "set        |     texts |    Python |      bulk |     graph |      ties"
    )
    comparison, wrong = Comparison(vocabulary), 0
    for name in _CHOSEN.value:
        start = time.monotonic()
        counts = comparison.count(texts_of(name, pathlib.Path(_DATA.value)))
        seconds = time.monotonic() - start
        print(f"{name:10} | {counts} | {seconds:.0f} s", flush=True)
        for text in counts.examples[:5]:
            print(f"  for example {text[:200]!a}")
        wrong += len(counts.examples)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    app.run(main)
