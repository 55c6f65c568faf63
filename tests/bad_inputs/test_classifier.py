import json
import pathlib

from tests import tiny_files
from tests.bad_inputs import cases, damaged, matrix
from tests.vocabularies import byte_pair_samples, sentence_models

SCRIPT, CASES, RIGHT = cases.read("classifier")
_ROBERTA = {
    "model_type": "roberta",
    "vocab_size": 300,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "type_vocab_size": 1,
    "pad_token_id": 1,
}


def _text(rows: int, labels: tuple[str, ...] = ("good", "bad")) -> str:
    words = tiny_files.WORDS
    lines = ["id\ttext\tlabel\tother"]
    for i in range(rows):
        text = f"the {words[2 + i % 12]} sat in rome"
        lines.append(f"{i}\t{text}\t{labels[i % len(labels)]}\ta dog")
    return "".join(f"{line}\n" for line in lines)


def _write_tables(folder: pathlib.Path) -> None:
    good = _text(12)
    lines = good.splitlines(keepends=True)
    row: dict[str, object] = {"id": "0", "text": "the cat", "label": "good"}
    rows = [row, row | {"label": "bad"}, row | {"label": ["good", "bad"]}]
    files: dict[str, object] = {
        "train.tsv": good,
        "dev.tsv": _text(4),
        "test.tsv": b"id\ttext\n0\tthe cat\n1\ta dog\n",
        "scores.tsv": _text(8, ("1", "2.5")),
        "bom.tsv": b"\xef\xbb\xbf" + good.replace("\n", "\r\n").encode(),
        **{f"{x}.tsv": data for x, data in damaged.NO_TEXTS.items()},
        "header.tsv": lines[0],
        "train.tsv.gz": damaged.GZIP,
        "sheet.xlsx": b"PK\x03\x04" + damaged.BINARY,
        "latin_1.tsv": good.replace("cat", "caf\u00e9").encode("latin-1"),
        "utf_16.tsv": good.encode("utf-16"),
        "csv.tsv": good.replace("\t", ","),
        "cut.tsv": good[:-12],
        "label_empty.tsv": _text(4, ("good", "")),
        "label_one.tsv": _text(4, ("good",)),
        "other_labels.tsv": _text(4, ("good", "so")),
        "spam": b"ham\tsome\nham\ttext\n",
        "array.json": json.dumps([row] * 8),
        "no_key.jsonl": b'{"text": "the cat"}\n',
        "sets.jsonl": damaged.lines(map(json.dumps, rows)),
        "vectors.txt": "the 1 2\ncat 3 4\n",
        "vectors_wide.txt": "the 1 2 3\ncat 4 5 6\n",
        "vectors_cut.txt": "the 1 2\ncat 3",
        "vectors_other.txt": "le 1 2\nchat 3 4\n",
        "roberta.json": _ROBERTA,
        "one_type.json": json.loads(tiny_files.CONFIG.to_json())
        | {"type_vocab_size": 1},
        "spiece.model": sentence_models.train(),
        "dangling.tsv": damaged.Link("gone.tsv"),
        "pipe.tsv": damaged.PIPE,
        "tables/predictions.jsonl": damaged.Same("sets.jsonl"),
        "hard/eval.tf_record": damaged.Same("train.tsv"),
        "others/flags.txt": "# python run_ner.py\n",
    }
    damaged.write_files(folder, files)
    student = {
        "model_type": "textcnn",
        "vocab_size": len(tiny_files.VOCAB),
        "embedding_size": 2,
        "hidden_size": 6,
        "max_position_embeddings": 32,
    }
    files = {
        "textcnn.json": student,
        "textcnn_heads.json": student | {"num_attention_heads": 2},
        "textcnn_wide.json": student | {"embedding_size": 9},
    }
    damaged.write_files(folder, files)
    byte_pair_samples.write(folder, 300)


