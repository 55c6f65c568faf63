"""Small SentencePiece models, trained on Python's manual."""

import functools
import io
import json
import pathlib
import random
import re
import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from pydoc_data import topics
from typing import Any

from bert_tf import vocabularies
from bert_tf.vocabularies import sentence_pieces

import sentencepiece

# As in the README of ALBERT's repository.
ALBERT: dict[str, Any] = {
    "pad_id": 0,
    "unk_id": 1,
    "bos_id": -1,
    "eos_id": -1,
    "control_symbols": ["[CLS]", "[SEP]", "[MASK]"],
    "user_defined_symbols": list('()"-.–£€'),
}


def pages() -> list[str]:
    """Returns English lines with technical words, from Python's manual.

    Signs in a row, such as underlines, have many equally good segmentations.
    """
    found = "\n".join(topics.topics[name] for name in sorted(topics.topics))
    lines = (line.strip() for line in found.split("\n"))
    return [x for x in lines if not re.search(r"[^\w\s]{2}|<", x)][:6000]


@functools.cache
def lines() -> tuple[str, ...]:
    """Returns English with numbers before commas and other scripts."""
    rng = random.Random(0)
    found = pages()
    found += [f"in {rng.randrange(1990, 2030)}, the end" for _ in range(3000)]
    found += [f"{rng.randrange(100)},000 and {i}," for i in range(2000)]
    found += ["της γλώσσας ο λόγος", "한국어 각각 가나다", "がぎ カタカナ"] * 30
    return tuple(found)


@functools.cache
def train(**changes: Any) -> bytes:
    """Trains a model with ALBERT's options, except for the changes."""
    model = io.BytesIO()
    options: dict[str, Any] = {"vocab_size": 1500, "num_threads": 2}
    options |= ALBERT | changes
    arguments: Any = {
        # Results are cached by arguments, so lists are passed as tuples.
        key: list(value) if isinstance(value, tuple) else value
        for key, value in options.items()
    }
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()),
        model_writer=model,
        minloglevel=2,
        **arguments,
    )
    return model.getvalue()


def vocabulary(do_lower_case: bool = True) -> sentence_pieces.SentencePieces:
    """Returns the vocabulary of the model with ALBERT's options."""
    return sentence_pieces.SentencePieces.parse(
        {"spiece.model": train()}, do_lower_case, "spiece.model"
    )


def original_text(text: str, lower: bool) -> str:
    """Preprocesses text as the original's preprocess_text is described.

    White space becomes single spaces; after NFKD, all combining characters are
    dropped; then the text is lower-cased.
    """
    decomposed = unicodedata.normalize("NFKD", " ".join(text.split()))
    kept = [x for x in decomposed if unicodedata.combining(x) == 0]
    return "".join(kept).lower() if lower else "".join(kept)


def original_ids(processor: Any, text: str, lower: bool) -> list[int]:
    """Returns the ids of the original's encode_pieces, line by line."""
    ids = []
    for piece in processor.encode_as_pieces(original_text(text, lower)):
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            number = piece[:-1].replace("▁", "")
            ids += [*processor.encode_as_ids(number)]
            ids.append(processor.piece_to_id(","))
        else:
            ids.append(processor.piece_to_id(piece))
    return ids


def original(do_lower_case: bool) -> Callable[[str], list[int]]:
    """Returns the original as a function: text -> ids."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=train())
    return lambda text: original_ids(processor, text, do_lower_case)


def open_from(folder: pathlib.Path, model: bytes) -> vocabularies.Vocabulary:
    """Opens a model as a user does."""
    path = folder / "some.model"
    path.write_bytes(model)
    return vocabularies.open(path, do_lower_case=True)


# Sums of scores, in single precision, that differ by less are equal.
_TIE = 1e-3


def are_equally_good(
    vocabulary: sentence_pieces.SentencePieces, *splits: Sequence[int]
) -> bool:
    """Whether segmentations of a text, as ids, have the same total score.

    Tokenizers may then choose different ones. Whether such ties occur depends
    on the model, and the model depends on the text.
    """
    pieces = vocabulary.proto.pieces
    one, other = (sum(pieces[x].score for x in ids) for ids in splits)
    return abs(one - other) < _TIE


# ---- Fairseq -----------------------------------------------------------------

# As in fairseq, whose own tokens are first: id of sentencepiece -> of fairseq.
_FAIRSEQ: dict[str, dict[int, int]] = {
    "xlm-roberta": {0: 3, 1: 0, 2: 2},
    "camembert": {0: 3, 1: 5, 2: 6},
}
_OFFSETS = {"xlm-roberta": 1, "camembert": 4}


@functools.cache
def train_fairseq() -> bytes:
    """Trains a model as that of XLM-R, with the ids of sentencepiece."""
    return train(
        pad_id=-1,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        control_symbols=(),
        user_defined_symbols=(),
    )


def write_fairseq(folder: pathlib.Path, model_type: str) -> pathlib.Path:
    """Writes the files that tell an XLM-R or a CamemBERT."""
    path = folder / "sentencepiece.bpe.model"
    path.write_bytes(train_fairseq())
    size = 1500 - 3 + max(_FAIRSEQ[model_type].values()) + 2
    values = {"model_type": model_type, "vocab_size": size}
    (folder / "config.json").write_text(json.dumps(values))
    return path


@functools.cache
def fairseq_vocabulary(model_type: str) -> vocabularies.Vocabulary:
    """Returns the vocabulary of an XLM-R or a CamemBERT."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_fairseq(pathlib.Path(folder), model_type)
        return vocabularies.open(path, do_lower_case=False)


def fairseq_ids(model_type: str) -> Callable[[str], list[int]]:
    """Returns fairseq's formula: text -> ids."""
    processor = sentencepiece.SentencePieceProcessor(
        model_proto=train_fairseq()
    )
    own, offset = _FAIRSEQ[model_type], _OFFSETS[model_type]
    return lambda text: [own.get(x, x + offset) for x in processor.encode(text)]
