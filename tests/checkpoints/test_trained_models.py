import csv
import dataclasses
import re

from bert_tf import heads, modeling, vocabularies
from bert_tf.checkpoints import formats, opened, tf1_files, trained_models
from bert_tf.flags import flag_values
from bert_tf.server import descriptions
from bert_tf.storage import written_files
from tests import interop_samples as samples

import pytest

_CONFIG = samples.TINY


def test_a_head_over_the_sequence_needs_no_pooler(tmp_path):
    model = heads.BertTagger(modeling.Bert(_CONFIG), 2)
    tensors = {
        v.path: v.value for v in model.variables if "/pooler/" not in v.path
    }
    prefix = str(tmp_path / "model.ckpt-3")
    tf1_files.write(prefix, tensors)
    source = formats.open_checkpoint(prefix)
    trained_models.restore(model, source, "tagging")
    with pytest.raises(ValueError, match="bert/pooler/dense/bias"):
        trained_models.restore(model, source, "classification")


def test_which_checkpoint_is_used(tmp_path):
    def write(prefix):
        head = {"output_weights": [1.0], "output_bias": [1.0]}
        tf1_files.write(str(tmp_path / prefix), head)

    def find(use_best=True):
        found = trained_models.own_checkpoint(str(tmp_path / "run"), use_best)
        return str(found).removeprefix(f"{tmp_path}/")

    (tmp_path / "run").mkdir()
    assert trained_models.own_checkpoint(str(tmp_path / "run"), True) is None
    write("run/model.ckpt-2")
    write("run/model.ckpt-4")
    assert find() == "run/model.ckpt-4"
    (tmp_path / "run" / "best").mkdir()
    write("run/best/model.ckpt-2")
    results = tmp_path / "run" / "best" / "results.json"
    results.write_text('{"global_step": 2}')
    assert find() == "run/best/model.ckpt-2"
    assert find(use_best=False) == "run/model.ckpt-4"


def test_a_head_that_is_there_and_trained(tmp_path):
    def find(**tensors):
        prefix = str(tmp_path / "model.ckpt-1")
        tf1_files.write(prefix, {name: [1.0] for name in tensors})
        source = formats.open_checkpoint(prefix)
        return trained_models.with_trained_head(source, "classification")

    head = {"output_weights": 1, "output_bias": 1}
    with pytest.raises(ValueError, match=r"is not fine-tuned.*--do_train"):
        find(**{"bert/x": 1})
    # Weights alone, as in the original's releases, do not show it.
    assert find(**head).shapes.keys() == head.keys()
    moments = {f"{name}/adam_m": 1 for name in ("bert/x", *head)}
    assert find(**head, **moments).shapes.keys() == head.keys()
    # A run that learned a teacher's layers left the head at random values.
    with pytest.raises(ValueError, match="head that its run did not train"):
        find(**head, **{"bert/x": 1, "bert/x/adam_m": 1})


def test_labels(tmp_path):
    folder = str(tmp_path)
    assert trained_models.read_labels(folder) is None
    trained_models.check_labels(folder, ("a", "b"))
    files = trained_models.ModelFiles(_CONFIG, samples.vocab_files(["x"]), True)
    files.write(folder, ("a b", "c"))
    assert (tmp_path / "vocab.txt").read_text() == "x\n"
    config = str(tmp_path / "bert_config.json")
    assert modeling.BertConfig.from_json_file(config) == _CONFIG
    assert (tmp_path / "labels.txt").read_text() == "a b\nc\n"
    assert trained_models.read_labels(folder) == ("a b", "c")
    trained_models.check_labels(folder, ["a b", "c"])
    for labels, named in (
        *((("c", "a b"), "c, a b"), (None, "none, but a sco")),
        (tuple(map(str, range(99))), ".* 19 and others, 99 in all$"),
    ):
        message = f"other labels: a b, c.*Received: labels={named}"
        with pytest.raises(ValueError, match=message):
            trained_models.check_labels(folder, labels)
    message = "Give its --task_name, or.*Received: task_name=MRPC, labels=0, 1$"
    with pytest.raises(ValueError, match=message):
        trained_models.check_labels(folder, ("0", "1"), "MRPC")
    # As in a run that failed before its first checkpoint.
    files.write(folder, None)
    assert trained_models.read_labels(folder) is None


def test_labels_from_an_editor_of_windows(tmp_path):
    # U+2028 is no line end.
    data = "\ufeffno\r\nyes\u2028\r\n".encode()
    (tmp_path / "labels.txt").write_bytes(data)
    labels = ("no", "yes\u2028")
    assert trained_models.read_labels(str(tmp_path)) == labels
    (tmp_path / "assets").mkdir()
    (tmp_path / "labels.txt").rename(tmp_path / "assets" / "labels.txt")
    assert descriptions.read(str(tmp_path)).labels == labels


