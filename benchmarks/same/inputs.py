"""Small inputs for both checkouts in benchmarks/same_as_before.py.

They are cut from the data files of the tests. Nothing here imports bert_tf, so
changes to it cannot change the inputs.
"""

import collections
import itertools
import json
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# Rows of a training file; a third of them for evaluation and prediction.
_ROWS = 150
# Number of lines that exports answer.
LINES = 1000
CONFIG = {
    "vocab_size": 30522,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 128,
    "type_vocab_size": 2,
    # Ten times the usual value, so that different texts get different answers.
    "initializer_range": 0.2,
}


def data_folder() -> pathlib.Path:
    """Returns the folder of test data, in the same way as the tests.

    Raises:
        SystemExit: There is no such folder.
    """
    named = os.environ.get("BERT_TF_TEST_DATA")
    folder = pathlib.Path(named) if named else _ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        raise SystemExit(
            f"There is no folder {folder} of test data. Name another with "
            "BERT_TF_TEST_DATA; docs/contributing.md says what is in it."
        )
    return folder


def write(folder: pathlib.Path, data: pathlib.Path) -> None:
    """Writes all inputs into a new folder."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    _write_texts(folder, data)
    _write_glue(folder, data)
    _write_tables(folder, data)
    _write_squad(folder, data)
    _write_entities(folder, data)
    _write_choices(folder, data)
    _write_questions(folder, data)


# ---- Reading ----------------------------------------------------------------


def _lines(path: pathlib.Path) -> list[str]:
    return path.read_text("utf-8-sig").split("\n")[:-1]


def _column(path: pathlib.Path, name: str) -> list[str]:
    header, *rows = (line.split("\t") for line in _lines(path))
    return [row[header.index(name)] for row in rows]


def sentences(data: pathlib.Path) -> list[str]:
    """Returns the sentences of the dev sets of SST-2 and MRPC."""
    glue = data / "glue"
    return [
        *_column(glue / "SST-2" / "dev.tsv", "sentence"),
        *_column(glue / "MRPC" / "dev.tsv", "#1 String"),
        *_column(glue / "MRPC" / "dev.tsv", "#2 String"),
    ]


def _articles(path: pathlib.Path, size: int) -> Iterator[str]:
    """Yields articles in WikiExtractor's format, about `size` characters."""
    with path.open(encoding="utf-8") as file:
        text = file.read(size)
    return (match[0] for match in re.finditer("(?s)<doc .*?</doc>\n", text))


def _body(article: str) -> str:
    """Returns the paragraphs of an article, without its title."""
    return article.split("\n", 2)[2].removesuffix("</doc>\n").strip()


def _questions(data: pathlib.Path) -> Iterator[tuple[str, str]]:
    squad = json.loads((data / "squad" / "dev-v2.0.json").read_text("utf-8"))
    for article in squad["data"]:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                yield question["question"], paragraph["context"]


# ---- Writing ----------------------------------------------------------------


