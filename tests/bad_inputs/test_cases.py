"""The tables of cases, and what is refused in them."""

from tests.bad_inputs import cases, matrix

import pytest

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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a", "x.txt:2: expected `name: flags`"),
        ("a: 'b", "x.txt:2: No closing quotation"),
        ("a: @in => x", "x.txt:2: no group @in above"),
        ("a: => x\na: => y", "x.txt:3: there are two cases 'a'"),
        ("a: --b=1", "x.txt:2: 'a' has no error"),
        ("  x", "x.txt:2: an error without a case"),
        ("a $: --b=$\n  c", "x.txt:3: expected `word => error`"),
    ],
)
def test_malformed(text, problem, monkeypatch, tmp_path):
    (tmp_path / "x.txt").write_text(f"@good: run_x\n{text}\n")
    monkeypatch.setattr(cases, "_FOLDER", tmp_path)
    with pytest.raises(ValueError, match=problem.replace("$", "[$]")):
        cases.read("x")
