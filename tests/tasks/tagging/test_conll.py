"""CoNLL files and their schemes, written files, words and windows."""

import itertools
import json

from bert_tf.tasks import tables
from bert_tf.tasks.tagging import conll, schemes, tagging_results, tagging_words
from bert_tf.vocabularies import word_pieces
from tests.tasks.tagging import words_of_text

import numpy as np
import pytest

_TEXT = """\
-DOCSTART-\tO

EU\tB-org
rejects\tO
German calls\tB-misc

\t
Peter\tB-per
Blackburn\tI-per

-DOCSTART-\tO
Café\tO
"""


def write(folder, text, name="file.conll"):
    path = folder / name
    path.write_bytes(text.encode())
    return str(path)


def test_read(tmp_path):
    path = write(tmp_path, "\ufeff" + _TEXT.replace("\n", "\r\n"))
    words = ("EU", "rejects", "German calls")
    labels = ("B-org", "O", "B-misc")
    assert conll.read(path, conll.Columns()) == [
        conll.Sentence(words, labels, (3, 4, 5), 1),
        conll.Sentence(("Peter", "Blackburn"), ("B-per", "I-per"), (8, 9), 1),
        conll.Sentence(("Café",), ("O",), (12,), 2),
    ]


# As on https://universaldependencies.org/format.html, "Empty Nodes".
_UNIVERSAL = """\
# newdoc id = first
# sent_id = 1
# text = vámonos al mar
1-2 vámonos _ _
1 vamos ir VERB
2 nos nosotros PRON
3-4 al _ _
3 a a ADP
4 el el DET
5 mar mar NOUN

# newdoc
# text = # Sue likes coffee
1 # # SYM
2 Sue Sue PROPN
3 likes like VERB
4 coffee coffee NOUN
4.1 likes like VERB
"""


def test_universal_dependencies(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    text = "".join(
        line
        if line.startswith("#")
        else line.strip().replace(" ", "\t")
        + "\t_" * (6 if line.strip() else 0)
        + "\n"
        for line in _UNIVERSAL.splitlines(keepends=True)
    )
    path = write(tmp_path, text)
    columns = conll.Columns(token=1, label=3)
    first, second = conll.read(path, columns)
    out = tmp_path / "out.conll"
    tagging_results.write_columns(
        *(str(out), path, columns, (first, second), "ABCDEFGHI")
    )
    rows = [x for x in out.read_text().splitlines() if x and x[0] != "#"]
    # Rows without a label have CoNLL-U's `_`.
    assert "".join(row[-1] for row in rows) == "_AB_CDEFGHI_"
    assert first.words == ("vamos", "nos", "a", "el", "mar")
    assert first.labels == ("VERB", "PRON", "ADP", "DET", "NOUN")
    assert second.words == ("#", "Sue", "likes", "coffee")
    assert (first.document, second.document) == (1, 2)
    assert f"{path}: skipped 3 rows" in caplog.text


def test_comments_that_look_like_words(tmp_path):
    # As in MultiCoNER: the comment has as many columns as words have.
    text = "# id 5239-aa3b domain=en\n# _ _ O\nway _ _ B-art\n"
    (found,) = conll.read(write(tmp_path, text), conll.Columns())
    assert found.words == ("#", "way")
    assert found.labels == ("O", "B-art")


@pytest.mark.parametrize("word", ["#id", "#newdoc", "#newpar", "#x=1", "#a="])
def test_hashtags_are_words(word, tmp_path):
    path = write(tmp_path, f"{word}\tO\nis\tO\n\n{word}\tB-x\n")
    first, second = conll.read(path, conll.Columns())
    assert (first.words, second.words) == ((word, "is"), (word,))


def test_columns_by_number_and_runs_of_spaces(tmp_path):
    path = write(tmp_path, "1 the  DT O \n2 cat NN B-x\n\n1 \u00a0 X O\n")
    columns = conll.Columns(token=1, label=-2)
    first, second = conll.read(path, columns)
    assert first.words == ("the", "cat")
    assert first.labels == ("DT", "NN")
    assert second.words == ("\u00a0",), "which is no separator"
    columns = conll.Columns(token=1, label=None, separator="space")
    assert conll.read(path, columns)[0].labels == ()


@pytest.mark.parametrize(
    ("start", "separator"),
    [("-DOCSTART-", "\t"), ("-DOCSTART- -X- O", "\t"), ("-DOCSTART-\tO", " ")],
)
def test_the_first_word_decides_what_stands_between_columns(
    start, separator, tmp_path
):
    word = "New York" if separator == "\t" else "Rome"
    source = write(tmp_path, f"{start}\n\n{word}{separator}B-LOC\n")
    columns = conll.Columns()
    (found,) = conll.read(source, columns)
    assert found == conll.Sentence((word,), ("B-LOC",), (3,), 1)
    path = tmp_path / "out.conll"
    tagging_results.write_columns(
        str(path), source, columns, [found], ["B-PER"]
    )
    assert path.read_text().split("\n") == [
        f"{start}{separator}O",
        "",
        f"{word}{separator}B-LOC{separator}B-PER",
        "",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a O\nb\n", "line 2: another number of columns.*Expected 2"),
        ("a\tO\nb c O\n", "line 2: another number of columns.*--separator"),
        ("a\n", "line 1.*only one column.*--test_has_labels=false"),
        ("\n\n", "has no words"),
        ("", "has no words"),
        ("a\t\n", "line 1: a word or its label is empty"),
        ("\tO\nb\tO\n", "line 1: a word or its label is empty"),
        ("a O\n" * 1001, "line 1001: no empty line"),
    ],
)
def test_bad_files(text, problem, tmp_path):
    columns = conll.Columns(separator="tab" if "\t" in text else None)
    with pytest.raises(ValueError, match=f"file.conll.*{problem}"):
        conll.read(write(tmp_path, text), columns)


