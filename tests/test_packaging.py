"""A wheel built from the repository works from any folder."""

import configparser
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

_ROOT = pathlib.Path(__file__).resolve().parent.parent


def _setup() -> configparser.ConfigParser:
    setup = configparser.ConfigParser()
    setup.read(_ROOT / "setup.cfg", encoding="utf-8")
    return setup


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # From a copy: a build leaves folders beside the sources.
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(_ROOT / "bert_tf", copy / "bert_tf")
    for path in (
        *_ROOT.glob("*.py"),
        *(_ROOT / n for n in ("setup.cfg", "pyproject.toml", "README.md")),
        _ROOT / "LICENSE",
    ):
        shutil.copy(path, copy)
    out = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
            "--wheel-dir",
            out,
            copy,
        ],
        check=True,
    )
    (path,) = out.glob("bert_tf-*.whl")
    return path


def test_every_script_is_listed():
    listed = _setup()["options"]["py_modules"].split()
    assert listed == sorted(path.stem for path in _ROOT.glob("*.py"))


def test_every_dependency_is_pinned():
    setup = _setup()
    lines = setup["options"]["install_requires"].splitlines()
    for name, extra in setup["options.extras_require"].items():
        if name != "beam":  # see its comment
            lines += extra.splitlines()
    pinned = {
        line.partition("==")[0].lower()
        for line in (_ROOT / "constraints.txt").read_text().splitlines()
    }
    for line in lines:
        name = line.partition("#")[0].strip()
        for mark in "[<>=!":
            name = name.partition(mark)[0]
        assert not name or name.lower() in pinned, name


def test_wheel_holds_the_package_and_the_scripts(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {path.name for path in _ROOT.glob("*.py")}
    expected |= {
        str(path.relative_to(_ROOT))
        for path in (_ROOT / "bert_tf").rglob("*.py")
    }
    code = {name for name in names if name.endswith(".py")}
    assert code == expected


@pytest.mark.slow
def test_script_runs_from_another_folder(wheel, tmp_path):
    site = tmp_path / "site"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--target",
            site,
            wheel,
        ],
        check=True,
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    # Before site-packages, where an editable install may be.
    environment = {**os.environ, "PYTHONPATH": str(site)}

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=elsewhere,
            env=environment,
            capture_output=True,
            text=True,
        )

    found = run("-c", "import bert_tf; print(bert_tf.__file__)")
    assert found.stdout.strip() == str(site / "bert_tf" / "__init__.py")

    shown = run("-m", "run_classifier", "--help")
    assert shown.returncode in (0, 1), shown.stderr  # absl ends --help with 1
    assert "--task_name" in shown.stdout
