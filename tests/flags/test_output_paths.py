"""No output destroys an input, or what is not ours."""

import os

from tests import small_script

import pytest

_OF_ROOT = "root may write anywhere"


def _contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def folder(tmp_path):
    """With a text, a model and a run."""
    (tmp_path / "own.txt").write_text("text")
    (tmp_path / "model").mkdir()
    for name in ("bert_model.ckpt.index", "vocab.txt", "bert_config.json"):
        (tmp_path / "model" / name).write_text(name)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "flags.txt").write_text("# python script.py --x\n")
    (tmp_path / "run" / "vocab.txt").write_text("vocab")
    return tmp_path


def _refused(folder, *arguments):
    before = _contents(folder)
    line = small_script.refused(folder, *arguments)
    assert _contents(folder) == before
    return line


class TestInputs:
    def test_output_is_the_input(self, folder):
        line = _refused(folder, "--input_file=own.txt", "--output_file=own.txt")
        assert line == (
            "--output_file would be written over what --input_file reads: "
            "choose another. Received: output_file=own.txt, input_file=own.txt"
        )

    @pytest.mark.parametrize(
        "pattern", ["*.txt", "./own.txt", "model/../own.txt", "a.txt,own.txt"]
    )
    def test_by_another_name(self, folder, pattern):
        line = _refused(
            folder,
            f"--input_file={pattern}",
            f"--output_file={folder}/own.txt",
            "--overwrite",
        )
        assert "would be written over what --input_file reads" in line

    @pytest.mark.parametrize("link", [os.link, os.symlink])
    def test_by_a_link(self, folder, link):
        link(folder / "own.txt", folder / "linked.txt")
        line = _refused(
            folder,
            "--input_file=own.txt",
            "--output_file=linked.txt",
            "--overwrite",
        )
        assert "would be written over what --input_file reads" in line

    def test_file_beside_the_output_is_the_input(self, folder):
        (folder / "x.index").write_text("text")
        line = _refused(
            folder, "--input_file=x.index", "--output_file=x", "--overwrite"
        )
        assert "would be written over what --input_file reads" in line

    @pytest.mark.parametrize("model", ["model", "model/bert_model.ckpt"])
    def test_part_of_the_model(self, folder, model):
        line = _refused(
            folder,
            f"--model={model}",
            "--output_file=model/bert_model.ckpt.index",
            "--overwrite",
        )
        assert "would be written over what --model reads" in line

    def test_folder_that_is_read(self, folder):
        line = _refused(folder, "--input_file=run", "--output_dir=run")
        assert "would be written over what --input_file reads" in line

    def test_file_in_the_folder_of_the_run(self, folder):
        (folder / "run" / "predictions.jsonl").write_text("{}")
        line = _refused(
            folder, "--input_file=run/predictions.jsonl", "--output_dir=run"
        )
        assert line.startswith("The run would write over what --input_file")

    def test_other_file_in_the_folder_of_the_run(self, folder):
        (folder / "run" / "train.tsv").write_text("text")
        assert not small_script.taken(
            folder, "--input_file=run/train.tsv", "--output_dir=run"
        )

    def test_run_goes_on_with_its_own_model(self, folder):
        assert not small_script.taken(
            folder, "--model=run/vocab.txt", "--output_dir=run"
        )


class TestFiles:
    def test_existing_file(self, folder):
        line = _refused(folder, "--output_file=own.txt")
        assert line == (
            "own.txt exists. Choose another --output_file, or replace it by "
            "--overwrite. Received: output_file=own.txt"
        )

    def test_existing_file_to_replace(self, folder):
        assert not small_script.taken(
            folder, "--output_file=own.txt", "--overwrite"
        )

    def test_existing_file_beside(self, folder):
        (folder / "x.index").write_text("text")
        assert "x.index exists" in _refused(folder, "--output_file=x")

    def test_empty_file(self, folder):
        # As mktemp makes it.
        (folder / "empty").touch()
        assert not small_script.taken(folder, "--output_file=empty")

    def test_device(self, folder):
        assert not small_script.taken(folder, "--output_file=/dev/null")

    def test_folder_for_a_file(self, folder):
        line = _refused(folder, "--output_file=run")
        assert line.startswith("--output_file must name a file, and this is a")

    def test_file_for_a_folder_above(self, folder):
        line = _refused(folder, "--output_file=own.txt/x")
        assert f"{folder}/own.txt is no folder" in line

    @pytest.mark.skipif(os.geteuid() == 0, reason=_OF_ROOT)
    def test_no_permission(self, folder):
        (folder / "model").chmod(0o500)
        line = _refused(folder, "--output_file=model/x/y")
        assert "there is no permission to write to" in line


