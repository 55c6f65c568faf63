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


@pytest.mark.parametrize("script", _SCRIPTS)
def test_help(script):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", script, "--help"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
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
