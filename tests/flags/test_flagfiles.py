"""Flag files, which repeat a run and identify it."""

import pathlib
import sys
from typing import Any

from bert_tf import vocabularies
from bert_tf.encoders import families  # noqa: F401 (registers all kinds)
from bert_tf.flags import flagfiles
from bert_tf.storage import written_files

import pytest
from absl import flags


def _define(values=()):
    """Returns the flags of a script, parsed from `values`."""
    script = flags.FlagValues()

    kinds: tuple[tuple[Any, ...], ...] = (
        (flags.DEFINE_string, "input_file", None),
        (flags.DEFINE_string, "label", "a default"),
        (flags.DEFINE_list, "labels", None),
        (flags.DEFINE_bool, "do_train", False),
        (flags.DEFINE_bool, "normalize", False),  # begins with "no"
        (flags.DEFINE_integer, "max_seq_length", 128),
        (flags.DEFINE_integer, "max_predictions_per_seq", None),
        (flags.DEFINE_float, "learning_rate", 5e-5),
        (flags.DEFINE_enum, "dtype", "float32", ["float32", "bfloat16"]),
    )
    for define, *arguments in kinds:
        define(*arguments, "Help.", flag_values=script)
    script(["script.py", *values])
    for name in script:
        script.register_key_flag_for_module("script.py", script[name])
    return script


@pytest.fixture
def use(monkeypatch):
    """Parses a command line as the running script's flags."""

    def use(*values):
        monkeypatch.setattr(flags, "FLAGS", _define(values))
        monkeypatch.setattr(sys, "argv", ["script.py", *values])
        return flags.FLAGS

    return use


_COMMANDS = [
    [],
    ["--do_train", "--normalize"],
    ["--nodo_train", "--nonormalize"],
    ["--do_train=true", "--normalize=false"],
    ["--input_file=/data/my texts/*.txt"],
    ["--input_file=a=b", "--label=--do_train"],
    ["--label=", "--labels="],
    ["--labels=negative,positive", "--max_seq_length=64"],
    ['--labels="not, so bad","#1",good one'],
    ["--label=# no comment", "--input_file=//host/share"],
    ["--label=Ünïcode 标签", "--learning_rate=2e-05", "--dtype=bfloat16"],
    ['--label="quoted"', "--input_file=gs://b/wiki-?[0-9]*.tfrecord"],
]


class TestFlagfile:
    @pytest.mark.parametrize("command", _COMMANDS, ids=" ".join)
    def test_repeats_the_run(self, tmp_path, use, command):
        path = tmp_path / "flags.txt"
        before = use(*command).flag_values_dict()
        flagfiles.write_flagfile(str(path))
        after = use(f"--flagfile={path}").flag_values_dict()
        ours = before.keys() - {"flagfile", "undefok"}
        assert {n: after[n] for n in ours} == {n: before[n] for n in ours}
        # The second file equals the first, except for the time.
        first = flagfiles.read_flagfile(str(path))
        flagfiles.write_flagfile(str(path))
        assert flagfiles.read_flagfile(str(path)) == first

    def test_command_and_values_as_text(self, tmp_path, use):
        path = str(tmp_path / "flags.txt")
        use("--normalize", "--labels=a,b", "--label=x = y")
        flagfiles.write_flagfile(path)
        assert [path.name for path in tmp_path.iterdir()] == ["flags.txt"]
        with open(path) as file:
            first = file.readline()
        assert first == f"# python script.py --flagfile={path}\n"
        assert flagfiles.read_flagfile(path) == {
            "do_train": "false",
            "dtype": "float32",
            "label": "x = y",
            "labels": "a,b",
            "learning_rate": "5e-05",
            "max_seq_length": "128",
            "normalize": "true",
        }

    def test_a_blank_that_absl_drops_is_noted(self, tmp_path, use):
        path = tmp_path / "flags.txt"
        use("--label=x ")
        flagfiles.write_flagfile(str(path))
        assert flagfiles.read_flagfile(str(path))["label"] == "x "
        note = "Remove the line, and pass --label.\n--label=x \n"
        assert note in path.read_text()
        assert use(f"--flagfile={path}").label == "x"

    def test_lines_of_an_editor_of_windows(self, tmp_path, use):
        path = tmp_path / "flags.txt"
        use("--label=a b", "--do_train")
        flagfiles.write_flagfile(str(path))
        before = flagfiles.read_flagfile(str(path))
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        assert flagfiles.read_flagfile(str(path)) == before
        assert use(f"--flagfile={path}").label == "a b"

    def test_own_lines_may_be_short(self, tmp_path):
        path = tmp_path / "flags.txt"
        path.write_text("# note\n\n--do_train\n--label=a=b\n")
        assert flagfiles.read_flagfile(str(path)) == {
            "do_train": "",
            "label": "a=b",
        }


