"""Compares the tokenizers with the original's rules and with transformers.

    pip install -e '.[parity]'
    python -m benchmarks.parity.tokenization --data=/data

With a vocabulary in which each character is a token: every assigned character
in several contexts, and random strings. With the released vocabularies, in
--data: the characters again, every line of glue/*/*.tsv and text/*.txt, and
every context, question and answer of squad/*.json.

The table has the number of texts, and the number of texts for which the Python
tokenizer differs from the original's rules, the graph's tokenizer differs from
the Python one, the offsets do not reproduce the text, transformers'
BertTokenizer differs, and no rule explains the difference. All but the
differences to transformers must be 0; otherwise the exit code is 1. Takes half
an hour.
"""

import collections
import dataclasses
import functools
import itertools
import json
import pathlib
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from bert_tf import tokenization
from bert_tf.text import text_graph
from tests import sample_texts, tokenizer_rules

import tensorflow as tf
import transformers
from absl import app, flags

_DATA = flags.DEFINE_string(
    "data", None, "Folder with vocab, text, glue and squad."
)
_RANDOM_TEXTS = flags.DEFINE_integer(
    "random_texts", 100_000, "How many random strings."
)

RELEASED = {  # Vocabulary -> the released value of do_lower_case.
    "bert_uncased": True,
    "bert_cased": False,
    "bert_multi_cased": False,
    "bert_chinese": True,
}
_BATCH = 1000


# ---- Texts and vocabularies --------------------------------------------------


def characters(every: bool) -> list[str]:
    """Returns the assigned characters in contexts; see `sample_texts`."""
    return [*map(sample_texts.in_contexts, sample_texts.characters(every))]


def files(data_dir: pathlib.Path) -> Iterator[tuple[str, list[str]]]:
    """Yields the name and the texts of every group of files."""
    yield "text", _lines(data_dir.glob("text/*.txt"))
    yield "GLUE", _lines(data_dir.glob("glue/*/*.tsv"))
    texts: dict[str, None] = {}
    for path in data_dir.glob("squad/*.json"):
        for article in json.loads(path.read_text("utf-8"))["data"]:
            for paragraph in article["paragraphs"]:
                texts[paragraph["context"]] = None
                for question in paragraph["qas"]:
                    texts[question["question"]] = None
                    for answer in question["answers"]:
                        texts[answer["text"]] = None
    yield "SQuAD", list(texts)


def _lines(paths: Iterator[pathlib.Path]) -> list[str]:
    # Not splitlines(), which splits at more characters than files do.
    return [
        line
        for path in sorted(paths)
        for line in path.read_text("utf-8").split("\n")
    ]


def spelling_vocab(every: bool) -> dict[str, int]:
    """Returns a vocabulary with every character, so nothing is [UNK]."""
    chars = sample_texts.characters(every)
    pieces = [*tokenization.SPECIAL_TOKENS, *chars]
    pieces += ["##" + char for char in chars]
    return {piece: index for index, piece in enumerate(pieces)}


# ---- Comparison --------------------------------------------------------------


@dataclasses.dataclass
class Counts:
    """Numbers of texts."""

    texts: int = 0
    not_the_originals: int = 0
    not_as_in_the_graph: int = 0
    wrong_offsets: int = 0
    not_transformers: int = 0
    unexplained: int = 0
    explained: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    unproven: list[str] = dataclasses.field(default_factory=list)

    def __str__(self):
        numbers = [
            self.texts,
            self.not_the_originals,
            self.not_as_in_the_graph,
            self.wrong_offsets,
            self.not_transformers,
            self.unexplained,
        ]
        rules = ", ".join(f"{k} {n:,}" for k, n in self.explained.most_common())
        return " | ".join([*(f"{n:>9,}" for n in numbers), rules])