def _write_tasks(folder: pathlib.Path) -> None:
    header = "index\tsentence1\tsentence2"

    def pairs(*labels: str) -> str:
        rows = (f"{i}\ta\tb\t{x}\n" for i, x in enumerate(labels))
        return f"{header}\tlabel\n{''.join(rows)}"

    rte = pairs(*["entailment", "not_entailment"] * 4)
    mnli = pairs(*["entailment", "neutral", "contradiction"] * 3)
    mnli = mnli.replace("label", "gold_label")
    xnli = "language\tgold_label\tsentence1\tsentence2\n"
    translated = "premise\thypo\tlabel\n" + "a\tb\tneutral\n" * 4
    for name, text in {
        "glue/RTE/train.tsv": rte,
        "glue/RTE/dev.tsv": rte,
        "no_dev/train.tsv": rte,
        "label/train.tsv": pairs("entailment", "perhaps"),
        "label/dev.tsv": rte,
        "short/train.tsv": "Quality\t#1 String\t#2 String\n1\tx\n",
        "short/dev.tsv": "Quality\t#1 String\t#2 String\n1\tx\n",
        "mnli/train.tsv": mnli,
        "mnli/dev_matched.tsv": mnli,
        "mnli/test_matched.tsv": f"{header}\n0\ta\tb\n",
        "wnli/train.tsv": pairs("1"),
        "wnli/dev.tsv": pairs("1"),
        "wnli/test.tsv": f"{header}\n0\ta\tb\n",
        "xnli/xnli.dev.tsv": f"{xnli}zh\tneutral\ta\tb\n",
        "xnli/xnli.test.tsv": f"{xnli}zh\tneutral\ta\tb\n",
        **{
            f"xnli/multinli/multinli.train.{x}.tsv": translated
            for x in ("zh", "de", "fr")
        },
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def write_data(folder: pathlib.Path) -> None:
    """Writes all inputs."""
    damaged.write_models(folder)
    _write_tables(folder)
    _write_tasks(folder)
    matrix.make(SCRIPT, folder, folder / "run")
    _write_teachers(folder)
    labels = "labels.txt"
    damaged.write_changed(
        folder / "run",
        folder / "runs",
        {
            "binary": damaged.bytes_in(labels, damaged.BINARY),
            "lfs": damaged.bytes_in(labels, damaged.LFS),
            "empty": damaged.bytes_in(labels, b""),
            "folder": _folder_of_labels,
            "results": lambda run: (run / "test_results.tsv").mkdir(),
            "kept": _best_alone,
            "examples": damaged.bytes_in(
                "train_examples.json", b'{"records": 7, "sha256": "0"}'
            ),
            "stripped": lambda run: damaged.rename_tensors(
                run, lambda name: "" if "/adam_" in name else name
            ),
            "cut": _cut_weights,
        },
    )
    damaged.write_changed(
        folder / "run",
        folder / "models",
        {
            "no_labels": damaged.without(labels),
        },
    )


def _best_alone(run: pathlib.Path) -> None:
    for path in (*run.glob("model.ckpt-*"), run / "checkpoint"):
        path.unlink()


def _folder_of_labels(run: pathlib.Path) -> None:
    (run / "labels.txt").unlink()
    (run / "labels.txt").mkdir()


def _cut_weights(run: pathlib.Path) -> None:
    for path in run.glob("model.ckpt-*.data*"):
        damaged.cut(path)


def _other_piece(folder: pathlib.Path) -> None:
    path = folder / "best" / "vocab.txt"
    path.write_text(path.read_text().replace("\ncat\n", "\ncow\n"))


def _cased(folder: pathlib.Path) -> None:
    path = folder / "flags.txt"
    path.write_text(path.read_text().replace("case=true", "case=false"))


def _write_teachers(folder: pathlib.Path) -> None:
    """Writes teachers and students, after there is a run."""
    damaged.write_changed(
        folder / "run",
        folder / "teachers",
        {
            "pieces": _other_piece,
            "cased": _cased,
            "no_vocab": damaged.without("best/vocab.txt"),
            "no_config": damaged.without("best/bert_config.json"),
        },
    )
    (folder / "students").mkdir()
    for name, change in (
        ("deep", {"num_hidden_layers": 3}),
        ("heads", {"num_attention_heads": 4}),
        ("bilstm", {"model_type": "left_to_right_bilstm"}),
    ):
        values = json.loads(tiny_files.CONFIG.to_json()) | change
        (folder / "students" / f"{name}.json").write_text(json.dumps(values))


data = matrix.inputs(write_data)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
