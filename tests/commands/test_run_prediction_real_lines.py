"""Every head of every family on real lines: our script and a stranger.

Weights are random. The vocabularies of byte pairs and sentence pieces are
learned of the lines. The stranger, a process without our package, serves all
heads of a family, as each start takes seconds.
"""

import dataclasses
import functools
import gc
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from bert_tf import vocabularies
from bert_tf.encoders import families
from bert_tf.text import learning_byte_pairs, learning_sentence_pieces
from bert_tf.vocabularies import sentence_pieces
from tests import exports, saved_models, scripts
from tests.commands import test_run_prediction as test_predict

import numpy as np
import pytest

# ---- Lines -------------------------------------------------------------------


_NUMBER = 200


def real_lines(shared_data, head):
    """200 lines of Wikipedia, for a head."""
    path = shared_data / "corpus" / "enwiki_AA.txt"
    lines = []
    with path.open() as file:
        for line in file:
            words = line.split()
            if len(words) > 12 and "<" not in line and "\t" not in line:
                lines.append(words)
            if len(lines) == _NUMBER:
                break
    pieces = [[" ".join(words[:8]), " ".join(words[8:])] for words in lines]
    if head == "masked_lm":
        return [f"{first} [MASK] {rest}" for first, rest in pieces]
    if head in ("tagging", "encoder"):
        return [f"{first} {rest}" for first, rest in pieces]
    if head == "multiple_choice":
        ends = [rest for _, rest in pieces]
        return [
            "\t".join([pieces[i][0], *(ends[i - j] for j in range(3))])
            for i in range(_NUMBER)
        ]
    return ["\t".join(pair) for pair in pieces]


def _columns(head, lines):
    """The inputs of the head's signature, for the same lines."""
    if head in ("masked_lm", "tagging"):
        return {"text": lines}
    if head == "encoder":
        return {"text_a": lines, "text_b": [""] * len(lines)}
    first, *others = zip(*(line.split("\t") for line in lines), strict=True)
    if head == "multiple_choice":
        rows = list(zip(*others, strict=True))
        return {"prompt": first, "choices": rows}
    names = {"span": ("question", "context")}.get(head, ("text_a", "text_b"))
    return dict(zip(names, (first, *others), strict=True))


# Those of lines that are answered one by one.
MODELS = [x for x in exports.NAMES if x != "next_piece"]

# ---- Families ----------------------------------------------------------------


def _byte_pairs(lines: list[str], folder: pathlib.Path) -> vocabularies.Files:
    del folder
    words = learning_byte_pairs.count_words(lines)
    vocabulary = learning_byte_pairs.learn(words, 1000)
    return vocabularies.Files(vocabulary.kind, vocabulary.files)


def _sentence_pieces(
    lines: list[str], folder: pathlib.Path
) -> vocabularies.Files:
    del folder
    words = learning_sentence_pieces.count_words(lines, do_lower_case=True)
    model = learning_sentence_pieces.learn(words, 1000)
    kind = sentence_pieces.SentencePieces.kind
    return vocabularies.Files(kind, {sentence_pieces.FILE: model})


def _released(lines: list[str], folder: pathlib.Path) -> vocabularies.Files:
    del lines
    return vocabularies.open_files(folder / "vocab" / "bert_uncased.txt")


@dataclasses.dataclass(frozen=True)
class _Family:
    """What is tried of a family.

    Attributes:
        vocabulary: Returns that of lines, or one in the folder of real data.
        foreign: The ops of its SavedModels that are not TensorFlow's own.
        chosen: The heads that are not exhaustive: each of one family.
        config: What its config has beside the shape.
        has_pairs: Whether it is pre-trained on two segments.
    """

    vocabulary: Callable[[list[str], pathlib.Path], vocabularies.Files]
    foreign: tuple[str, ...]
    chosen: tuple[str, ...]
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    has_pairs: bool = True

    @property
    def heads(self) -> list[str]:
        """Those of `MODELS` that its models have."""
        return [x for x in MODELS if self.has_pairs or x != "next_sentence"]


