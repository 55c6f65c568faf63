"""`--help` of every script: what it says, and that nothing slow is imported."""

import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_SCRIPTS = sorted(path.name for path in _ROOT.glob("*.py"))
# Each takes more than a tenth of a second to import.
_SLOW = re.compile(r"\| +(tensorflow|keras|scipy|sklearn|torch|pandas)\b")


def _run(script, *arguments):
    """Returns a run that lists on stderr what it imports."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", script, *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def _without_imports(text):
    return re.sub(r"(?m)^import time:.*\n", "", text)


@pytest.mark.parametrize("script", _SCRIPTS)
class TestScript:
    def test_help(self, script):
        done = _run(script, "--help")
        assert done.returncode == 0
        assert not _SLOW.search(done.stderr)
        assert done.stdout.startswith(f"{script}: ")
        # An example that can be pasted: its lines end as a shell wants it.
        assert re.search(
            rf"^    .*python {script} .*(\\\n +--|$)", done.stdout, re.M
        )
        assert "\nRequired:\n" in done.stdout or script in (
            "run_prediction.py",  # asks at a prompt
            "export_saved_model.py",  # one of two folders
            "run_server.py",  # models, or the folder of a models.config
        )
        titles = re.findall(r"^([A-Z][^\n]*):$", done.stdout, re.M)
        assert len(titles) == len(set(titles)) >= 3

    def test_misspelt_flag(self, script):
        done = _run(script, "--batchsize=3")
        assert done.returncode == 1
        assert not _SLOW.search(done.stderr)
        line = _without_imports(done.stderr)
        assert line.startswith("error: There is no flag --batchsize. ")
        assert line.count("\n") == 1

    def test_every_flag_has_a_section(self, script):
        assert "\nFlags:\n" not in _run(script, "--helpfull").stdout
