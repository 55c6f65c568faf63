"""Tests of tools/house on a checkout of a few lines."""

import sys

from tools.house import figures, trace

import pytest

_FILES = {
    "bert_tf/alone.py": '"""Doc.\n\nMore.\n"""\n\nA = 1  # one\n# none\n',
    "bert_tf/left/a.py": (
        "from bert_tf import alone as other\n"
        "import numpy as np\n"
        "import bert_tf.left.b\n"
    ),
    "bert_tf/left/b.py": "def f():\n    from bert_tf.right.a import C\n",
    "bert_tf/right/a.py": (
        "def around():\n    if x:\n        y()\n        raise ValueError\n"
        "def check(x):\n    return x\n"
        "C = 1\n"
    ),
    "run.py": "from bert_tf.left import a, b\n\nDOC_STRIDE = 'doc_stride'\n",
}


@pytest.fixture(name="root")
def _root(tmp_path):
    for name, text in _FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_figures(root):
    assert figures.measure(figures.sources(root)) == {
        "files": 4,
        "lines": 7 + 3 + 2 + 7 + 3,
        "lines of code": 1 + 3 + 2 + 7 + 2,
        # The condition with its two lines, and the function `check`.
        "guards, share of the code": 5 / 15,
        # alone and a of the left, a of the right; b has two importers.
        "modules imported by one file": 3,
        "imports that rename": 1,
        "file names used twice": 1,
        "functions named by a preposition": 1,
        "files that name doc_stride": 1,
        "files that name multiple_choice": 0,
    }


_SCRIPT = """
def helper():
    return 1

def outer():
    def inner():
        return helper()
    return inner()

def stop():
    return 2

def after():
    return 3

outer()
stop()
after()
"""


@pytest.mark.parametrize(
    ("stop", "functions", "lines"),
    # outer has 4 lines, of which inner 2; helper, stop and after 2 each.
    [("script.py:stop", 4, 10), ("", 5, 12)],
)
def test_reading_distance(root, monkeypatch, stop, functions, lines):
    script = root / "script.py"
    script.write_text(_SCRIPT)
    monkeypatch.setattr(sys, "argv", [])
    found = trace.run(str(root), stop, str(script), [])
    assert found == {"files": 1, "functions": functions, "lines": lines}


def test_a_stop_function_that_does_not_run(root, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    script = root / "script.py"
    script.write_text(_SCRIPT)
    with pytest.raises(SystemExit, match=r"reach script\.py:other"):
        trace.run(str(root), "script.py:other", str(script), [])
