import csv
import json

from bert_tf.tasks import left_out_rows, table_formats, tables

import pytest

# Code points that str.splitlines splits at, which are plain text here.
_NOT_LINE_ENDS = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g"


def _write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return str(path)


def _read(path, columns, **options):
    return list(tables.read_columns(path, columns, **options))


def test_tsv_takes_quotes_and_odd_separators_as_text(tmp_path):
    path = _write(
        tmp_path / "a.tsv", f'id\ttext\n1\t"so" he\n2\t{_NOT_LINE_ENDS}'
    )
    rows = [(2, {"text": '"so" he'}), (3, {"text": _NOT_LINE_ENDS})]
    assert _read(path, {"text": "text"}) == rows
    # The byte order mark and carriage returns are removed.
    path = _write(tmp_path / "a.tsv", "Label\tText\r\n1\tx y\r\n", "utf-8-sig")
    assert _read(path, {"label": "Label", "text": "Text"}) == [
        (2, {"label": "1", "text": "x y"})
    ]


def test_columns_by_number(tmp_path, caplog):
    path = _write(tmp_path / "a.tsv", "x\ty\nz\tw\n")
    rows = [(1, {"t": "y"}), (2, {"t": "w"})]
    with caplog.at_level("INFO", logger="absl"):
        assert _read(path, {"t": "1"}, has_header=False) == rows
        assert _read(path, {"t": 1}) == rows[1:]
        assert not caplog.text
        for _ in range(2):
            assert _read(path, {"t": "1"}) == rows[1:]
    assert caplog.text.count("a.tsv is taken for the names") == 1
    assert "columns: x, y. Use --has_header=false" in caplog.text


def test_csv_with_commas_quotes_and_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    rows = [["a, b", 'say "x"'], ["two\nlines", ""], ["last", "y" * 200_000]]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["text", "other"], *rows])
    found = _read(str(path), {"t": "text", "o": "other"}, file_format="csv")
    assert [list(row.values()) for _, row in found] == rows
    assert [line for line, _ in found] == [2, 3, 5]


def test_jsonl(tmp_path):
    path = _write(
        tmp_path / "a.jsonl",
        json.dumps({"t": "é\u2028x", "n": 1, "b": True}) + "\n\n"
        '{"t": "", "n": 0.5, "b": false}\n',
    )
    columns = {"text": "t", "number": "n", "flag": "b"}
    assert _read(path, columns, file_format="jsonl") == [
        (1, {"text": "é\u2028x", "number": "1", "flag": "true"}),
        (3, {"text": "", "number": "0.5", "flag": "false"}),
    ]


@pytest.mark.parametrize("value", ["null", "NaN", '{"a": "x"}', '["x"]'])
def test_json_values_that_are_no_text(tmp_path, value):
    path = _write(tmp_path / "a.jsonl", f'{{"t": "x"}}\n{{"t": {value}}}\n')
    with pytest.raises(ValueError, match="a text or a number") as caught:
        _read(path, {"text": "t"}, file_format="jsonl")
    assert str(caught.value) == (
        f"{path}, line 2: 't' is no text. Expected a text or a number. "
        f"Received: t={value}. Write one, or remove the line."
    )


@pytest.mark.parametrize(
    "value", ['"nice \\ud83d"', '["\\ude00\\ud83d"]', '"\\uDC00"']
)
def test_half_a_surrogate_pair(tmp_path, value):
    whole = '{"t": "\\ud83d\\ude00", "other": "\\ud83d"}'
    path = _write(tmp_path / "a.jsonl", f'{whole}\n{{"t": {value}}}\n')
    rows = tables.read_columns(
        path, {"text": "t"}, file_format="jsonl", lists=["text"]
    )
    assert next(rows) == (1, {"text": "😀"}), "other keys are not read"
    with pytest.raises(ValueError, match=r"a\.jsonl, line 2: .*surrogate pair"):
        next(rows)


def test_json_lists_are_taken_where_they_are_expected(tmp_path):
    path = _write(tmp_path / "a.jsonl", '{"t": ["é", 1, true]}\n{"t": [null]}')
    rows = tables.read_columns(
        path, {"text": "t"}, file_format="jsonl", lists=["text"]
    )
    line, row = next(rows)
    assert (line, json.loads(row["text"])) == (1, ["é", "1", "true"])
    with pytest.raises(ValueError, match=r"line 2.*list of them.*t=\[null\]"):
        next(rows)


