import csv
import json

from bert_tf.errors import InputError
from bert_tf.tasks import table_formats, tables
from bert_tf.tasks.augmentation import table_lines

import pytest

_CELLS = ["1", 'so, "he"', "a\nb", "\u2028x\ry", ""]


def _table(path, text, columns, **how):
    path.write_bytes(text.encode())
    return table_lines.Table(
        str(path), columns, table_formats.of_name(str(path)), **how
    )


def test_csv_is_read_back(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(table_lines.line(_CELLS, "csv") + "\n", newline="")
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [_CELLS]
    assert table_lines.line([""], "csv") == '""'
    assert table_lines.line(['"a"', "b,c", ""], "tsv") == '"a"\tb,c\t'


def test_other_columns_stay_as_they_are(tmp_path):
    text = "\ufeffid\ttext\ty\r\n7\tx z\t\r\n"
    table = _table(tmp_path / "a.tsv", text, {"t": "text"})
    assert list(table.header()) == ["id\ttext\ty"]
    (row,) = table.rows()
    assert table_lines.changed(row, {"t": "w"}) == ["7", "w", ""]
    assert row.cells == ["7", "x z", ""]
    table = _table(tmp_path / "a.csv", "x,y\nz,w\n", {"t": 1}, has_header=False)
    assert not list(table.header())
    assert [row.texts["t"] for row in table.rows()] == ["y", "w"]


def test_semicolons_are_written_as_they_are_read(tmp_path):
    text = '"b; c";"note, too";y\n"d; ""e""";"f, g";\nh;i;1\n'
    table = _table(tmp_path / "a.csv", text, {"t": 0})
    rows = [*table.header(), *(table.line(row.cells) for row in table.rows())]
    assert list(csv.reader(rows, delimiter=";")) == [
        ["b; c", "note, too", "y"],
        ['d; "e"', "f, g", ""],
        ["h", "i", "1"],
    ]
    # The output is read with semicolons, too.
    path = tmp_path / "b.csv"
    path.write_text("\n".join(rows) + "\n")
    again = tables.read_columns(str(path), {"y": "y"}, file_format="csv")
    assert [row for _, row in again] == [{"y": ""}, {"y": "1"}]


def test_quotes_of_spreadsheets_are_warned_of_once(tmp_path, caplog):
    for name, is_own in (("a.tsv", True), ("b.tsv", False)):
        text = 'x\ty\n"a ""b"""\tc\n'
        table = _table(tmp_path / name, text, {"t": "x"}, is_own=is_own)
        for _ in range(2):
            assert len(list(table.rows())) == 1
    warning = "a.tsv: texts in quotes with doubled quotes inside: 1, the first"
    assert len(caplog.messages) == 1
    assert warning in caplog.text


def test_json_keeps_values_and_keys(tmp_path):
    cells = {"id": 1e3, "tags": ["ä", None], "text": 5, "b": "x", "": True}
    path = tmp_path / "a.jsonl"
    table = _table(path, f"{json.dumps(cells)}\n\n", {"t": "text", "u": "b"})
    (row,) = table.rows()
    assert not list(table.header())
    # A number stays a number if it does not change.
    same = table_lines.changed(row, {"t": "5", "u": "y"})
    assert same == cells | {"b": "y"}
    assert json.loads(table_lines.line(same, "jsonl")) == same
    assert list(same) == list(cells)
    assert table_lines.changed(row, {"t": "6"})["text"] == "6"
    table = _table(path, '{"text": "a", "id": "\\ud83d"}\n', {"t": "text"})
    with pytest.raises(InputError, match="line 1: a text holds half a surrog"):
        list(table.rows())


def test_windows_have_bounded_rows_and_characters(tmp_path, monkeypatch):
    text = "text\n" + "".join(f"{'x' * n}\n" for n in (1, 2, 3, 9, 1, 1))
    rows = list(_table(tmp_path / "a.tsv", text, {"t": "text"}).rows())

    def sizes(most):
        return [len(x) for x in table_lines.windows(iter(rows), most)]

    assert sizes(4) == [4, 2]
    assert sizes(6) == [6]
    monkeypatch.setattr(table_lines, "_MOST_IN_WINDOW", 5)
    # A line of nine characters gets a separate window.
    assert sizes(4) == [2, 1, 1, 2]


def test_windows_read_no_further_than_they_must():
    taken = []

    def rows():
        for number in range(10):
            taken.append(number)
            yield tables.Row(number, ["x"], {"t": 0}, {"t": "x"})

    next(table_lines.windows(rows(), 3))
    assert len(taken) == 4