class TestNewFolders:
    def test_new_or_empty(self, folder):
        (folder / "empty").mkdir()
        assert not small_script.taken(folder, "--new_dir=new")
        assert not small_script.taken(folder, "--new_dir=empty")

    def test_holds_what_is_not_ours(self, folder):
        for more in ([], ["--overwrite"]):
            line = _refused(folder, "--new_dir=model", *more)
            assert line.startswith("model holds bert_config.json, and must be")
            assert "by --overwrite" not in line

    def test_holds_what_the_script_writes(self, folder):
        (folder / "old").mkdir()
        (folder / "old" / "a1").touch()
        line = _refused(folder, "--new_dir=old")
        assert "or replace it by --overwrite" in line
        assert not small_script.taken(folder, "--new_dir=old", "--overwrite")

    def test_file(self, folder):
        line = _refused(folder, "--new_dir=own.txt")
        assert line.startswith("--new_dir must be a new folder, and this is")


class TestRunFolders:
    def test_new_empty_and_own(self, folder):
        (folder / "empty").mkdir()
        for name in ("new", "empty", "run", "new/deep/folder"):
            assert not small_script.taken(folder, f"--output_dir={name}")

    def test_other_files(self, folder):
        # Such as the log of the job.
        (folder / "logs").mkdir()
        (folder / "logs" / "slurm-1.out").write_text("text")
        assert not small_script.taken(folder, "--output_dir=logs")

    def test_folder_of_a_model(self, folder):
        for more in ([], ["--overwrite"]):
            line = _refused(folder, "--output_dir=model", *more)
            assert line.startswith("model holds a model (bert_model.ckpt.index")
            assert "Give it as --init_checkpoint, and a new folder" in line

    def test_foreign_files_of_the_names_that_runs_write(self, folder):
        (folder / "other").mkdir()
        (folder / "other" / "vocab.txt").write_text("mine")
        line = _refused(folder, "--output_dir=other")
        assert line.startswith("other holds vocab.txt, which this run would")
        assert not small_script.taken(
            folder, "--output_dir=other", "--overwrite"
        )
        # But not what the same command reads.
        line = _refused(
            folder,
            "--output_dir=other",
            "--input_file=other/vocab.txt",
            "--overwrite",
        )
        assert "what --input_file reads" in line

    def test_run_of_the_original(self, folder):
        (folder / "tf1").mkdir()
        for name in ("checkpoint", "model.ckpt-7.index", "graph.pbtxt"):
            (folder / "tf1" / name).write_text("text")
        assert not small_script.taken(folder, "--output_dir=tf1")

    @pytest.mark.parametrize(
        "command",
        [
            "python run_other.py",
            "python -m run_other",
            "bert-tf run_other",
            "python -m bert_tf run_other",
        ],
    )
    def test_run_of_another_script(self, folder, command):
        flags = folder / "run" / "flags.txt"
        flags.write_text(f"# {command} --flagfile=x\n")
        line = _refused(folder, "--output_dir=run")
        assert line.startswith(
            "run holds a run of run_other.py, not of script.py: choose another "
            "--output_dir, and give its weights by --init_checkpoint."
        )

    @pytest.mark.parametrize("command", ["python script.py", "bert-tf script"])
    def test_run_of_the_same_script(self, folder, command):
        flags = folder / "run" / "flags.txt"
        flags.write_text(f"# {command} --flagfile=x\n")
        assert not small_script.taken(folder, "--output_dir=run")

    def test_file(self, folder):
        line = _refused(folder, "--output_dir=own.txt")
        assert line.startswith("--output_dir must be a folder, and this is a")

    def test_bracket(self, folder):
        assert "bracket" in _refused(folder, "--output_dir=a[1]")