def test_short_rows_of_a_file_known_to_be_broken_are_counted(tmp_path, caplog):
    path = _write(tmp_path / "a.tsv", "a\tb\n1\t2\nbroken\n3\t4\nbroken too\n")
    rows = _read(path, {"b": "b"}, skip_short_rows=True)
    assert rows == [(2, {"b": "2"}), (4, {"b": "4"})]
    assert "skipped 2 rows" in caplog.text
    assert "line 3" in caplog.text


def test_a_row_with_more_columns_than_the_first(tmp_path):
    message = r"line 2: more columns than the first row. Expected 2. Received: "
    path = _write(tmp_path / "a.csv", "label,text\nspam,Hello, you won 5,000\n")
    columns = {"text": "text"}
    with pytest.raises(ValueError, match=rf"a\.csv, {message}4.*' you won 5'"):
        _read(path, columns, file_format="csv")
    path = _write(tmp_path / "a.tsv", "spam\tx\nham\ty\tz\n")
    with pytest.raises(ValueError, match=rf"a\.tsv, {message}3.*remove tabs"):
        _read(path, {"text": 1}, has_header=False)
    # Files with known faults, such as QQP's, are accepted as they are.
    rows = _read(path, {"y": "x"}, skip_short_rows=True)
    assert rows == [(2, {"y": "y"})]


def test_empty_lines_may_only_end_a_file(tmp_path):
    path = _write(tmp_path / "a.tsv", "a\n1\n\n\n")
    assert _read(path, {"a": "a"}) == [(2, {"a": "1"})]
    path = _write(tmp_path / "b.tsv", "a\n1\n\n\n2\n")
    with pytest.raises(ValueError, match=r"b\.tsv, line 3: the line is empty"):
        _read(path, {"a": "a"})


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file has no rows"),
        (
            "a\tb\n",
            {},
            "has no rows. Expected at least one row under the header",
        ),
        ("a\tc\n1\t2\n", {}, "line 1: the column 'b' is missing .*: a, c"),
        ("b\tb\n1\t2\n", {}, "line 1: the column 'b' appears twice"),
        (
            "a\tb\n1\t2\n3\n",
            {},
            "line 3: a column is missing. Expected at least 2",
        ),
        ("1\t2\n", {"has_header": False}, "no header, so .* by number"),
        (
            'a,b\n1,"2\n3,4\n',
            {"file_format": "csv"},
            "line 2: .* not valid CSV",
        ),
        ('a,b\n1,"2"x\n', {"file_format": "csv"}, "line 2: .* not valid CSV"),
        ("", {"file_format": "jsonl"}, "the file has no rows"),
        ('{"b": ""}\n{"b"\n', {"file_format": "jsonl"}, "line 2: .* not JSON"),
        pytest.param(
            '{"b": 1}\n{"b": 1' + "0" * 5000 + "}\n",
            {"file_format": "jsonl"},
            r"line 2: the line is not JSON \(Exceeds the limit .*digits",
            id="many digits",
        ),
        pytest.param(
            '{"b": ' + "[" * 100_000 + "]" * 100_000 + "}\n",
            {"file_format": "jsonl"},
            r"line 1: the line is not JSON \(.* decoding a JSON array",
            id="many lists",
        ),
        ('["b"]\n', {"file_format": "jsonl"}, "line 1: expected a JSON object"),
        ('{"a": 1}\n', {"file_format": "jsonl"}, "line 1: keys are missing: b"),
    ],
)
def test_bad_files(tmp_path, text, options, message):
    path = _write(tmp_path / "file.tsv", text)
    with pytest.raises(ValueError, match=rf"file\.tsv.*{message}"):
        _read(path, {"b": "b"}, **options)


