import pathlib

from bert_tf import heads, modeling
from bert_tf.encoders import albert, families
from tests import tiny_files
from tests.bad_inputs import cases, damaged, matrix

SCRIPT, CASES, RIGHT = cases.read("shrinking")


def _write_classifier(
    folder: pathlib.Path, config: modeling.BertConfig, labels: str = "no yes"
) -> None:
    names = labels.split()
    model = heads.BertClassifier(families.make(config), len(names) or 1)
    tiny_files.write_model(folder, model)
    (folder / "bert_config.json").write_text(config.to_json())
    if names:
        (folder / "labels.txt").write_text("".join(f"{x}\n" for x in names))


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    sizes = tiny_files.CONFIG
    _write_classifier(folder / "model", sizes)
    _write_classifier(folder / "score", sizes, "")
    _write_classifier(folder / "windows", sizes)
    shared = albert.AlbertConfig(
        sizes.vocab_size,
        embedding_size=4,
        num_hidden_layers=3,
        hidden_size=8,
        num_attention_heads=2,
        intermediate_size=16,
    )
    _write_classifier(folder / "shared", shared)
    tiny_files.write_model(folder / "pretrained")
    damaged.write_changed(
        folder / "model",
        folder / "models",
        {"labels_twice": damaged.bytes_in("labels.txt", b"no\nno\n")},
    )
    damaged.write_models(folder)
    rows = "".join(f"the cat sat\t{x}\n" for x in ("no", "yes") * 3)
    table = f"text\tlabel\n{rows}"
    files = {
        "train.tsv": table,
        "three.tsv": table.replace("yes", "perhaps", 1),
        "scores.tsv": b"text\tlabel\nthe cat\t1.5\nthe dog\t2\n",
        "no_label.tsv": table.replace("label", "stars"),
        "other/thesis.txt": "mine",
        "windows/flags.txt": "--long_documents=windows\n--window_stride=7\n",
    }
    damaged.write_files(folder, files)


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
