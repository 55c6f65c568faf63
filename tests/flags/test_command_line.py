"""How scripts end, and flag files."""

import json
import pathlib
import re
import signal
import subprocess
import sys

from bert_tf.flags import flagfiles
from tests import scripts

import pytest
import tensorflow as tf
from absl import flags

_ROOT = pathlib.Path(__file__).resolve().parents[2]

# A script with a case for each way to end. TensorFlow is imported once: each
# case runs in a fork of its own, from the call that ends every script.
_SCRIPT = """
import glob, json, os, signal, sys, time
from bert_tf import files
from bert_tf.training import schedules
from bert_tf.errors import InputError, NotFiniteError
from bert_tf.flags import command_line
import numpy as np
import tensorflow as tf
from absl import flags

_SIZE = flags.DEFINE_integer("size", 1, "A size.", lower_bound=1)
_CASE = flags.DEFINE_string("case", None, "What happens.")

def main(_):
    case = _CASE.value
    if case == "done":
        print("done")
    elif case == "refused by the library":
        schedules.linear_warmup_decay(1e-4, 20, 10)
    elif case == "refused by the script":
        raise InputError("a\\\\n  line,\\\\tand another")
    elif case == "refused after a cause":
        try:
            json.loads("{")
        except ValueError as error:
            raise InputError("c.json is not JSON") from error
    elif case == "no text":
        raise InputError
    elif case == "not a number":
        raise NotFiniteError("Not a finite number in steps 1 to 2")
    elif case == "no file for Python":
        open("/nowhere/vocab.txt")
    elif case == "no file for TensorFlow":
        tf.io.gfile.GFile("/nowhere/vocab.txt").read()
    elif case == "folder for a file":
        tf.io.gfile.GFile("/").read()
    elif case == "no network":
        raise tf.errors.UnavailableError(None, None, "no way to gs://bucket")
    elif case == "unknown scheme":
        tf.io.gfile.makedirs("ftp2://bucket/run")
    elif case == "bug in another library":
        json.loads("{")
    elif case == "bug of ours":
        int("seven")
    elif case == "bug that is passed on":
        try:
            np.ones(2) + np.ones(3)
        except ValueError as error:
            raise error
    elif case == "bug in a call":
        main(_, 1)
    elif case == "bug of a key":
        {}["seven"]
    elif case == "out of memory":
        tf.function(lambda n: tf.ones([n, n]))(tf.constant(1 << 20))
    elif case == "interrupted":
        raise KeyboardInterrupt
    elif case == "exit":
        sys.exit(143)
    elif case == "terminated":
        command_line.unwind_at_sigterm()
        try:
            with files.new_file("terminated.tsv") as file:
                file.write(b"half")
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(60)
        finally:
            print(glob.glob("terminated.tsv*"))

for case, argv in json.loads(sys.argv[1]).items():
    pid = os.fork()
    if not pid:
        for number, end in (1, "out"), (2, "err"):
            file = os.open(f"{case}.{end}", os.O_CREAT | os.O_WRONLY)
            os.dup2(file, number)
        sys.argv = ["script.py", f"--case={case}", *argv]
        try:
            command_line.run(main)
        except SystemExit as error:
            code = error.code
        except BaseException:
            sys.excepthook(*sys.exc_info())
            code = 1
        sys.stdout.flush()
        os._exit(code or 0)  # taking TensorFlow down would last a second
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(f"{case}.code", "w") as file:
        file.write(str(code))
"""
_OTHERS = ["done", "exit", "interrupted", "terminated", "out of memory"]
_ONE_LINE = {
    "refused by the library": "num_warmup_steps=20, num_train_steps=10",
    "refused by the script": "error: a line, and another\n",
    "refused after a cause": "error: c.json is not JSON\n",
    "no text": "error: InputError\n",
    "not a number": "error: Not a finite number in steps 1 to 2\n",
    "no file for Python": "/nowhere/vocab.txt",
    "no file for TensorFlow": "/nowhere/vocab.txt",
    "folder for a file": "Is a directory",
    "no network": "error: no way to gs://bucket\n",
    "unknown scheme": "has no file system ftp2:// here. Give a local",
    "argument": "Received: 'tiny.json'",
}
_TRACEBACK = {
    "bug in another library": "json.decoder.JSONDecodeError",
    "bug of ours": "ValueError: invalid literal for int()",
    "bug that is passed on": "ValueError: operands could not be broadcast",
    "bug in a call": "TypeError",
    "bug of a key": "KeyError: 'seven'",
}
_FLAGS = {
    "argument": ["tiny.json"],
    "unknown": ["--sise=2"],
    "low": ["--size=0"],
}


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Case -> (exit code, stdout, stderr)."""
    folder = tmp_path_factory.mktemp("ends")
    (folder / "script.py").write_text(_SCRIPT.replace("\\\\", "\\"))
    cases = {
        case: _FLAGS.get(case, [])
        for case in [*_OTHERS, *_ONE_LINE, *_TRACEBACK, *_FLAGS]
    }
    subprocess.run(
        [sys.executable, "script.py", json.dumps(cases)],
        cwd=folder,
        env={"PYTHONPATH": str(_ROOT), "CUDA_VISIBLE_DEVICES": "-1"},
        check=True,
        capture_output=True,
    )
    # TensorFlow tells on stderr that it looked for a GPU; no setting helps.
    note = re.compile(rf"^(?:{scripts.TENSORFLOWS.pattern}).*\n", re.MULTILINE)
    return {
        case: (
            int((folder / f"{case}.code").read_text()),
            (folder / f"{case}.out").read_text(),
            note.sub("", (folder / f"{case}.err").read_text()),
        )
        for case in cases
    }


class TestRun:
    def test_success(self, ends):
        assert ends["done"] == (0, "done\n", "")

    @pytest.mark.parametrize("case", _ONE_LINE)
    def test_mistake_is_one_line(self, ends, case):
        code, out, err = ends[case]
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1 and err.endswith("\n")
        assert _ONE_LINE[case] in err

    @pytest.mark.parametrize("case", _TRACEBACK)
    def test_bug_keeps_its_traceback(self, ends, case):
        code, _, err = ends[case]
        assert code == 1
        assert "Traceback (most recent call last)" in err
        assert "script.py" in err
        assert _TRACEBACK[case] in err

    def test_unknown_flag(self, ends):
        code, _, err = ends["unknown"]
        assert code == 1
        assert err == (
            "error: There is no flag --sise. Did you mean --size? "
            "python script.py --help shows all.\n"
        )
        assert "Traceback" not in err

    def test_flag_out_of_range(self, ends):
        code, _, err = ends["low"]
        assert code == 1
        assert "--size=0" in err
        assert "Traceback" not in err

    def test_exit_code_is_kept(self, ends):
        assert ends["exit"] == (143, "", "")

    def test_too_little_memory(self, ends):
        code, _, err = ends["out of memory"]
        assert code == 1
        assert "Traceback" not in err
        # TensorFlow's allocator has a line of its own before it.
        last = err.splitlines()[-1]
        assert last.startswith("error: The device has too little memory. Take")
        assert "Received: OOM when allocating tensor with shape[104" in last

    def test_ctrl_c_leaves_no_traceback(self, ends):
        assert ends["interrupted"] == (130, "", "")

    def test_sigterm_leaves_nothing_half_written(self, ends):
        # Its output is the list of files that it left.
        assert ends["terminated"] == (143, "[]\n", "")


def test_reader_that_has_had_enough():
    """As `script | head -1`."""
    script = (
        "from bert_tf.flags import command_line\n"
        "def main(_):\n"
        "    for number in range(100_000):\n"
        "        print(number)\n"
        "command_line.run(main)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=_ROOT,
        text=True,
    ) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    # As a shell says it of a process that SIGPIPE ended.
    assert process.returncode == 141


def test_ctrl_c_while_the_script_imports(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import time\n"
        "from bert_tf.flags import command_line\n"
        "command_line.start(__name__)\n"
        "print('importing', flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PYTHONPATH": str(_ROOT)},
        text=True,
        # A shell has it ignored in what runs in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout and process.stderr
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == ""
    assert process.returncode == 130


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_another_backend_of_keras_is_not_used(tmp_path, backend):
    script = tmp_path / "script.py"
    script.write_text(
        "from bert_tf.flags import command_line\n"
        "command_line.start(__name__)\n"
        "import keras\n"
        "def main(_):\n"
        "    print(keras.config.backend())\n"
        "command_line.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(_ROOT), "KERAS_BACKEND": backend, "HOME": "/"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "tensorflow\n"
    (line,) = done.stderr.splitlines()
    assert f"WARNING: KERAS_BACKEND={backend} is not used: " in line


def test_long_lines_are_broken_between_words(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from bert_tf.flags import command_line\n"
        "from absl import logging\n"
        "def main(_):\n"
        "    logging.info('%s', 'word ' * 60 + 'x' * 200)\n"
        "    logging.info('short\\n  as it is')\n"
        "command_line.run(main)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stderr.splitlines()
    assert max(map(len, lines[:-3])) <= 120
    assert all(line.startswith(" " * 9 + "word") for line in lines[1:-3])
    # A path, say, is not broken.
    assert lines[-3] == " " * 9 + "x" * 200
    assert " ".join(lines[:-2]).split()[1:] == ["word"] * 60 + ["x" * 200]
    assert lines[-2][9:] == "short" and lines[-1] == "  as it is"


# ---- Flag files -------------------------------------------------------------


def _define(values=()):
    """The flags of a script, parsed from `values`."""
    script = flags.FlagValues()

    def define(function, *arguments, **options):
        function(*arguments, "Help.", flag_values=script, **options)

    define(flags.DEFINE_string, "input_file", None)
    define(flags.DEFINE_string, "label", "a default")
    define(flags.DEFINE_list, "labels", None)
    define(flags.DEFINE_bool, "do_train", False)
    define(flags.DEFINE_bool, "normalize", False)  # begins with "no"
    define(flags.DEFINE_integer, "max_seq_length", 128)
    define(flags.DEFINE_float, "learning_rate", 5e-5)
    define(flags.DEFINE_enum, "dtype", "float32", ["float32", "bfloat16"])
    script(["script.py", *values])
    for name in script:
        script.register_key_flag_for_module("script.py", script[name])
    return script


@pytest.fixture
def use(monkeypatch):
    """Makes the flags of a command line those of the running script."""

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
        # The second file says what the first did, but for the time.
        first = flagfiles.read_flagfile(str(path))
        flagfiles.write_flagfile(str(path))
        assert flagfiles.read_flagfile(str(path)) == first

    def test_values_as_text(self, tmp_path, use):
        path = str(tmp_path / "flags.txt")
        use("--normalize", "--labels=a,b", "--label=x = y")
        flagfiles.write_flagfile(path)
        assert flagfiles.read_flagfile(path) == {
            "do_train": "false",
            "dtype": "float32",
            "label": "x = y",
            "labels": "a,b",
            "learning_rate": "5e-05",
            "max_seq_length": "128",
            "normalize": "true",
        }

    def test_opens_with_its_command(self, tmp_path, use):
        path = tmp_path / "flags.txt"
        use()
        flagfiles.write_flagfile(str(path))
        lines = path.read_text().splitlines()
        assert lines[0] == f"# python script.py --flagfile={path}"
        assert [path.name for path in tmp_path.iterdir()] == ["flags.txt"]

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

    def test_no_file(self, tmp_path, use):
        use()
        flagfiles.check_same_run(str(tmp_path / "none.txt"), ["label"])

    def test_other_identity(self, path, use, tmp_path):
        use("--max_seq_length=128", "--do_train", "--input_file=x")
        with pytest.raises(ValueError) as caught:
            flagfiles.check_same_run(path, ["max_seq_length", "input_file"])
        text = str(caught.value)
        assert f"{tmp_path} holds another run" in text
        assert "max_seq_length was 64 and is 128" in text
        assert "input_file was None and is x" in text
        assert "output_dir" in text

    def test_other_detail_is_logged(self, path, use, caplog):
        use("--max_seq_length=64", "--nodo_train", "--label=new")
        flagfiles.check_same_run(path, ["max_seq_length"])
        assert [message.partition(": ")[2] for message in caplog.messages] == [
            "do_train was true and is false",
            "label was a default and is new",
        ]


def test_file_errors_are_tensorflows():
    # The classes that reading, writing and listing raise.
    for path, kind in (
        ("/nowhere/file", tf.errors.NotFoundError),
        ("/", tf.errors.FailedPreconditionError),
        ("ftp2://bucket/file", tf.errors.UnimplementedError),
    ):
        with pytest.raises(kind):
            tf.io.gfile.GFile(path).read()