@pytest.mark.parametrize(
    ("text", "warns"),
    [("a O\n" * 101, True), ("a O\n" * 100, False), ("a O\n\n" * 101, False)],
)
def test_one_long_sentence_is_told(text, warns, tmp_path, caplog):
    sentences = conll.read(write(tmp_path, text), conll.Columns())
    assert sum(len(x.words) for x in sentences) == text.count("a")
    told = "no empty line, so its 101 words are taken as one sentence"
    assert (told in caplog.text) == warns


def test_missing_column_and_not_utf8(tmp_path):
    path = write(tmp_path, "a b O\n")
    with pytest.raises(ValueError, match=r"line 1.*3 columns.*label_column=3"):
        conll.read(path, conll.Columns(label=3))
    (tmp_path / "file.conll").write_bytes(b"a O\n\xff O\n")
    with pytest.raises(ValueError, match="line 2: the text is not UTF-8"):
        conll.read(path, conll.Columns())


def test_label_that_training_has_not(tmp_path):
    path = write(tmp_path, _TEXT)
    sentences = conll.read(path, conll.Columns())
    with pytest.raises(ValueError, match=r"line 8.*--labels.*'B-per'"):
        conll.check(path, sentences, ["B-misc", "B-org", "O"], "BIO")


def test_iob1_is_not_taken_for_bio(tmp_path, caplog):
    path = write(tmp_path, "a I-x\nb I-x\nc O\nd I-y\ne B-y\n\nf O\n")
    sentences = conll.read(path, conll.Columns())
    labels = conll.known_labels(sentences)
    assert schemes.detect_scheme(labels) == "BIO"
    with pytest.raises(ValueError, match=r"line 1: 2 of 3 .*IOB1"):
        conll.check(path, sentences, labels, "BIO")
    conll.check(path, sentences, labels, "IOB1")
    path = write(tmp_path, "a B-x\n\nb I-x\n")
    sentences = conll.read(path, conll.Columns())
    conll.check(path, sentences, ["B-x", "I-x"], "BIO")
    assert "1 of 2 entities" in caplog.text
    assert "line 3" in caplog.text


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ("O B-per I-per", "BIO"),
        ("O B-per", "BIO"),
        ("O I-per", "IO"),
        ("O B-x I-x E-x S-x", "BIOES"),
        ("O S-x", "BIOES"),
        ("O B-x L-x U-x", "BILOU"),
        ("O B-x M-x E-x S-x", "BMES"),
        ("O B-x M-y E-x", "BMES"),
        ("O", "none"),
        ("NN VB -LRB-", "none"),
        ("O B-x NN", "none"),
    ],
)
def test_detect_scheme(labels, scheme):
    assert schemes.detect_scheme(labels.split()) == scheme


