"""Every flag of every script: invalid values, paths and conditions.

The cases follow from the definitions: see `flag_cases`.
"""

import contextlib
import io
import pathlib
from collections.abc import Callable

from bert_tf.flags import flag_sections
from tests import scripts
from tests.bad_inputs import damaged, flag_cases, matrix

import pytest
from absl import flags, logging

pytestmark = pytest.mark.slow

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_START = "command_line.start("
SCRIPTS = [
    str(path.relative_to(_ROOT).with_suffix(""))
    for folder in (_ROOT, _ROOT / "examples")
    for path in sorted(folder.glob("*.py"))
    if _START in path.read_text()
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Returns files that paths may name, and that no script may change."""
    made = tmp_path_factory.mktemp("data")
    files = {
        "file": "mine",
        "folder/file": "mine",
        "dangling": damaged.Link("nowhere"),
    }
    damaged.write_files(made, files)
    return made


@pytest.mark.parametrize("script", SCRIPTS)
def test_flags(script, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = matrix.contents(folder)
    wrong = []
    count = 0
    with scripts.starting(script) as (read, keywords):
        own = {
            name: flag
            for name, flag in flags.FLAGS._flags().items()
            if flag_sections.find_about(flag)
            and not flag_cases.about(flag).alias
        }
        ignored = [name for names in keywords.values() for name in names]
        for case in flag_cases.ScriptFlags(own, ignored, folder).cases():
            code, said = _said(read, case.words)
            for flag in own.values():
                flag.unparse()
            count += 1
            if not case.is_met(code, said):
                wrong.append(f"{case.words}: {case.line!r} is not {said!r}")
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong)
    assert matrix.contents(folder) == before


def _said(
    read: Callable[[list[str]], None], words: list[str]
) -> tuple[int, str]:
    """Returns the exit code for a command line, and the log."""
    said = io.StringIO()
    handler = logging.get_absl_handler().python_handler
    stream, handler.stream = handler.stream, said
    try:
        with contextlib.redirect_stderr(said):
            read(words)
    except SystemExit as exit_:
        return int(exit_.code or 0), said.getvalue()
    finally:
        handler.stream = stream
    return 0, said.getvalue()