def test_missing_file_wrong_encoding_and_names(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.tsv"):
        _read(str(tmp_path / "none.tsv"), {"b": "b"})
    path = _write(tmp_path / "latin.tsv", "b\nok\ncafé\n", "latin-1")
    with pytest.raises(ValueError, match=r"latin\.tsv, line 3: .*iconv -f CP"):
        _read(path, {"b": "b"})
    names = ["a.csv", "A.CSV", "a.jsonl", "a.json", "a.tsv", "a.txt", "a"]
    formats = ["csv", "csv", "jsonl", "jsonl", "tsv", "tsv", "tsv"]
    assert list(map(table_formats.of_name, names)) == formats


_RECORDS = [{"text": "a, b", "label": "x"}, {"text": "c\u2028;", "label": "y"}]


@pytest.mark.parametrize(
    ("name", "text", "encoding", "lines"),
    [
        ("a.csv", 'text;label\n"a, b";x\n"c\u2028;";y', "utf-8", [2, 3]),
        ("a.txt", 'text;label\na, b;x\n"c\u2028;";y', "utf-8", [2, 3]),
        ("a.csv", 'text,label\n"a, b",x\nc\u2028;,y', "utf-8", [2, 3]),
        ("a.csv", "'text','label'\n'a, b','x'\nc\u2028;,'y'", "utf-8", [2, 3]),
        ("a.csv", 'text;label\r\na, b;x\r\n"c\u2028;";y', "utf-16", [2, 3]),
        ("a.tsv", "text\tlabel\na, b\tx\nc\u2028;\ty", "utf-16-be", [2, 3]),
        ("a.json", json.dumps(_RECORDS, indent=1), "utf-8", [2, 6]),
        ("a.txt", json.dumps(_RECORDS, indent=1), "utf-8-sig", [2, 6]),
        ("a.tsv", json.dumps(_RECORDS), "utf-8", [1, 1]),
        ("a.txt", "\n".join(map(json.dumps, _RECORDS)), "utf-8", [1, 2]),
        ("a.csv", "\n".join(map(json.dumps, _RECORDS)), "utf-16", [1, 2]),
    ],
)
def test_formats_that_the_first_line_tells(
    tmp_path, name, text, encoding, lines
):
    mark = "\ufeff" * (encoding == "utf-16-be")
    path = _write(tmp_path / name, mark + text, encoding)
    columns = {"text": "text", "label": "label"}
    found = _read(path, columns, file_format=table_formats.find(path))
    assert found == list(zip(lines, _RECORDS, strict=True))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("has_header", [True, False])
def test_a_line_that_names_the_separator(tmp_path, name, separator, has_header):
    rows = f"sep={separator}\r\ntext{separator}n\r\nx{separator}1\r\n"
    path = _write(tmp_path / name, rows)
    form = table_formats.find(path, has_header)
    message = r"line 1: the line names the separator.*Remove the line"
    with pytest.raises(ValueError, match=message):
        _read(path, {"text": 0}, file_format=form, has_header=has_header)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_lines_that_end_in_carriage_returns(tmp_path, name, encoding):
    text = '{"t": 1}\r{"t": 2}\r' if name == "a.jsonl" else "t\rx\ry\r"
    form = table_formats.of_name(name)
    for end in ("", "\n"):
        path = _write(tmp_path / name, text + end, encoding)
        with pytest.raises(ValueError, match=r"carriage returns \(CR\) in"):
            _read(path, {"t": "t"}, file_format=form)
    path = _write(tmp_path / name, text.replace("\r", "\r\n"), encoding)
    assert len(_read(path, {"t": "t"}, file_format=form)) == 2


def test_semicolons_of_texts_separate_nothing(tmp_path):
    path = _write(tmp_path / "a.csv", "I came; I saw\nand won; at last\n")
    assert table_formats.find(path, has_header=False) == "csv"
    how = {"file_format": "csv", "has_header": False}
    assert _read(path, {"t": 0}, **how)[0] == (1, {"t": "I came; I saw"})
    path = _write(tmp_path / "a.tsv", "a;b\ttext\n1\t2\n")
    assert table_formats.find(path) == "tsv"


def test_errors_of_arrays_name_the_line(tmp_path):
    path = _write(tmp_path / "a.json", '[\n{"t": 1},\n{"t": }\n]')
    message = r"a\.json, line 3: the array is not JSON \(Expecting value\)"
    with pytest.raises(ValueError, match=message):
        _read(path, {"t": "t"}, file_format="jsonl")
    path = _write(tmp_path / "a.json", '[{"t": 1},\n\n"t"]')
    with pytest.raises(ValueError, match=r"line 3: expected a JSON object"):
        _read(path, {"t": "t"}, file_format="jsonl")
    (tmp_path / "a.json").write_bytes(b"\xff\xfea\x00b")
    with pytest.raises(ValueError, match="begins as UTF-16 and is not"):
        _read(path, {"t": "t"}, file_format="jsonl")


def test_a_column_under_another_name_is_suggested(tmp_path):
    path = _write(tmp_path / "a.csv", "Label,Sentence\nx,y\n")
    with pytest.raises(ValueError, match=r"Did you mean 'Sentence'\? Rec"):
        _read(path, {"text": "sentences"}, file_format="csv")
    path = _write(tmp_path / "a.jsonl", '{"Sentence": "x"}\n')
    with pytest.raises(ValueError, match=r"Did you mean 'Sentence'\? Rec"):
        _read(path, {"text": "sentence"}, file_format="jsonl")


def test_a_column_that_appears_twice(tmp_path):
    path = _write(tmp_path / "a.csv", "text,label,label\nx,1,2\n")
    with pytest.raises(ValueError, match=r"twice in the header\. Give its num"):
        _read(path, {"label": "label"}, file_format="csv")
    found = _read(path, {"label": "2"}, file_format="csv")
    assert found == [(2, {"label": "2"})]


@pytest.mark.parametrize("form", ["%s", "[%s]", '[{"a": 0},\n%s]'])
def test_a_key_that_appears_twice(tmp_path, form):
    row = '{"t": "x", "n": 1, "t": "y"}'
    path = _write(tmp_path / "a.json", form % row)
    line = 1 + form.count("\n")
    message = rf"a\.json, line {line}: the key 't' appears twice. Remove one"
    with pytest.raises(ValueError, match=message):
        list(tables.json_objects(path))
    left_out = left_out_rows.LeftOut(path, strict=False)
    if form == "%s":
        assert not list(tables.json_objects(path, left_out))
        assert left_out.count == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "text\tn\nx\t1\n"),
        ("a.tsv", '{"text": "x", "n": 1}\n'),
        ("a.csv", "text;n\nx;1\n"),
    ],
)
def test_addresses_as_of_a_bucket(tmp_path, name, text):
    """TensorFlow opens them, whose files have other methods."""
    path = "file://" + _write(tmp_path / name, text)
    form = table_formats.find(path)
    assert form == table_formats.find(str(tmp_path / name))
    found = _read(path, {"text": "text", "n": "n"}, file_format=form)
    assert [row for _, row in found] == [{"text": "x", "n": "1"}]


