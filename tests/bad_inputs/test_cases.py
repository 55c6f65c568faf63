"""The tables of cases, and the mistakes in them that are rejected."""

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