@pytest.mark.parametrize(
    ("labels", "is_told"),
    [
        ("O B-x M-x W-x", True),
        ("O B-x I-x M-x", True),
        ("B-x W-x", False),
        # The header of a table, and labels without types.
        ("O B-x tag", True),
        ("O B I", True),
        ("O N V B", False),
        ("NN O -LRB-", False),
    ],
)
def test_labels_of_an_unknown_scheme(labels, is_told, caplog):
    assert schemes.detect_scheme(labels.split()) == "none"
    assert ("No known scheme has all labels" in caplog.text) == is_told
    # Those without a type come first.
    assert ("labels=O, tag, B-x" in caplog.text) == ("tag" in labels)


def test_scheme_that_labels_are_not_spelt_in():
    schemes.check_scheme(["O", "B-x"], "BIO")
    schemes.check_scheme(["NN"], schemes.NO_SCHEME)
    for label in ("E-x", "x", "B", "B-"):
        with pytest.raises(ValueError, match=f"Received: label='{label}'"):
            schemes.check_scheme(["O", label], "BIO")


@pytest.mark.parametrize(
    ("scheme", "labels", "expected"),
    [
        ("BIO", "B-a I-a I-b O I-a B-b B-b", "a02 b56 b67"),
        ("IO", "I-a I-a I-b O I-a", "a02 b23 a45"),
        ("IOB1", "I-a B-a O I-b", "a01 a12 b34"),
        ("BIOES", "B-a I-a E-a S-b B-a I-a O E-a", "a03 b34"),
        ("BMES", "B-a M-a E-a S-b B-a M-a O E-a B-b E-b", "a03 b34 b810"),
        ("none", "N O", "N01 O12"),
    ],
)
def test_entities(scheme, labels, expected):
    """Entity types, starts and ends."""
    found = schemes.entities(labels.split(), scheme)
    assert " ".join(f"{x}{y}{z}" for x, y, z in map(tuple, found)) == expected


def test_predictions_are_the_input_with_a_column_more(tmp_path):
    source = write(tmp_path, _TEXT)
    columns = conll.Columns()
    sentences = conll.read(source, columns)
    path = str(tmp_path / "out.conll")
    tagging_results.write_columns(path, source, columns, sentences, "ABCDEF")
    written = [line.split("\t") for _, line in tables.lines(path)]
    given = [line.rstrip("\n").split("\t") for _, line in tables.lines(source)]
    added = []
    for new, old in zip(written, given, strict=True):
        if any(x.strip() for x in old):
            assert new[:-1] == old
            added.append(new[-1].strip())
        else:
            assert "".join(new).strip() == ""
    assert added == ["O", "A", "B", "C", "D", "E", "O", "F"]


def test_comments_are_copied_without_a_label(tmp_path):
    source = write(tmp_path, "# sent_id = 1\nx\tO\n\n")
    sentences = conll.read(source, conll.Columns())
    path = tmp_path / "out.conll"
    tagging_results.write_columns(
        str(path), source, conll.Columns(), sentences, ["B"]
    )
    assert path.read_text() == "# sent_id = 1\nx\tO\tB\n\n"


def test_entities_have_the_characters_of_their_text(tmp_path):
    sentences = [
        conll.Sentence(("Zoë", "😀 x", "of", "Rome"), (), (4, 5, 6, 7), 0),
        conll.Sentence(("no",), (), (9,), 0),
    ]
    path = tmp_path / "entities.jsonl"
    predicted = ["B-a", "I-a", "O", "B-b", "O"]
    tagging_results.write_entities(str(path), sentences, predicted, "BIO")
    first, second = map(json.loads, path.read_text("utf-8").splitlines())
    assert first["line"] == 4
    assert first["text"] == "Zoë 😀 x of Rome"
    for entity in first["entities"]:
        at = slice(entity["start"], entity["end"])
        assert first["text"][at] == entity["text"]
    found = [(x["type"], x["text"]) for x in first["entities"]]
    assert found == [("a", "Zoë 😀 x"), ("b", "Rome")]
    assert second == {"line": 9, "text": "no", "entities": []}


