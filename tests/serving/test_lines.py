"""Tests of parsing queries from lines, and of writing answers."""

import json

from bert_tf.serving import served_heads, serving_lines

import pytest


def parse(head, text, input_format="plain", takes_pairs=True, top_k=5):
    parser = serving_lines.Parser(
        served_heads.HEADS[head].asks, takes_pairs, input_format, top_k
    )
    return parser.parse(text, "f, line 3")


@pytest.mark.parametrize(
    ("head", "text", "columns"),
    [
        ("encoder", "a b\n", {"text_a": "a b", "text_b": ""}),
        ("classification", "a\tb c\r\n", {"text_a": "a", "text_b": "b c"}),
        ("next_sentence", "a\tb\t \t", {"text_a": "a", "text_b": "b"}),
        ("tagging", "a\tb", {"text": "a\tb"}),
        ("masked_lm", " a [MASK]\tb", {"text": " a [MASK]\tb"}),
        ("span", "who?\tIt was.", {"question": "who?", "context": "It was."}),
        (
            "multiple_choice",
            "He\tran\tsat",
            {"prompt": "He", "choices": ("ran", "sat")},
        ),
    ],
)
def test_plain_lines(head, text, columns):
    assert parse(head, text).columns == columns


def test_columns_that_would_be_ignored():
    def problem(head, text, takes_pairs=True):
        with pytest.raises(ValueError, match=r"^f, line 3: ") as caught:
            parse(head, text, takes_pairs=takes_pairs)
        return str(caught.value)

    assert problem("classification", "a\tb", takes_pairs=False) == (
        "f, line 3: 2 columns with tabs between, and the model takes one. "
        "Expected a text. If it was trained on two, give --pairs. A text that "
        "holds tabs is given by --input_format=jsonl. Received: 'a\\tb'"
    )
    for head in ("classification", "encoder", "next_sentence"):
        assert "3 columns with" in problem(head, "a\tb\tc")
        assert "--pairs" not in problem(head, "a\tb\tc")
    said = problem("span", "7\twho?\tIt was.")
    assert "the model takes two. Expected question and context, with" in said
    # Empty fields may be dropped.
    query = parse("classification", "a\t \t", takes_pairs=False)
    assert query.columns == {"text_a": "a"}


@pytest.mark.parametrize("head", ["classification", "encoder"])
def test_a_second_text_that_would_be_ignored(head):
    def columns(row):
        return parse(head, json.dumps(row), "jsonl", takes_pairs=False).columns

    for blank in ({}, {"text_b": None}, {"text_b": ""}, {"text_b": " "}):
        assert columns({"text": "a"} | blank) == {"text_a": "a"}
    for filled in ("b", 0, ["b"]):
        with pytest.raises(ValueError, match="line 3: the model takes one te"):
            columns({"text_a": "a", "text_b": filled})


@pytest.mark.parametrize(
    ("head", "row", "columns"),
    [
        ("encoder", {"text": "a"}, {"text_a": "a", "text_b": ""}),
        (
            *("classification", {"text_a": "a", "text_b": "b\tc", "x": 1}),
            {"text_a": "a", "text_b": "b\tc"},
        ),
        (
            *("multiple_choice", {"prompt": "a\nb", "choices": ["c", " e"]}),
            {"prompt": "a\nb", "choices": ("c", " e")},
        ),
        # The value of another head's key is ignored.
        ("tagging", {"text": "a", "text_b": "b"}, {"text": "a"}),
    ],
)
def test_json_lines(head, row, columns):
    query = parse(head, json.dumps(row | {"id": [7]}), "jsonl")
    assert query.columns == columns
    assert query.key == [7]


_CHOICES = "multiple_choice"


@pytest.mark.parametrize(
    ("head", "text", "problem"),
    [
        ("tagging", " \t\n", "the line is empty. Expected a text."),
        ("masked_lm", "no mask", r"no \[MASK\].*Received: 'no mask'"),
        ("next_sentence", "alone", "text_b missing or empty"),
        ("span", "\tcontext", "question missing or empty"),
        ("span", "who?", "Expected question and context, with a tab"),
        (_CHOICES, "a\tb", "two choices or more"),
        (_CHOICES, "a\t\t", "choices missing or empty"),
        (_CHOICES, "a\tb\tc\t ", "none of them empty"),
        (
            *(_CHOICES, '{"prompt": "a", "choices": ["", ""]}'),
            "choices missing or empty.*none of them empty",
        ),
        ("encoder", "{", r"the line is not JSON \(Expecting prop"),
        pytest.param(
            *("encoder", '{"id": 1' + "0" * 5000 + "}"),
            r"the line is not JSON \(Exceeds the limit .*digits",
            id="many digits",
        ),
        pytest.param(
            *("encoder", '{"id": ' + "[" * 100_000 + "]" * 100_000 + "}"),
            r"the line is not JSON \(.* decoding a JSON array",
            id="many lists",
        ),
        ("encoder", '{"text": "a", "text": "b"}', "'text' appears twice"),
        ("encoder", "[1]", r"Received: \[1\]"),
        ("encoder", '{"txt": "a"}', "may be left out.*: keys txt$"),
        (
            *("encoder", '{"text": "a", "text_pair": "b"}'),
            "there is no key text_b.*keys text, text_pair",
        ),
        (
            *("encoder", '{"text": "a", "text_a": "c"}'),
            "another name for text_a.*Received: keys text, text_a$",
        ),
        ("masked_lm", '{"foo": 1}', 'with "text". Received: keys foo$'),
        ("span", "{}", 'with "question", "context".*: keys none$'),
        ("encoder", '{"text": null}', "Received: text=null$"),
        ("encoder", '{"text_a": 1}', "text_a=1"),
        ("encoder", '{"text": " "}', "text_a missing or empty"),
        (_CHOICES, '{"prompt": "a", "choices": ["b", 2]}', "choices="),
        (
            *(_CHOICES, '{"prompt": "a", "choices": ["b", "\\ud83d"]}'),
            "half a surrogate pair",
        ),
        ("encoder", '{"text": "a \\ud83d"}', "half a surrogate pair"),
        ("encoder", '{"text": "a", "id": "\\ud83d"}', "half a surrogate pair"),
    ],
)
def test_what_is_wrong_with_a_line(head, text, problem):
    input_format = "jsonl" if text[0] in "{[" else "plain"
    with pytest.raises(ValueError, match=f"^f, line 3: .*{problem}"):
        parse(head, text, input_format)


