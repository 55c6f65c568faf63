"""The tables of cases, and the mistakes in them that are rejected."""

import pathlib

from tests.bad_inputs import cases, matrix

_TABLE = r"""
@good: run_x --check_only --rate=1
@in: !rate --input={data}/$
# A heading
a: @in=b.txt X='{{"a": 1}}' word => one line
b: --text='a\nb<x*3>' \
    -- --flag=1
c:
  two
  lines
name $: @in=$
  d => in one
=== Right
a: =>
"""


def test_a_table(monkeypatch, tmp_path):
    (tmp_path / "x.txt").write_text(_TABLE)
    monkeypatch.setattr(cases, "_FOLDER", tmp_path)
    script, wrong, right = cases.read("x")
    assert script == matrix.Script("run_x", {"rate": "1"}, True)
    flags = {"rate": None, "input": "{data}/b.txt"}
    assert wrong == {
        "a": matrix.Case(
            flags, "one line", {"X": '{{"a": 1}}'}, arguments=("word",)
        ),
        "b": matrix.Case(
            {"text": "a\nbxxx"}, "two lines", arguments=("--flag=1",)
        ),
        "c": matrix.Case({}, "two lines"),
        "name d": matrix.Case({"rate": None, "input": "{data}/d"}, "in one"),
    }
    assert right == {"a": matrix.Case({}, "")}


def test_ci_tries_each_damaged_model():
    tried = set()
    for path in pathlib.Path(__file__).parent.glob("*.txt"):
        _, wrong, _ = cases.read(path.stem)
        for name in matrix.names_in_ci(wrong):
            case = wrong[name]
            words = [*map(str, case.flags.values()), *case.arguments]
            tried |= cases.names_of(" ".join(words))
    # A row that shares its error with an earlier one runs in no table.
    assert not cases.DAMAGED - tried