@pytest.mark.parametrize(
    ("words", "size", "text", "entity"),
    [
        ("在 北 京 大 学 。", 4, "在北京大学。", "北京大学"),
        (
            "用 GPT 4 做 New York 1 9 9 年",
            2,
            "用GPT 4做New York 199年",
            "GPT 4",
        ),
        ("서울 에 간다", 2, "서울 에 간다", "에 간다"),
        ("I saw 東京 in May", 2, "I saw 東京 in May", "saw 東京"),
    ],
)
def test_scripts_without_spaces_are_joined(words, size, text, entity, tmp_path):
    words = tuple(words.split())
    labels = ["O", "B-a", *["I-a"] * (size - 1)]
    labels += ["O"] * (len(words) - len(labels))
    start = text.index(entity)
    sentence = conll.Sentence(words, (), tuple(range(len(words))), 0)
    path = tmp_path / "entities.jsonl"
    tagging_results.write_entities(str(path), [sentence], labels, "BIO")
    row = json.loads(path.read_text("utf-8"))
    assert row["text"] == text
    assert row["entities"] == [
        {
            "type": "a",
            "start": start,
            "end": start + len(entity),
            "text": entity,
        }
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ada (Lovelace), of London.", "Ada|(|Lovelace|)|,|of|London|."),
        ("@ann #tag $5 C++ 50%", "@ann|#tag|$5|C++|50|%"),
        ("Wait... what?!  :) ...", "Wait|...|what|?|!|:)|..."),
        ("“It's” 3.5-ish\u3000x\u2028y", "“|It's|”|3.5-ish|x|y"),
        ("((a)) (", "((|a|))|("),
        (" \t", ""),
        ("", ""),
        ("\u200d \ufe0f!", "\u200d|\ufe0f|!"),
    ],
)
def test_words_of_raw_text(text, words):
    found = [text[a:b] for a, b in words_of_text.split_text(text)]
    assert found == (words.split("|") if words else [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("张三在IBM工作。", "张|三|在|IBM|工|作|。"),
        ("读《红楼》、《西游》……", "读|《|红|楼|》|、|《|西|游|》|……"),
        ("约3.5％ (见 x)，カナ漢", "约|3.5|％|(|见|x|)|，|カナ|漢"),
        ('和Mac，iPad 5:《书》:"a"', '和|Mac|，|iPad|5|:|《|书|》|:|"|a|"'),
        ("𠀀\u3000a，", "𠀀|a|，"),
        ("Ada, 博!", "Ada|,|博|!"),
        ("他说“好” :-)", "他|说|“|好|”|:-)"),
        # Of other languages, as without Chinese characters.
        (
            "don’t Köln–Bonn l’Italie",
            "don’t|Köln–Bonn|l’Italie",
        ),
    ],
)
def test_chinese_characters_as_words(text, words):
    found = [text[a:b] for a, b in words_of_text.split_text(text, True)]
    assert found == words.split("|")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("我 在 北 京 IBM 。", True),  # As in MSRA, Weibo and CLUENER.
        ("我 在 北京 IBM 。", False),  # As in OntoNotes.
        ("我 " * 19 + "北京", True),
        ("Ada in London カナ", False),
    ],
)
def test_whether_characters_are_words(words, expected):
    words = tuple(words.split())
    sentence = conll.Sentence(words, (), (1,) * len(words), 0)
    assert tagging_words.splits_cjk([sentence]) == expected


def test_context_is_a_sentence_or_a_document(tmp_path):
    sentences = conll.read(write(tmp_path, _TEXT), conll.Columns())
    grouped = tagging_words.group(sentences, "sentence")
    assert [len(x) for x in grouped] == [1, 1, 1]
    documents = list(tagging_words.group(sentences, "document"))
    assert [len(x) for x in documents] == [2, 1]
    assert list(itertools.chain(*documents)) == sentences


@pytest.mark.parametrize("room", [1, 2, 3, 6, 7])
def test_each_piece_belongs_where_it_has_most_around_it(room):
    for pieces in range(1, 30):
        cut = tagging_words.windows(pieces, room)
        ends = np.append(cut.borders[1:], pieces)
        owner = np.repeat(np.arange(len(ends)), ends - cut.borders)
        assert len(owner) == pieces, "each once"
        for piece in range(pieces):
            around = np.minimum(
                piece - cut.starts, cut.starts + room - 1 - piece
            )
            assert around[owner[piece]] == around.max() >= 0
            assert owner[piece] == around.argmax(), "ties go to the earlier"
        assert cut.starts[-1] == max(pieces - room, 0)


def test_a_word_without_pieces_is_unknown():
    vocab = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4}
    pieces = tagging_words.WordPieces(word_pieces.WordPiece(tuple(vocab), True))
    assert pieces("ab") == [3, 4]
    assert pieces("\ufe0f") == [0]
    assert pieces("z") == [0]
