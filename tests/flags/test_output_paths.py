"""Outputs never overwrite an input, or files of other programs."""

import os
import pathlib
import re
import threading

from bert_tf.flags import output_paths
from bert_tf.storage import file_systems, written_files
from bert_tf.tasks.glue import glue_submission
from tests import scripts, small_script

import pytest

_FILES = {
    "own.txt": "text",
    "x.index": "text",
    "empty": "",  # like mktemp's
    "model/bert_model.ckpt.index": "tensors",
    "model/vocab.txt": "vocab",
    "h5/tf_model.h5": "tensors",
    "elmo/weights.hdf5": "tensors",
    "model/bert_config.json": "config",
    "run/flags.txt": "# python script.py --x\n",
    "run/vocab.txt": "vocab",
    "run/predictions.jsonl": "{}",
    "run/train.tsv": "text",
    "old/a1": "",
    "logs/slurm-1.out": "the log of the job",
    "other/vocab.txt": "mine",
    "tracked/flags.txt": "# python script.py --x\n",
    "tracked/trackers.json": "{}",
    "tracked/wandb/latest-run": "of Weights & Biases",
    "tf1/checkpoint": "a run of the original",
    "tf1/model.ckpt-7.index": "tensors",
    "tf1/graph.pbtxt": "graph",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in _FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "empty_folder").mkdir()
    os.link(tmp_path / "own.txt", tmp_path / "linked")
    os.symlink(tmp_path / "own.txt", tmp_path / "symbolic")
    return tmp_path


def _contents(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in paths}


def _refused(folder, *arguments):
    before = _contents(folder)
    line = small_script.refused(folder, *arguments)
    assert _contents(folder) == before
    return line


_OVER = "would be written over what --input_file reads"


_INDEX = "--output_file=model/bert_model.ckpt.index --overwrite"
_MODEL = "would be written over what --model reads"
_NOT_OURS = "^model holds bert_config.json, and must be(?!.*by --overwrite)"
_REFUSED = {
    # Inputs.
    "--input_file=own.txt --output_file=own.txt": f"^--output_file {_OVER}: "
    "choose another. Received: output_file=own.txt, input_file=own.txt$",
    "--input_file=*.txt --output_file={}/own.txt --overwrite": _OVER,
    "--input_file=./own.txt --output_file={}/own.txt --overwrite": _OVER,
    "--input_file=run/../own.txt --output_file={}/own.txt --overwrite": _OVER,
    "--input_file=a.txt,own.txt --output_file=own.txt --overwrite": _OVER,
    "--input_file=own.txt --output_file=linked --overwrite": _OVER,
    "--input_file=own.txt --output_file=symbolic --overwrite": _OVER,
    "--input_file=x.index --output_file=x --overwrite": _OVER,
    f"--model=model {_INDEX}": _MODEL,
    f"--model=model/bert_model.ckpt {_INDEX}": _MODEL,
    "--input_file=run --output_dir=run": _OVER,
    "--input_file=run/predictions.jsonl --output_dir=run": "^The run would "
    "write over what --input_file",
    "--output_dir=other --input_file=other/vocab.txt --overwrite": "what "
    "--input_file reads",
    # Files.
    "--output_file=own.txt": "^own.txt exists. Choose another --output_file, "
    "or replace it by --overwrite. Received: output_file=own.txt$",
    "--output_file=x": "x.index exists",
    "--output_file=run": "^--output_file must name a file, and this is a",
    "--output_file=own.txt/x": "{}/own.txt is no folder",
    # New folders.
    "--new_dir=model": _NOT_OURS,
    "--new_dir=model --overwrite": _NOT_OURS,
    "--new_dir=old": "or replace it by --overwrite",
    "--new_dir=own.txt": "^--new_dir must be a new folder, and this is",
    # Folders of runs.
    "--output_dir=model": r"^model holds a model \(bert_model.ckpt.index.*"
    "Pass the folder as --init_checkpoint, and a new folder",
    "--output_dir=model --overwrite": "^model holds a model ",
    "--output_dir=h5": r"^h5 holds a model \(tf_model.h5\)",
    "--output_dir=elmo": r"^elmo holds a model \(weights.hdf5\)",
    "--output_dir=other": "^other holds vocab.txt, which this run would",
    "--output_dir=own.txt": "^--output_dir must be a folder, and this is a",
}


@pytest.mark.parametrize(("arguments", "expected"), _REFUSED.items())
def test_refused(folder, arguments, expected):
    line = _refused(folder, *arguments.format(folder).split())
    assert re.search(expected.replace("{}", str(folder)), line)


