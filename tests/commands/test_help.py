"""What is imported: nothing slow for `--help`, which says what scripts do."""

import json
import pathlib
import re
import subprocess
import sys

from tests import tiny_files

import pytest

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_SCRIPTS = sorted(path.name for path in _ROOT.glob("*.py"))
# Each takes more than a tenth of a second to import.
_SLOW = {"tensorflow", "keras", "scipy", "sklearn", "torch", "pandas"}
# Command -> its exit code, its output, and what has been imported by then.
_SHOW_ALL = """
import contextlib, io, json, runpy, sys
from tools import isolation
shown = {}
for command in sys.argv[1:]:
    output = io.StringIO()
    with isolation.isolated("bert_tf"), contextlib.redirect_stdout(output):
        sys.argv = command.split()
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            shown[command] = end.code, output.getvalue(), [*sys.modules]
print(json.dumps(shown))
"""


def _run(*arguments):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def shown():
    commands = [*(f"{x} --help" for x in _SCRIPTS), "run_glue.py --helpfull"]
    return json.loads(_run("-c", _SHOW_ALL, *commands).stdout)


@pytest.mark.parametrize("script", _SCRIPTS)
def test_help(script, shown):
    code, text, modules = shown[f"{script} --help"]
    assert code == 0
    assert _SLOW.isdisjoint(modules)
    assert text.startswith(f"{script}: ")
    # An example that can be pasted: its lines end as a shell wants it.
    assert re.search(rf"^    .*python {script} .*(\\\n +--|$)", text, re.M)
    assert "\nRequired:\n" in text or script in (
        "run_prediction.py",  # asks at a prompt
        "export_saved_model.py",  # one of two folders
        "run_server.py",  # models, or the folder of a models.config
    )
    titles = re.findall(r"^([A-Z][^\n]*):$", text, re.M)
    assert len(titles) == len(set(titles)) >= 3


def test_what_is_slow_is_imported_where_it_is_needed():
    text = """if True:
        import sys
        import bert_tf
        dir(bert_tf)
        bert_tf.InputError
        import bert_tf.files, bert_tf.storage.run_lock
        slow = {"tensorflow", "keras", "numpy", "fsspec"}
        print(sorted(slow & sys.modules.keys()))
    """
    assert _run("-c", text).stdout == "[]\n"


def test_records_are_made_without_tensorflow(tmp_path):
    """Its import would take 600 MB of every worker."""
    tiny_files.write_files(tmp_path)
    tiny_files.write_documents(tmp_path / "text.txt")
    done = _run(
        *("-X", "importtime"),
        *("create_pretraining_data.py", f"--input_file={tmp_path}/text.txt"),
        *(f"--vocab_file={tmp_path}/vocab.txt", "--dupe_factor=1"),
        *(f"--output_dir={tmp_path}/out", "--num_workers=1"),
    )
    assert not re.search(r"\| +(tensorflow|keras)\b", done.stderr)


def test_glue_shows_no_flag_that_it_rejects(shown):
    _, text, _ = shown["run_glue.py --helpfull"]
    flags = set(re.findall(r"^  --(\w+)", text, re.M))
    assert {"seeds", "do_predict", "tasks"} <= flags
    assert flags.isdisjoint({"seed", "do_train", "do_eval", "do_export"})