class Comparison:
    """The four tokenizers of one vocabulary."""

    def __init__(self, vocab: Mapping[str, int], do_lower_case: bool):
        self.ours = tokenization.FullTokenizer.from_vocab(vocab, do_lower_case)
        self.original = tokenizer_rules.Tokenizer(vocab, do_lower_case)
        self.theirs = transformers.BertTokenizer(
            vocab=dict(vocab), do_lower_case=do_lower_case
        ).backend_tokenizer
        self.graph = tf.function(
            text_graph.BertTokenizer(list(vocab), do_lower_case).tokenize,
            input_signature=[tf.TensorSpec([None], tf.string)],
        )
        self._words = functools.lru_cache(1 << 20)(self._join_words)

    def count(self, texts: Sequence[str]) -> Counts:
        """Tokenizes the texts with all tokenizers."""
        counts = Counts()
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            in_graph = self.graph(tf.constant(batch)).to_list()
            theirs = self.theirs.encode_batch(batch, add_special_tokens=False)
            for text, ids, encoding in zip(
                batch, in_graph, theirs, strict=True
            ):
                self._count(counts, text, ids, encoding.tokens)
        return counts

    def _count(self, counts, text, ids, theirs):
        ours = self.ours.tokenize(text)
        is_original = self.original.pieces(text) == ours
        is_in_graph = self.ours.convert_tokens_to_ids(ours) == ids
        offsets_hold = self.offsets_hold(text)
        is_theirs = theirs == ours
        rules: tuple[str, ...] = ()
        if not is_theirs:
            rules = tokenizer_rules.explain(self.original, text, theirs)
        is_explained = is_theirs or bool(rules)
        counts.texts += 1
        counts.not_the_originals += not is_original
        counts.not_as_in_the_graph += not is_in_graph
        counts.wrong_offsets += not offsets_hold
        counts.not_transformers += not is_theirs
        counts.unexplained += not is_explained
        counts.explained.update(rules)
        if not (is_original and is_in_graph and offsets_hold and is_explained):
            counts.unproven.append(text)

    def offsets_hold(self, text: str) -> bool:
        """Whether every token's slice of the text spells the token.

        Also checks that only white space and characters that the tokenizer
        drops are between the slices.
        """
        tokens = self.ours.tokenize_with_offsets(text)
        if [token.text for token in tokens] != self.ours.tokenize(text):
            return False
        end = 0
        is_shared = False
        for token, after in itertools.zip_longest(tokens, tokens[1:]):
            if self._words(text[end : token.start]):
                return False
            shared = text[after.start : token.end] if after else ""
            # Only a single character may be split into several tokens.
            if shared and len(self._words(shared)) < 2:
                return False
            if not self._spells(text, token, is_shared or bool(shared)):
                return False
            is_shared = bool(shared)
            end = token.end
        return not self._words(text[end:])

    def _spells(self, text, token, is_shared):
        """Whether the token's slice of the text spells the token."""
        if token.text == tokenization.UNKNOWN:
            return token.start < token.end
        word = token.text.removeprefix("##") or token.text
        spelled = self._words(text[token.start : token.end])
        # Normalization may reorder marks, such as those of musical notes, while
        # slices keep the text's order.
        if spelled and any(map(unicodedata.combining, word)):
            return True
        # On its own, a sigma is never final.
        word, spelled = (x.replace("ς", "σ") for x in (word, spelled))
        return word in spelled if is_shared else word == spelled

    def _join_words(self, text):
        return "".join(self.ours.basic_tokenizer.tokenize(text))


# ---- Main --------------------------------------------------------------------


def _cases(data_dir):
    """Yields each vocabulary with its texts, in groups."""
    contexts = {"characters": characters(every=True)}
    strings = {"random": sample_texts.random_texts(11, _RANDOM_TEXTS.value)}
    spelling = spelling_vocab(every=True)
    yield "spelling, uncased", spelling, True, contexts | strings
    yield "spelling, cased", spelling, False, contexts | strings
    real = dict(files(data_dir))
    for name, do_lower_case in RELEASED.items():
        vocab = tokenization.load_vocab(data_dir / "vocab" / f"{name}.txt")
        yield name, vocab, do_lower_case, contexts | real


def main(_):
    """Prints a row for each vocabulary and group of texts."""
    if not _DATA.value:
        sys.exit("error: --data must name the folder of the texts.")
    print(
        "vocabulary | texts of | texts | not the original's | not as in the "
        "graph | wrong offsets | not transformers' | unexplained | explained by"
    )
    unproven = 0
    for name, vocab, do_lower_case, groups in _cases(pathlib.Path(_DATA.value)):
        comparison = Comparison(vocab, do_lower_case)
        for group, texts in groups.items():
            counts = comparison.count(texts)
            print(f"{name:17} | {group:10} | {counts}", flush=True)
            for text in counts.unproven[:5]:
                print(f"  for example {text[:200]!a}")
            unproven += len(counts.unproven)
    sys.exit(1 if unproven else 0)


if __name__ == "__main__":
    app.run(main)
