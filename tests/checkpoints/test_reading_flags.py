"""The notes on flags of a run that a written checkpoint does not keep."""

import dataclasses

from bert_tf import modeling
from bert_tf.checkpoints import formats, names, opened, reading_flags
from bert_tf.seq2seq import seq2seq_options
from bert_tf.tasks.squad import squad_options
from tests import exports
from tests import interop_samples as samples
from tests.huggingface_models import transformers

import pytest

_CONFIG = modeling.BertConfig(**samples.SMALL)
_SPAN = (
    "--max_seq_length=384 --doc_stride=64 --max_query_length=64 "
    "--version_2_with_negative=true --null_score_diff_threshold=auto"
)


@pytest.mark.parametrize(
    ("head", "run", "output_format", "expected"),
    [
        (
            "span",
            _SPAN,
            "tf1",
            "--doc_stride=64 --version_2_with_negative=true "
            "--null_score_diff_threshold=-1.5",
        ),
        ("tagging", "--max_seq_length=64", "hf", "--max_seq_length=64"),
        ("tagging", "--scheme=IOB1", "keras_hub", "--scheme=IOB1"),
        ("classification", "--max_seq_length=9", "tf1", "--max_seq_length=9"),
        ("classification", "--long_documents=head", "tf1", None),
        ("classification", "--do_train=false --max_seq_length=9", "tf1", None),
    ],
)
def test_flags_of_a_run(head, run, output_format, expected, tmp_path):
    found = _notes(head, run, output_format, tmp_path)
    kind = "A TF1 checkpoint" if output_format == "tf1" else "The folder"
    assert found == [
        f"{kind} does not keep how its text is read: give scripts {expected}."
    ] * bool(expected)


def test_defaults_are_those_of_the_options():
    for head, made in (
        ("span", (squad_options.Layout, squad_options.Search)),
        ("joint_span", (squad_options.Layout, squad_options.JointSearch)),
        ("seq2seq", (seq2seq_options.Generation,)),
    ):
        fields = [field for x in made for field in dataclasses.fields(x)]
        defaults = {field.name: field.default for field in fields}
        found = dict(reading_flags.DEFAULTS[head])
        others = {name: found.pop(name) for name in found.keys() - defaults}
        assert found == defaults
        assert others in (
            {"null_score_diff_threshold": 0.0},
            {"max_seq_length": None},
        )


def test_flags_that_only_training_takes(tmp_path):
    run = "--long_documents=windows --window_stride=5"
    (note,) = _notes("classification", run, "hf", tmp_path)
    assert f"was trained with {run}, which only" in note


@pytest.mark.slow
def test_transformers_reads_the_tail_of_long_texts(tmp_path):
    exports.write_run(tmp_path / "run", "one text", "--long_documents=tail")
    source = formats.open_checkpoint(str(tmp_path / "run"))
    written = formats.write(str(tmp_path / "hf"), "hf", source)
    assert any("--long_documents=tail" in note for note in written.notes)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    ids = theirs("bad " * 30 + "good film", truncation=True)["input_ids"]
    assert len(ids) == exports.LENGTH
    expected = ["[CLS]", *["bad"] * (len(ids) - 4), "good", "film", "[SEP]"]
    assert theirs.convert_ids_to_tokens(ids) == expected


def _notes(head, run, output_format, folder):
    (folder / "flags.txt").write_text(run.replace(" ", "\n") + "\n")
    (folder / "null_score_diff_threshold.txt").write_text("-1.5\n")
    shapes = names.shapes(_CONFIG, head, 3)
    source = opened.Checkpoint(str(folder), "tf1", shapes, lambda _: {})
    return reading_flags.notes(source, output_format)