@pytest.mark.parametrize("arguments", ["empty_folder", "./old --overwrite"])
def test_a_mount_is_refused_before_the_work(folder, arguments, monkeypatch):
    mounts = {str(folder / "empty_folder"), str(folder / "old")}
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path) in mounts)
    line = _refused(folder, *f"--new_dir={arguments}".split())
    path = arguments.removesuffix(" --overwrite")
    assert line == (
        "A mounted folder can't be replaced: name a new folder inside it. "
        f"Received: new_dir={path}"
    )


@pytest.mark.parametrize(
    "name", ["lock", "metrics.jsonl", "model.ckpt-7.index"]
)
def test_a_pipe_in_a_run_is_not_opened(folder, name):
    os.mkfifo(folder / "run" / name)
    line = _refused(folder, "--output_dir=run")
    assert f"run/{name} is a pipe or a device" in line
    assert line.endswith("Received: output_dir=run")


def test_a_flagfile_that_is_a_pipe(folder):
    """As a shell passes the output of a command."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("--show=1\n",))
    writer.start()
    code, output, errors = small_script.run(folder, f"--flagfile={pipe}")
    writer.join()
    assert (code, output) == (0, "done\n")
    assert errors == f"Waiting for the program that writes to {pipe}.\n"


def test_a_file_that_another_process_writes(folder):
    """It is refused before the work is done."""
    descriptor = file_systems.lock(str(folder / "new.tmp"))
    assert descriptor is not None
    line = _refused(folder, "--output_file=new")
    assert "Another process writes new: " in line
    file_systems.unlock(descriptor)


_LATE = """
from bert_tf.flags import command_line, flag_sections
output = flag_sections.Section("Output")
output.output_path("output_file", "A file.", holds=flag_sections.FILE)
command_line.start(__name__)
with open("new", "w") as file:
    file.write("theirs")
command_line.run(lambda _: print("done"))
"""


def test_a_file_that_another_process_wrote_meanwhile(tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(_LATE)
    monkeypatch.chdir(tmp_path)
    arguments = (str(tmp_path / "script"), "--output_file=new")
    done = scripts.run(tmp_path / "log", *arguments)
    assert (done.wait(), done.stdout) == (1, "")
    assert done.stderr.startswith("error: new exists. Choose another")
    assert sorted(os.listdir()) == ["log", "new", "script.py"]


def test_no_result_replaces_a_file_of_the_user():
    names = set(glue_submission.FILES)
    pattern = re.compile(r'(?:run\.|\b_)path\((?:run, )?f?"(.+?)"')
    for script in pathlib.Path(__file__).parents[2].glob("run_*.py"):
        for name in pattern.findall(script.read_text()):
            names |= {name.format(x, name=x) for x in ("eval", "test")}
    assert {"eval_predictions.txt", "test_entities.jsonl"} <= names
    found = written_files.matching(sorted(names), written_files.RESULT_FILES)
    assert found == sorted(names)


def test_a_folder_in_a_bucket_with_a_bracket():
    with pytest.raises(ValueError, match=r"choose another name.*a\[1\]"):
        output_paths.check_run_folder(
            "output_dir", "gs://bucket/a[1]", [], False
        )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_permission(folder):
    (folder / "model").chmod(0o500)
    line = _refused(folder, "--output_file=model/x/y")
    assert "there is no permission to write to" in line


@pytest.mark.parametrize(
    "arguments",
    [
        "--input_file=run/train.tsv --output_dir=run",
        "--model=run/vocab.txt --output_dir=run",
        "--output_file=own.txt --overwrite",
        "--output_file=empty",
        "--output_file=/dev/null",
        "--new_dir=new",
        "--new_dir=empty_folder",
        "--new_dir=old --overwrite",
        "--output_dir=new",
        "--output_dir=a[1]",
        "--output_dir=empty_folder",
        "--output_dir=run",
        "--output_dir=tracked",
        "--output_dir=new/deep/folder",
        "--output_dir=logs",
        "--output_dir=other --overwrite",
        "--output_dir=tf1",
    ],
)
def test_taken(folder, arguments):
    assert not small_script.taken(folder, *arguments.split())


@pytest.mark.parametrize(
    ("command", "is_same"),
    [
        ("python run_other.py", False),
        ("python -m run_other", False),
        ("bert-tf run_other", False),
        ("python -m bert_tf run_other", False),
        ("python script.py", True),
        ("bert-tf script", True),
    ],
)
def test_run_of_another_script(folder, command, is_same):
    (folder / "run" / "flags.txt").write_text(f"# {command} --flagfile=x\n")
    if is_same:
        assert not small_script.taken(folder, "--output_dir=run")
        return
    assert _refused(folder, "--output_dir=run").startswith(
        "run holds a run of run_other.py, not of script.py: choose another "
        "--output_dir, and give its weights by --init_checkpoint."
    )