def test_a_stray_quote_does_not_read_the_rest_of_the_file(tmp_path):
    rest = f"x{'y' * (1 << 20)}\n" * 40
    path = _write(tmp_path / "a.csv", f'text\na\n"b\n{rest}')
    message = r"a\.csv, line 3: .*larger than field limit \(33554432\)"
    with pytest.raises(ValueError, match=message):
        _read(path, {"text": "text"}, file_format="csv")


def test_utf_16_without_a_mark_is_no_text(tmp_path):
    path = _write(tmp_path / "a.tsv", "text\nx\n", "utf-16-le")
    with pytest.raises(ValueError, match="UTF-16 without a byte-order mark"):
        _read(path, {"text": "text"})


@pytest.mark.parametrize("there", [True, False])
def test_columns_that_a_table_may_lack(tmp_path, there):
    header, rows = ["a", *["b"] * there], ["x", *["y"] * there]
    expected = dict(zip(header, rows, strict=True))
    for name, separator in (("1.tsv", "\t"), ("1.csv", ",")):
        path = _write(
            tmp_path / name, f"{separator.join(header)}\n{separator.join(rows)}"
        )
        how = {"file_format": table_formats.of_name(path), "optional": ("b",)}
        found = tables.read_columns(path, {"a": "a", "b": "b"}, **how)
        assert [row for _, row in found] == [expected]
    with pytest.raises(ValueError, match="'c' is missing from the header"):
        list(tables.read_columns(path, {"c": "c"}, file_format="csv"))


@pytest.mark.parametrize(
    ("column", "warning"),
    [
        ("stars", "has no column 'stars', which is optional. Did you mean "),
        ("label", ""),
    ],
)
def test_an_optional_column_that_is_spelled_wrong(
    tmp_path, caplog, column, warning
):
    path = _write(tmp_path / "a.tsv", "text\tStar\nx\t1\n")
    columns = {"text_a": "text", "gold": column}
    rows = tables.read_columns(path, columns, optional=("gold",))
    assert [row for _, row in rows] == [{"text_a": "x"}]
    found = [f"{path} {warning}'Star'?"] if warning else []
    assert caplog.messages == found


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("a good film\tpos", r"Name it by --text_a_column; or if .*, give "),
        (
            "a good film\tpos",
            r"--has_header=false .* --text_a_column=0\. R",
        ),
        ("Label Text,The text", r"\(\.tsv, \.csv\), or --file_format=csv\. R"),
    ],
)
def test_a_header_that_is_none_or_not_split(tmp_path, line, hint):
    path = _write(tmp_path / "a.txt", f"{line}\n{line}\n")
    with pytest.raises(ValueError, match=f"'text' is missing from .*{hint}"):
        _read(path, {"text_a": "text"})
