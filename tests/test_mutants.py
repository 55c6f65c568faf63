"""Mutation operators on a source of a few lines, and the list of mutants."""

import sys

from tools.mutants import __main__ as mutants
from tools.mutants import operators

import pytest

_SOURCE = '''"""A text."""
def f(x: int = 3, *, y=0.0):
    """Returns 1 + 1."""
    if not x or x <= y:
        raise ValueError(x + 1)
    g(x, y)
    return max(x[1:], key=-1) + 2
'''


def _changed():
    sites = operators.named_sites(_SOURCE)
    before = _SOURCE.splitlines()
    for name, site in sites.items():
        after = operators.apply(_SOURCE, site).splitlines()
        lines = [
            (i + 1, new)
            for i, (old, new) in enumerate(zip(before, after, strict=True))
            if old != new
        ]
        assert [x for x, _ in lines] == [site.line]
        yield name, lines[0][1].strip()


def test_every_operator():
    assert dict(_changed()) == {
        "f:constant:0": "def f(x: int = 4, *, y=0.0):",
        "f:constant:1": "def f(x: int = 3, *, y=1.0):",
        "f:guard:0": "pass",
        "f:logic:0": "if not x and x <= y:",
        "f:not:0": "if  x or x <= y:",
        "f:comparison:0": "if not x or x < y:",
        "f:statement:0": "pass",
        "f:arguments:0": "g(y, x)",
        "f:arithmetic:0": "return max(x[1:], key=-1) - 2",
        "f:function:0": "return min(x[1:], key=-1) + 2",
        "f:keyword:0": "return max(x[1:], ) + 2",
        "f:slice:0": "return max(x[(1) + 1:], key=-1) + 2",
        "f:constant:2": "return max(x[1:], key=0) + 2",
        "f:constant:3": "return max(x[1:], key=-1) + 3",
    }


@pytest.fixture(name="chosen")
def _chosen(tmp_path, monkeypatch):
    """Makes a tree with one module, and chooses 3 of its mutants."""
    files = {
        "bert_tf/a.py": "def f(x):\n" + "    x = x + 1\n" * 6,
        "tests/test_a.py": "",
        "tools/mutants/targets.py": (
            "from tools.mutants.targets import Target\n"
            'TARGETS = (Target("a", ("test_a.py",), 3),)\n'
        ),
        "chosen.txt": "a:f:constant:1\na:g:not:0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    chosen = tmp_path / "chosen.txt"
    monkeypatch.setattr(mutants, "_CHOSEN", chosen)
    monkeypatch.setattr(mutants, "_ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["mutants", f"--tree={tmp_path}"])
    return chosen


def test_mutants_that_are_gone_are_an_error(chosen):
    with pytest.raises(Exception, match=r"do not have: a:g:not:0\. Rename"):
        mutants.main()


def test_mutants_of_a_module_that_is_gone_are_an_error(chosen):
    (chosen.parent / "bert_tf/a.py").unlink()
    with pytest.raises(Exception, match="have: a:f:constant:1, a:g:not:0"):
        mutants.main()
    sys.argv.append("--choose")
    with pytest.raises(Exception, match=r"lists bert_tf/a\.py, which does not"):
        mutants.main()
    assert "a:g:not:0" in chosen.read_text()


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--only=hat", "No mutant .* contains 'hat'"),
        ("--workers=0", "at least 1: 0"),
        ("--tree=/nowhere", "must be a clone that has bert_tf: /nowhere"),
    ],
)
def test_wrong_flags(flag, message, chosen):
    sys.argv.append(flag)
    with pytest.raises(Exception, match=message):
        mutants.main()


def test_choosing_keeps_mutants_that_exist(chosen):
    """The sites are arithmetic and constant of 6 lines: 4 to each third."""
    sys.argv.append("--choose")
    mutants.main()
    assert chosen.read_text().split() == [
        "a:f:constant:1",
        "a:f:arithmetic:2",
        "a:f:arithmetic:4",
    ]
