"""A wheel built from the repository works from any folder."""

import ast
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

from tools import wheel as release

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # From the files that the docker/ images get: a build adds folders.
    copy = tmp_path_factory.mktemp("copy")
    left = shutil.ignore_patterns("__pycache__")
    ignored = (_ROOT / ".dockerignore").read_text().splitlines()
    for pattern in (line[1:] for line in ignored if line.startswith("!")):
        for path in _ROOT.glob(pattern):
            if path.is_dir():
                shutil.copytree(path, copy / path.name, ignore=left)
            else:
                shutil.copy(path, copy)
    out = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-deps", "--no-build-isolation", "-w", out, copy)
    (path,) = out.glob("bert_tf-*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Returns the folder in which the wheel is installed."""
    site = tmp_path_factory.mktemp("site")
    _pip("install", "--no-deps", "--no-compile", "--target", site, wheel)
    return site


def _pip(command: str, *arguments: str | os.PathLike[str]) -> None:
    pip = [sys.executable, "-m", "pip", command, "--quiet", "--no-index"]
    # Without lsb_release, which pip runs to find the system's name.
    environment = {**os.environ, "PATH": os.path.dirname(sys.executable)}
    subprocess.run([*pip, *arguments], check=True, env=environment)


@pytest.fixture
def run(installed, tmp_path):
    """Runs Python in a separate folder, with the installed wheel."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    # Before site-packages, where an editable install may be.
    environment = {**os.environ, "PYTHONPATH": str(installed)}

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.slow
def test_wheel_holds_the_package_the_scripts_and_the_configs(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"bert_tf/scripts/{x.name}" for x in _ROOT.glob("*.py")}
    expected |= {
        str(path.relative_to(_ROOT))
        for path in (_ROOT / "bert_tf").rglob("*.*")
        if path.suffix in (".py", ".css", ".html", ".js")
    }
    expected |= {
        f"bert_tf/{path.relative_to(_ROOT)}"
        for path in (_ROOT / "configs").rglob("*.*")
    }
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_links_of_the_readme_for_an_index():
    text = "![a](docs/b.svg) [c](docs/d.md#e)\n[f\ng](h) [i](https://j) [k](#l)"
    address = "https://example.org/bert"
    assert release.absolute(text, address) == (
        f"![a]({address}/raw/HEAD/docs/b.svg) "
        f"[c]({address}/blob/HEAD/docs/d.md#e)\n"
        f"[f\ng]({address}/blob/HEAD/h) [i](https://j) [k](#l)"
    )


@pytest.mark.slow
class TestInstalled:
    def test_lists_the_scripts(self, run, installed):
        done = run(str(installed / "bin" / "bert-tf"))
        assert done.returncode == 0, done.stderr
        for path in _ROOT.glob("*.py"):
            purpose = ast.get_docstring(ast.parse(path.read_text()))
            assert purpose is not None
            (line,) = (
                x for x in done.stdout.split("\n") if f" {path.stem} " in x
            )
            assert line.split(maxsplit=1)[1] == purpose.split("\n")[0]
        assert str(installed / "bert_tf" / "configs") in done.stdout
        assert run("-m", "bert_tf").stdout == done.stdout.replace(
            "bert-tf ", "python -m bert_tf "
        )

    def test_help_has_the_command_that_was_typed(self, run, installed):
        for typed, words in (
            ("bert-tf", [str(installed / "bin" / "bert-tf")]),
            ("python -m bert_tf", ["-m", "bert_tf"]),
        ):
            done = run("-X", "importtime", *words, "run_pretraining", "--help")
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("run_pretraining: Pre-trains BERT")
            assert f"    {typed} run_pretraining \\\n" in done.stdout
            assert "python run_" not in done.stdout
            assert "| tensorflow\n" not in done.stderr
        wrong = run("-m", "bert_tf", "run_pretraining", "--input_fil=x")
        assert wrong.returncode == 1
        assert "python -m bert_tf run_pretraining --help" in wrong.stderr

    def test_unknown_name(self, run):
        done = run("-m", "bert_tf", "run_clasifier", "--do_train")
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr == (
            "error: There is no script of this name. Did you mean "
            "run_classifier? python -m bert_tf alone lists all. Received: "
            "run_clasifier\n"
        )

    def test_configs_are_copied_and_found(self, run, tmp_path):
        words = (
            *("-m", "bert_tf", "run_classifier", "--only_check_args"),
            *("--flagfile=configs/quickstart/fine_tune_pretrained.flags",),
        )
        missing = run(*words)
        assert missing.returncode == 1
        assert missing.stderr.count("\n") == 1
        assert "bert-tf configs copies them" in missing.stderr

        assert run("-m", "bert_tf", "configs").returncode == 0
        copied = tmp_path / "elsewhere" / "configs"
        there = {x.relative_to(copied) for x in copied.rglob("*.*")}
        configs = _ROOT / "configs"
        assert there == {x.relative_to(configs) for x in configs.rglob("*.*")}
        # The flagfile names another flagfile below configs/.
        found = run(*words)
        assert found.returncode == 0, found.stderr

        again = run("-m", "bert_tf", "configs")
        assert again.returncode == 1
        assert again.stderr.startswith("error: The folder is there already. ")
        assert run("-m", "bert_tf", "configs", "others").returncode == 0
        assert (tmp_path / "elsewhere" / "others" / "mrpc.flags").exists()

    def test_script_runs(self, run, tmp_path):
        """Data creation, whose workers import the running script."""
        folder = tmp_path / "elsewhere"
        (folder / "text.txt").write_text(
            "One two.\nThree.\n\nTwo.\nFour one.\n\n" * 20
        )
        pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] one two three four ."
        (folder / "vocab.txt").write_text(pieces.replace(" ", "\n") + "\n")
        done = run(
            *("-m", "bert_tf", "create_pretraining_data", "--num_workers=2"),
            *("--input_file=text.txt", "--vocab_file=vocab.txt"),
            *("--output_dir=records", "--max_seq_length=16"),
            *("--max_predictions_per_seq=2", "--num_shards=2"),
        )
        assert done.returncode == 0, done.stderr
        assert (folder / "records" / "manifest.json").exists()
