"""The notes on flags of a run that a written checkpoint does not keep."""

import dataclasses

from bert_tf.checkpoints import formats, opened, reading_flags
from bert_tf.seq2seq import seq2seq_options
from bert_tf.tasks.squad import squad_options
from tests import exports
from tests.huggingface_models import transformers

import pytest

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
        ("tagging", "--scheme=none", "hf", "--scheme=none"),
        ("encoder", "--scheme=IOB1 --max_seq_length=9", "keras_hub", None),
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


@pytest.mark.parametrize(
    ("head", "run", "expected"),
    [
        ("tagging", "--context=document", "run_ner.py --context=document"),
        (
            "joint_span",
            "--max_seq_length=384 --start_n_top=3",
            "run_squad.py --answer_head=joint --start_n_top=3",
        ),
        (
            "seq2seq",
            "--beam_size=4 --max_target_length=64",
            "run_seq2seq.py --max_target_length=64",
        ),
    ],
)
def test_flags_of_one_script(head, run, expected, tmp_path):
    (note,) = _notes(head, run, "tf1", tmp_path)
    assert note.endswith(f": give {expected}.")


def test_defaults_are_those_of_the_options():
    for head, made in (
        ("span", (squad_options.Layout, squad_options.Search)),
        ("joint_span", (squad_options.Layout, squad_options.JointSearch)),
        ("seq2seq", (seq2seq_options.Generation,)),
    ):
        fields = [field for x in made for field in dataclasses.fields(x)]
        defaults = {field.name: field.default for field in fields}
        # Without a default, the flag is always named.
        found = reading_flags.DEFAULTS[head]
        assert defaults.keys() <= found.keys()
        for name, default in defaults.items():
            assert found[name] in (default, None)


@pytest.mark.parametrize(
    ("labels", "run", "expected"),
    [
        # Without a flag, a reader would find IOB1's entities.
        ("O B-PER I-PER B-LOC", "--context=sentence", "--scheme=BIO."),
        ("O B-PER I-PER", "--scheme=IOB1", "--scheme=IOB1."),
        ("O B-PER I-PER E-PER S-PER", "--context=sentence", None),
        ("NOUN VERB", "--context=sentence", None),
        ("O B-PER I-PER", "", None),  # of no run
    ],
)
def test_the_scheme_of_a_tagger(labels, run, expected, tmp_path):
    found = _notes("tagging", run, "hf", tmp_path, labels=(*labels.split(),))
    assert [x.rpartition(" ")[2] for x in found] == [expected] * bool(expected)


def test_flags_that_only_training_takes(tmp_path):
    run = "--long_documents=windows --window_stride=5"
    (note,) = _notes("classification", run, "hf", tmp_path)
    assert f"was trained with {run}: give it to run_classifier.py" in note


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


def _notes(head, run, output_format, folder, **about):
    (folder / "flags.txt").write_text(run.replace(" ", "\n") + "\n")
    (folder / "null_score_diff_threshold.txt").write_text("-1.5\n")
    source = opened.Checkpoint(str(folder), "tf1", {}, lambda _: {}, **about)
    return reading_flags.notes(source, output_format, head)