_FAMILIES = {
    "bert": _Family(
        *(_released, (saved_models.WORD_PIECES,)),
        ("classification", "multiple_choice"),
        {"type_vocab_size": 2},
    ),
    "roberta": _Family(_byte_pairs, (), ("span", "encoder"), has_pairs=False),
    "distilbert": _Family(
        *(_released, (saved_models.WORD_PIECES,), ()),
        has_pairs=False,
    ),
    "albert": _Family(
        _sentence_pieces,
        (saved_models.SENTENCE_PIECES,),
        ("tagging", "masked_lm"),
        # Both layers have the same weights.
        {"type_vocab_size": 2, "embedding_size": 8},
    ),
}
_SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    # Other texts get other answers.
    "initializer_range": 0.5,
}
_FLAGS = (
    *("--max_seq_length=48", "--doc_stride=16", "--max_query_length=12"),
    "--text_b_column=b",
)


class _Made:
    """The runs of some of a family's heads, their answers and exports."""

    def __init__(
        self,
        name: str,
        heads: Sequence[str],
        data: pathlib.Path,
        folder: pathlib.Path,
    ):
        self._data, self._folder = data, folder
        family = _FAMILIES[name]
        self._files = family.vocabulary(self._lines("encoder"), data)
        vocabulary = vocabularies.read(self._files, True, name)
        size = {"vocab_size": len(vocabulary.pieces)}
        self._config = families.from_values(
            {"model_type": name, **size, **_SHAPE, **family.config}
        )
        self.answers = {head: self._answers(head) for head in heads}
        self.served = saved_models.serve_all_elsewhere(
            folder,
            {head: self._export(head) for head in heads},
            family.foreign,
        )

    def _lines(self, head: str) -> list[str]:
        return real_lines(self._data, head)

    def _answers(self, head: str) -> list[dict[str, Any]]:
        """What run_prediction.py answers, asked of a run."""
        folder = self._folder / head
        run = exports.write_run(
            *(folder / "run", head, *_FLAGS),
            config=self._config,
            vocab=self._files.contents,
        )
        return test_predict.answers(
            *(folder, self._lines(head), f"--model_dir={run}"),
            *("--batch_size=50", "--sort_window=500"),
        )

    def _export(self, head: str) -> saved_models.Asked:
        """Exports the run; returns what is to be asked of it."""
        folder = self._folder / head
        code = scripts.run_here(
            "export_saved_model",
            *(f"--model_dir={folder}/run", f"--export_dir={folder}/export"),
        )
        assert not code
        gc.collect()  # Models are held by cycles.
        columns = _columns(head, self._lines(head))
        return saved_models.Asked(folder / "export", columns)


@pytest.fixture(scope="module")
def made(request, shared_data, tmp_path_factory):
    """Name of a family -> what was made of it, of all heads that run."""
    items = request.session.items
    asked = [x.callspec.params for x in items if x.path == request.path]

    def make(name: str) -> _Made:
        heads = [x["head"] for x in asked if x["name"] == name]
        folder = tmp_path_factory.mktemp(name)
        return _Made(name, heads, shared_data, folder)

    return functools.cache(make)


# ---- Tests -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, head",
    [
        pytest.param(
            *(name, head),
            marks=() if head in row.chosen else pytest.mark.exhaustive,
        )
        for name, row in _FAMILIES.items()
        for head in row.heads
    ],
)
def test_a_stranger_serves_real_lines_as_predicted(made, name, head):
    family = made(name)
    found, served = family.answers[head], family.served[head]
    assert len(found) == _NUMBER
    for i, answer in enumerate(found):
        _check_row(answer, {name: rows[i] for name, rows in served.items()})


def _check_row(answer, row):
    """Compares an answer with what the SavedModel returned."""
    if "masks" in answer:
        assert len(answer["masks"]) == row["count"] == 1
        for name in ("piece", "text"):
            assert [x[name] for x in answer["masks"][0]] == row[name][0]
    elif "entities" in answer:
        for name in ("type", "start", "end", "text"):
            expected = row[name][: row["count"]]
            assert [x[name] for x in answer["entities"]] == expected
    elif "vector" in answer:
        np.testing.assert_allclose(
            answer["vector"], np.ravel(row["vectors"]), atol=1e-5
        )
    else:
        for name in ("label", "choice", "answer", "start", "end"):
            assert answer.get(name) == row.get(name)
        for name in ("is_next", "score"):
            if name in answer:
                assert answer[name] == pytest.approx(row[name], abs=1e-4)