def test_filled_texts_that_no_memory_holds():
    text = "[MASK] " + "a" * (1 << 20)
    assert parse("masked_lm", text).length == len(text)
    with pytest.raises(ValueError, match=r"100 masks in .*top_k=5"):
        parse("masked_lm", "[MASK] " * 99 + text)


_MASKS = {
    "masks": [
        [
            {"piece": "##s", "score": 0.5, "text": "as\nb [MASK]"},
            {"piece": "t", "score": 0.25, "text": "a t\nb [MASK]"},
        ],
        [{"piece": "c", "score": 0.75, "text": "a [MASK]\nb c"}],
    ]
}
_ENTITY = {"type": "loc", "start": 1, "end": 6, "text": "Rome,\tx"}
_TOKENS = [
    {"token": "the", "start": 0, "end": 3, "probability": 0.25},
    {"token": "chef", "start": 4, "end": 8, "probability": 0.75},
    {"token": "##s", "start": 8, "end": 9, "probability": 0.625},
]


@pytest.mark.parametrize(
    ("columns", "answer", "tsv", "plain"),
    [
        (
            {"text": "a [MASK]\nb [MASK]"},
            _MASKS,
            "as b c\t##s\t0.5\tc\t0.75",
            "as b c",
        ),
        (
            {"text": "[MASK] [MASK] [MASK]"},
            {
                "masks": [
                    [{"piece": x, "text": text, "score": 1}]
                    for x, text in (
                        ("[MASK]", "[MASK] [MASK] [MASK]"),
                        ("a", "[MASK] a [MASK]"),
                        ("b", "[MASK] [MASK] b"),
                    )
                ]
            },
            "[MASK] a b\t[MASK]\t1\ta\t1\tb\t1",
            "[MASK] a b",
        ),
        (
            {"text": "x"},
            {"entities": [_ENTITY, _ENTITY]},
            "loc\t1\t6\tRome, x\tloc\t1\t6\tRome, x",
            "loc: Rome, x; loc: Rome, x",
        ),
        ({"text": "x"}, {"entities": []}, "", ""),
        (
            {"text": "the chefs"},
            {"tokens": _TOKENS},
            "the\t0\t3\t0.25\tchef\t4\t8\t0.75\t##s\t8\t9\t0.625",
            "chef ##s",
        ),
        (
            {"text_a": "x"},
            {"label": "a b", "probabilities": {"a b": 0.75, "c": 0.25}},
            "a b\t0.75\t0.25",
            "a b",
        ),
        (
            {"text_a": "x"},
            {"labels": ["c", "a b"], "probabilities": {"a b": 0.75, "c": 0.9}},
            "c; a b\t0.75\t0.9",
            "c; a b",
        ),
        (
            {"text_a": "x"},
            {"labels": [], "probabilities": {"a b": 0.25, "c": 0.0}},
            "\t0.25\t0.0",
            "",
        ),
        ({"text_a": "x"}, {"score": -1.5}, "-1.5", "-1.5"),
        ({"text_a": "x"}, {"vector": [1.0, -0.5]}, "1.0\t-0.5", "1.0 -0.5"),
        (
            {"prompt": "p", "choices": ("u", "v w")},
            {"choice": 1, "probabilities": [0.25, 0.75]},
            "1\t0.25\t0.75",
            "v w",
        ),
        (
            {"question": "q", "context": "a b"},
            {"answer": "b", "start": 2, "end": 3, "score": 1.0},
            "b\t2\t3\t1.0",
            "b",
        ),
    ],
)
def test_written_answers(columns, answer, tsv, plain):
    query = serving_lines.Query(columns, "k")
    assert serving_lines.write(query, answer, "tsv") == tsv
    assert serving_lines.write(query, answer, "plain") == plain
    line = serving_lines.write(query, answer, "jsonl")
    assert json.loads(line) == {"id": "k", **answer}
    assert "\n" not in line