def test_heads_that_a_run_did_not_train(tmp_path, monkeypatch):
    """The best weights have no moments, and so the run's newest tell."""
    encoder = {"bert/x": [1.0], "bert/x/adam_m": [0.0]}
    head = {"output_weights": [1.0], "output_bias": [1.0]}
    run, kept = tmp_path / "run", tmp_path / "run" / "best" / "model.ckpt-2"
    kept.parent.mkdir(parents=True)
    tf1_files.write(str(kept), {"bert/x": [1.0], **head})
    tf1_files.write(str(run / "model.ckpt-2"), encoder | head)
    for folder, path in (
        (tmp_path, str(kept)),
        (run, "best/model.ckpt-2"),
        (kept.parent, "model.ckpt-2"),
        (kept.parent, "./model.ckpt-2"),
    ):
        monkeypatch.chdir(folder)
        source = formats.open_checkpoint(path)
        assert not trained_models.is_trained(source, "classification")


def test_files_of_an_earlier_start_go(tmp_path):
    mine = {"mine.txt", "itos.pkl"}  # Runs write neither.
    for name in (*written_files.VOCABULARIES, *mine):
        (tmp_path / name).write_text("of another kind")
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"strip_accents": true}')
    pieces = samples.vocab_files(["[UNK]"])
    files = trained_models.ModelFiles(_CONFIG, pieces, True)
    files.write(str(tmp_path), None)
    assert vocabularies.find(tmp_path) == pieces
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"bert_config.json", "vocab.txt", *mine}


def _source(labels, classes):
    shapes = {"bert/x": (4,), "output_weights": (classes, 4)}
    shapes["output_bias"] = (classes,)
    return opened.Checkpoint(
        "there", "tf1", shapes, lambda _: {}, labels=labels
    )


@pytest.mark.parametrize(
    ("trained", "classes", "labels", "fits"),
    [
        (("a", "b"), 2, ("a", "b"), True),
        (("a", "b"), 2, ("b", "a"), False),
        (("a", "b", "c"), 3, ("a", "b"), False),
        (None, 2, ("a", "b"), True),  # The original's say no labels.
        (None, 3, ("a", "b"), False),
        (("a", "b"), 2, None, False),
        (None, 1, None, True),
    ],
)
def test_a_head_of_other_classes(trained, classes, labels, fits, caplog):
    source = _source(trained, classes)
    found = trained_models.without_other_head(source, labels)
    if fits:
        assert found is source
        trained_models.check_classes(source, labels)
        # Without names, the order is a guess, which is told; a score has none.
        is_guessed = trained is None and labels is not None
        assert ("assuming a, b, in this order" in caplog.text) == is_guessed
        return
    assert set(found.shapes) == {"bert/x"}
    assert set(found.left_over) == {"output_weights", "output_bias"}
    assert "its head is not used" in caplog.text
    with pytest.raises(ValueError, match="there was fine-tuned with"):
        trained_models.check_classes(source, labels)


def test_labels_that_need_quotes_have_those_of_the_flag(tmp_path):
    labels = (",", "a, b", 'say "x"', " c", "d e")
    (tmp_path / "labels.txt").write_text("\n".join(labels) + "\n")
    with pytest.raises(ValueError, match="other labels") as told:
        trained_models.check_labels(str(tmp_path), labels[::-1])
    text = str(told.value)
    named = text.split("other labels: ")[1].split(". Give")[0]
    received = text.split("labels=")[1]
    for found, expected in ((named, labels), (received, labels[::-1])):
        (row,) = csv.reader([found], skipinitialspace=True, strict=True)
        assert tuple(row) == expected
        given = flag_values.Words("labels").parse(found)
        assert given == [label.strip() for label in expected]


def test_labels_to_give_again_are_all_named(tmp_path):
    labels = tuple(f"label{i}" for i in range(37))
    (tmp_path / "labels.txt").write_text("\n".join(labels) + "\n")
    whole = re.escape(", ".join(labels)) + r"\. Give"
    with pytest.raises(ValueError, match=whole):
        trained_models.check_classes(_source(labels, 37), labels[:3])
    with pytest.raises(ValueError, match=whole):
        trained_models.check_labels(str(tmp_path), labels[:3])


def test_one_label_or_several():
    files = trained_models.ModelFiles(
        _CONFIG, samples.vocab_files([]), True
    ).of_problem(True)
    source = dataclasses.replace(_source(("a", "b"), 2), config=files.config)
    with pytest.raises(ValueError, match="Pass --label_separator, which"):
        trained_models.check_classes(source, ("a", "b"))
    trained_models.check_classes(source, ("a", "b"), several=True)
    files = files.of_problem(False)
    source = dataclasses.replace(source, config=files.config)
    trained_models.check_classes(source, ("a", "b"))
    with pytest.raises(ValueError, match=r"one label each.*--label_separator"):
        trained_models.check_classes(source, ("a", "b"), several=True)
    # Models of other libraries may not record it.
    source = dataclasses.replace(source, format="hf")
    trained_models.check_classes(source, ("a", "b"), several=True)


def test_an_encoder_by_itself_has_no_head_to_leave_out():
    source = opened.Checkpoint("there", "tf1", {"bert/x": (4,)}, lambda _: {})
    assert trained_models.without_other_head(source, ("a", "b")) is source