class TestCheckSameRun:
    @pytest.fixture
    def path(self, tmp_path, use):
        path = str(tmp_path / "flags.txt")
        use("--max_seq_length=64", "--do_train")
        flagfiles.write_flagfile(path)
        return path

    def test_same_flags(self, path, use, caplog):
        use("--do_train=true", "--max_seq_length=64")
        flagfiles.check_same_run(path, ["max_seq_length", "do_train"])
        assert not caplog.messages

    @pytest.mark.parametrize("value", [[], ["--nonormalize"]])
    def test_flags_that_the_run_did_not_have(self, value, path, use, caplog):
        lines = pathlib.Path(path).read_text().splitlines()
        names = ("--normalize", "--dtype", "--labels")
        kept = [line for line in lines if not line.startswith(names)]
        pathlib.Path(path).write_text("\n".join(kept) + "\n")
        use("--max_seq_length=64", "--do_train", *value)
        flagfiles.check_same_run(path, ["normalize", "dtype", "labels"])
        assert not caplog.messages
        use("--max_seq_length=64", "--do_train", "--normalize")
        with pytest.raises(ValueError, match="normalize was None and is true"):
            flagfiles.check_same_run(path, ["normalize"])

    def test_no_file(self, tmp_path, use):
        use()
        flagfiles.check_same_run(str(tmp_path / "none.txt"), ["label"])

    def test_other_identity(self, path, use, tmp_path):
        use("--max_seq_length=128", "--do_train", "--input_file=x")
        with pytest.raises(ValueError, match="output_dir") as caught:
            flagfiles.check_same_run(path, ["max_seq_length", "input_file"])
        for text in (
            f"{tmp_path} holds another run",
            "max_seq_length was 64 and is 128",
            "input_file was None and is x",
        ):
            assert text in str(caught.value)

    @pytest.mark.parametrize("began", [[], ["--max_predictions_per_seq=5"]])
    def test_what_the_records_tell_may_be_left_out(self, began, tmp_path, use):
        path = str(tmp_path / "flags.txt")
        use(*began)
        flagfiles.write_flagfile(path)
        identity = ["max_predictions_per_seq"]
        for goes_on in ([], ["--max_predictions_per_seq=5"]):
            use(*goes_on)
            flagfiles.check_same_run(path, identity)
        if began:
            use("--max_predictions_per_seq=6")
            with pytest.raises(ValueError, match="_per_seq was 5 and is 6"):
                flagfiles.check_same_run(path, identity)

    def test_another_spelling_of_a_file_is_no_change(
        self, use, tmp_path, monkeypatch, caplog
    ):
        monkeypatch.chdir(tmp_path)
        for name in ("a.tsv", "b.tsv"):
            pathlib.Path(name).touch()
        use("--input_file=a.tsv", "--label=x")
        flagfiles.write_flagfile("my flags.txt")
        text = pathlib.Path("my flags.txt").read_text()
        assert "--flagfile='my flags.txt'" in text
        use(f"--input_file={tmp_path}/a.tsv", "--label=x")
        flagfiles.check_same_run("my flags.txt", ["input_file"])
        use("--input_file=b.tsv", "--label=x")
        # For example if the content is the same.
        same = ["input_file"]
        flagfiles.check_same_run("my flags.txt", ["input_file"], same=same)
        assert not caplog.messages
        message = "input_file was a.tsv and is b.tsv"
        with pytest.raises(ValueError, match=message):
            flagfiles.check_same_run("my flags.txt", ["input_file"])

    def test_another_spelling_is_no_change(self, path, use, caplog):
        use("--learning_rate=5e-5")
        spelt = pathlib.Path(path)
        text = spelt.read_text()
        spelt.write_text(
            text.replace("learning_rate=5e-05", "learning_rate=0.00005")
        )
        assert spelt.read_text() != text
        flagfiles.check_same_run(path, ["learning_rate"])
        use("--learning_rate=6e-5")
        with pytest.raises(ValueError, match=r"was 0\.00005 and is 6e-05"):
            flagfiles.check_same_run(path, ["learning_rate"])

    def test_other_detail_is_logged(self, path, use, caplog):
        use("--max_seq_length=64", "--nodo_train", "--label=new")
        flagfiles.check_same_run(path, ["max_seq_length"])
        # What the command does is not a change of the run.
        (message,) = caplog.messages
        assert message.endswith(": label was a default and is new")


def test_files_of_all_vocabularies_are_known():
    # Some kinds have files of the same names.
    kinds = vocabularies.KINDS.values()
    names = list(dict.fromkeys(x for kind in kinds for x in kind.files))
    names.remove("itos.pkl")  # It is only read, and saved as symbols.txt.
    assert sorted(written_files.VOCABULARIES) == sorted(names)
    for own in (written_files.STATE_FILES, written_files.checkpoint()):
        assert set(names) <= set(own)
    # Next to another runtime's model they are ours; alone they may not be.
    assert written_files.foreign(names, ()) == names
    assert written_files.foreign(["model.onnx", *names], ("*.onnx",)) == []
