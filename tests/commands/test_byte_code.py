"""The example of symbols: what it reads, and what counting alone guesses."""

import dataclasses
import re

from bert_tf.pretraining_data import pretraining_sequences
from examples import byte_code
from examples.byte_code import Function
from tests import pretraining_records

import pytest

_SOURCE = """
CONSTANT = 1 + 2

def f(a, b):
    def inner(c):
        return c if a <= b else None
    return inner(a + b) * CONSTANT

class X:
    def g(self):
        return [f(x, "text") for x in self]
"""


def test_functions_of_a_module():
    found = list(byte_code.functions(compile(_SOURCE, "x", "exec")))
    # Those of the module and of the class are none.
    assert len(found) >= 3
    symbols = {symbol for row in found for symbol in row}
    assert all(symbol.split() == [symbol] for symbol in symbols)
    assert {"BINARY_OP:+", "BINARY_OP:*", "LOAD_CONST:str"} <= symbols
    assert any(re.match("COMPARE_OP:.*<=", symbol) for symbol in symbols)
    assert any(symbol.startswith("CALL:") for symbol in symbols)
    # Names would tell the package.
    assert not [x for x in symbols if "inner" in x or "CONSTANT" in x]


def test_what_is_written(tmp_path):
    files = [
        [Function("p", ("A", "B")), Function("p", ("C",))],
        [Function("q", ("D", "E:+"))],
    ]
    byte_code.write_text(tmp_path / "x.txt", files)
    assert (tmp_path / "x.txt").read_text() == "A B\nC\n\nD E:+\n"
    byte_code.write_table(tmp_path / "x.tsv", files[1])
    assert (tmp_path / "x.tsv").read_text() == "package\ttext\nq\tD E:+\n"


def test_packages_with_the_most_functions():
    files = [[Function("many", ("A",))] * 2 for _ in range(10)]
    files += [[Function("few", ("A",))] for _ in range(12)]
    files += [[Function("one", ("A",))] * 90]
    assert byte_code.largest_packages(files) == ["few", "many"]


def _row(letters, hidden=()):
    return byte_code.Row([ord(x) for x in letters], hidden)


def test_baselines():
    train = [_row("^ABABACADABC$")]
    held_out = [_row("^ABCX$", (1, 2, 3, 4)), _row("^ABAB$")]
    # Behind A most often B, behind B A, behind C A, and at the beginning A.
    # Between A and C stands B; B and X never had anything between them.
    found = byte_code.baselines(train, held_out)
    assert found == {"bigram": 2 / 4, "both": 2 / 4}
    # Now C has, between B and X; then X, between C and the end.
    found = byte_code.baselines([*train, _row("BCX")], held_out)
    assert found == {"bigram": 2 / 4, "both": 3 / 4}
    found = byte_code.baselines([*train, _row("BCX$")], held_out)
    assert found == {"bigram": 2 / 4, "both": 1}


def test_rows_are_read_as_they_were(tmp_path):
    settings = pretraining_sequences.Settings(16, 4, objective="full_sentences")
    for name, dynamic in (("hidden", False), ("shown", True)):
        (tmp_path / name).mkdir()
        pretraining_records.write_made(
            tmp_path / name,
            dataclasses.replace(settings, dynamic_masking=dynamic),
        )
    hidden, shown = (
        list(byte_code.read_rows(tmp_path / name))
        for name in ("hidden", "shown")
    )
    assert [row.ids for row in hidden] == [row.ids for row in shown]
    assert not any(row.hidden for row in shown)
    for row in hidden:
        # 15 % of the pieces between [CLS] and [SEP], at least one.
        assert 1 <= len(set(row.hidden)) == len(row.hidden) <= 4
        assert min(row.hidden) > 0
        assert max(row.hidden) < len(row.ids) - 1


def test_numbers_are_read(tmp_path):
    (tmp_path / "x").write_text("a = 0.25\nglobal_step = 7\n")
    assert byte_code.result(tmp_path / "x", "a") == 0.25


def test_files_of_a_library(tmp_path, monkeypatch):
    function = "def f(a):\n" + "    a += 1\n" * 9 + "    return a\n"
    files = {
        "one.py": function + "def g(): return 1\n",
        "package/two.py": function + function.replace("+=", "*="),
        "package/same.py": function,
        "package/tests/three.py": function.replace("+=", "-="),
        "site-packages/four.py": function.replace("+=", "//="),
        "no_python.py": "def f(:",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    paths = {"stdlib": str(tmp_path)}
    monkeypatch.setattr(byte_code.sysconfig, "get_paths", lambda: paths)
    ((one,), (two,)) = byte_code.read_library()
    assert [one.package, two.package] == ["one", "package"]
    assert "BINARY_OP:+=" in one.symbols
    assert "BINARY_OP:*=" in two.symbols


@pytest.mark.exhaustive
def test_library():
    files = byte_code.read_library()
    rows = [x.symbols for own in files for x in own]
    assert len(rows) == len(set(rows)) > 3000
    assert min(map(len, rows)) >= 16
    assert len(byte_code.largest_packages(files)) == 6