def _write_lines(path: pathlib.Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _write_jsonl(path: pathlib.Path, rows: list[Any]) -> None:
    _write_lines(path, [json.dumps(row, ensure_ascii=False) for row in rows])


def _write_parts(folder: pathlib.Path, name: str, texts: list[str]) -> None:
    """Writes three files, for two workers."""
    for part in range(3):
        path = folder / f"{name}-{part}.txt"
        path.write_text("".join(texts[part::3]), "utf-8")


def _write_texts(folder: pathlib.Path, data: pathlib.Path) -> None:
    """Writes text for pre-training records, in several formats."""
    found = [line.strip() for line in sentences(data)]
    documents = [
        "".join(f"{line}\n" for line in found[start : start + 8]) + "\n"
        for start in range(0, len(found), 8)
    ]
    _write_parts(folder, "lines", documents)
    english = list(_articles(data / "corpus" / "enwiki_AA.txt", 400_000))
    _write_parts(folder, "wiki", english)
    for part in range(3):
        rows = [{"body": _body(x)} for x in english[part:6:3]]
        _write_jsonl(folder / f"articles-{part}.jsonl", rows)
    chinese = list(_articles(data / "text" / "zhwiki_2mb.txt", 60_000))
    _write_parts(folder, "chinese", chinese)
    # Instead of a dictionary: the most frequent pairs of characters.
    pairs: collections.Counter[str] = collections.Counter()
    for run in re.findall("[\u4e00-\u9fff]+", "".join(chinese)):
        pairs.update(map("".join, itertools.pairwise(run)))
    words = [word for word, _ in pairs.most_common(500)]
    _write_lines(folder / "chinese_words.txt", words)


def _write_glue(folder: pathlib.Path, data: pathlib.Path) -> None:
    for task in ("MRPC", "STS-B"):
        (folder / task).mkdir()
        for split, rows in (
            ("train", _ROWS),
            ("dev", _ROWS // 3),
            ("test", _ROWS // 3),
        ):
            name = f"{split}.tsv"
            lines = _lines(data / "glue" / task / name)[: rows + 1]
            _write_lines(folder / task / name, lines)


def _write_tables(folder: pathlib.Path, data: pathlib.Path) -> None:
    """Writes long texts with no label, one or two labels."""
    articles = _articles(data / "corpus" / "enwiki_AA.txt", 400_000)
    paragraphs = [
        line
        for article in articles
        for line in _body(article).split("\n")
        if len(line) > 200
    ]
    rows = [
        {"text": text, "label": [x for x in "ab" if x in text[:12]]}
        for text in paragraphs
    ]
    _write_jsonl(folder / "labels_train.jsonl", rows[:_ROWS])
    _write_jsonl(folder / "labels_dev.jsonl", rows[_ROWS : _ROWS + 40])


def _write_squad(folder: pathlib.Path, data: pathlib.Path) -> None:
    squad = json.loads((data / "squad" / "dev-v2.0.json").read_text("utf-8"))
    for name, articles in (("train", slice(0, 6)), ("dev", slice(6, 8))):
        cut = [
            {"title": x["title"], "paragraphs": x["paragraphs"][:3]}
            for x in squad["data"][articles]
        ]
        text = json.dumps({"version": "v2.0", "data": cut})
        (folder / f"squad_{name}.json").write_text(text)


def _conll(path: pathlib.Path) -> list[str]:
    """Returns the sentences of a file of words and labels."""
    return re.split(r"\n\s*\n", path.read_text("utf-8").strip())


def _write_entities(folder: pathlib.Path, data: pathlib.Path) -> None:
    wnut17 = data / "ner" / "wnut17"
    found = _conll(wnut17 / "wnut17train.conll")
    train, rest = found[:_ROWS], found[_ROWS:]
    known = set(re.findall(r"\t(\S+)", "\n".join(train)))
    rest = [x for x in rest if set(re.findall(r"\t(\S+)", x)) <= known]
    size = _ROWS // 3
    splits = {
        "train": train,
        "dev": rest[:size],
        "test": rest[size : 2 * size],
        # Has labels that the training file lacks.
        "other": _conll(wnut17 / "emerging.dev.conll")[:size],
    }
    for split, rows in splits.items():
        path = folder / f"entities_{split}.conll"
        path.write_text("\n\n".join(rows) + "\n", "utf-8")


def _choices(data: pathlib.Path) -> list[dict[str, Any]]:
    """Returns the first words of a sentence, and four continuations."""
    found = [x.strip() for x in sentences(data) if len(x.split()) > 6]
    heads = [" ".join(x.split()[:4]) for x in found]
    tails = [" ".join(x.split()[4:]) for x in found]
    return [
        {
            "prompt": head,
            "choices": [tails[(i + k - i % 4) % len(found)] for k in range(4)],
            "label": i % 4,
        }
        for i, head in enumerate(heads)
    ]


def _write_choices(folder: pathlib.Path, data: pathlib.Path) -> None:
    rows = _choices(data)
    _write_jsonl(folder / "choices_train.jsonl", rows[:_ROWS])
    _write_jsonl(folder / "choices_dev.jsonl", rows[_ROWS : _ROWS + 50])


def _write_questions(folder: pathlib.Path, data: pathlib.Path) -> None:
    """Writes inputs for exports, by the names of their inputs: LINES each."""
    found = [x.strip() for x in sentences(data)][:LINES]
    masked = []
    for i, line in enumerate(found):
        words = line.split()
        words[i % len(words)] = "[MASK]"
        masked.append(" ".join(words))
    asked = list(itertools.islice(_questions(data), LINES))
    choices = _choices(data)[:LINES]
    rows = {
        "text": masked,
        "text_a": found,
        "text_b": found[1:] + found[:1],
        "question": [question for question, _ in asked],
        "context": [context for _, context in asked],
        "prompt": [row["prompt"] for row in choices],
        "choices": [row["choices"] for row in choices],
    }
    counts = {name: len(values) for name, values in rows.items()}
    if set(counts.values()) != {LINES}:
        raise SystemExit(f"Too few real lines: {counts}, not {LINES}.")
    (folder / "questions.json").write_text(json.dumps(rows))
    _write_lines(folder / "sentences.txt", found[:100])
    _write_lines(folder / "masked.txt", masked[:100])
    (folder / "no_text.txt").write_bytes(b"Some words.\n\xff\xfe\n")
