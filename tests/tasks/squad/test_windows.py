"""Windows, compared with the original's algorithm as plain loops."""

import dataclasses
import io
import random

from bert_tf import vocabularies
from bert_tf.tasks.squad import squad_options, squad_questions, squad_windows
from bert_tf.vocabularies import sentence_pieces, word_pieces
from tests import squad_reference
from tests.vocabularies import byte_pair_samples, sentence_models

import numpy as np
import pytest
import sentencepiece

_PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] a b c ##a ##b d e , - ca 博 ##e $ f"
VOCABULARY = word_pieces.WordPiece(tuple(_PIECES.split()), True)


def _sentence_pieces():
    """Returns a SentencePiece vocabulary of words of several characters."""
    words = [
        "京都大学",
        "東京",
        "大学院",
        "を卒業した",
        "the dog",
        "a cat",
        "b",
    ]
    rng = random.Random(1)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=("".join(rng.choices(words, k=9)) for _ in range(99)),
        model_writer=model,
        vocab_size=60,
        character_coverage=1.0,
        hard_vocab_limit=False,
        minloglevel=2,
        **sentence_models.ALBERT,
    )
    return sentence_pieces.SentencePieces.parse(
        {"spiece.model": model.getvalue()}, True, "spiece.model"
    )


def cutter(length=12, stride=3, query=4, vocabulary=VOCABULARY):
    return squad_windows.Cutter(
        vocabulary, squad_options.Layout(length, stride, query)
    )


def question(context, answer=None, start=None, text="a b"):
    if answer is None:
        return squad_questions.Question("q", text, context, (), True)
    start = context.index(answer) if start is None else start
    return squad_questions.Question(
        "q", text, context, (squad_questions.Answer(answer, start),)
    )


def features(maker, asked):
    """Returns all features of each window, in plain Python."""
    windows = maker.cut(asked)
    columns = maker.features(windows) | maker.labels(windows)
    return [
        {name: column[row].tolist() for name, column in columns.items()}
        | {"most_context": most.tolist()}
        for row, most in enumerate(windows.has_most_context())
    ]


def wanted(maker, asked):
    """Returns the original's features and the answer's position in them."""
    answer = None
    if not asked.is_impossible:
        answer = asked.answers[0].text, asked.answers[0].start
    return squad_reference.features(
        *(maker._tokenizer, asked.text, asked.context, answer),
        *dataclasses.astuple(maker.layout),
    )


def expected(maker, asked):
    return wanted(maker, asked)[0]


def recovered(maker, asked):
    """Returns the slices of the context that each window's labels select."""
    windows = maker.cut(asked)
    labels = maker.labels(windows)
    texts = set()
    for row, first in enumerate(labels["start_positions"]):
        if first:
            shift = windows.starts[row] - windows.head
            last = labels["end_positions"][row]
            texts.add(windows.text(first + shift, last + shift))
    return texts


def test_one_window():
    labels = {"start_positions": 6, "end_positions": 6, "is_impossible": 0}
    assert features(cutter(), question("Ca, b", "b")) == [
        {
            "input_ids": [2, 5, 6, 3, 14, 12, 6, 3, 0, 0, 0, 0],
            "input_mask": [1] * 8 + [0] * 4,
            "segment_ids": [0] * 4 + [1] * 4 + [0] * 4,
            **labels,
            "most_context": [True] * 3,
        }
    ]


@pytest.mark.parametrize("pieces", [6, 7, 8, 9, 10, 13, 29])
@pytest.mark.parametrize("stride", [1, 2, 3, 7, 100])
def test_windows_of_long_contexts(pieces, stride):
    # 7 of 12 positions are for the context.
    rng = random.Random(pieces)
    words = rng.choices("abcde", k=pieces)
    context = " ".join(words)
    maker = cutter(stride=stride)
    for start in range(0, len(context), 2):
        answer = context[start : start + 3]
        asked = question(context, answer, start)
        assert features(maker, asked) == expected(maker, asked)
    asked = question(context)
    assert features(maker, asked) == expected(maker, asked)


def test_long_and_empty_questions():
    for text in ("", "a b c d e a", " ?"):
        asked = question("a b c d e " * 3, "d", text=text)
        assert features(cutter(), asked) == expected(cutter(), asked)


def test_an_answer_longer_than_a_window_is_in_none():
    asked = question("a b c d e " * 3, "a b c d e a b c")
    assert recovered(cutter(), asked) == set()
    assert features(cutter(), asked) == expected(cutter(), asked)


@pytest.mark.parametrize(
    ("context", "answer", "found"),
    [
        ("d (a-b), c", "a-b", "a-b"),
        ("d ab c", "b", "b"),  # The token ##b.
        ("d\u202fa\xa0b c", "a\xa0b", "a\xa0b"),
        ("CA\u0301, b", "CA\u0301", "CA\u0301"),
        ("d  a\n\t b", "a\n\t b", "a\n\t b"),
        ("博博a", "博a", "博a"),
        ("d 𝄞 \U0001f600 a", "\U0001f600", "\U0001f600"),
        ("d a b", " a ", "a"),  # No token contains white space.
        ("d a\u200b b", "a\u200b", "a"),
        ("d $ab, b", "ab", "ab"),
        # Not at the borders of tokens: whole words, as in the original.
        ("d cab, e", "c", "cab,"),
        ("d ab,cab e", "a,c", "ab,cab"),
    ],
)
def test_answers_are_slices_of_the_context(context, answer, found):
    start = context.index(answer) if answer in context else 3
    assert recovered(cutter(), question(context, answer, start)) == {found}


def test_the_place_of_the_answer_counts():
    # The original takes the first "a" of the word.
    asked = question("d a-b-a", "a", 6)
    windows = cutter().cut(asked)
    assert cutter().answer_pieces(asked, windows.pieces) == (5, 5)
    assert expected(cutter(), asked)[0]["start_positions"] == 4 + 1


def test_answers_within_tokens_of_text_without_spaces():
    """All tokens that touch the answer, and no others of the paragraph."""
    maker = cutter(vocabulary=_sentence_pieces())
    context = "東京の京都大学を卒業した。京都大学院の" * 3
    number = 0
    for start in range(len(context)):
        for answer in {context[start : start + size] for size in (1, 3)}:
            asked = question(context, answer, start)
            pieces = maker.cut(asked).pieces
            touched = [
                i
                for i, (first, end) in enumerate(
                    zip(pieces.starts, pieces.ends, strict=True)
                )
                if first < start + len(answer) and end > start
            ]
            found = maker.answer_pieces(asked, pieces)
            assert found == (touched[0], touched[-1])
            number += pieces.starts[found[0]] < start
    assert number > 5


@pytest.mark.parametrize(
    "make", [_sentence_pieces, byte_pair_samples.vocabulary]
)
def test_answers_within_tokens_of_words(make):
    """As in the original, also next to text without spaces."""
    maker = cutter(vocabulary=make())
    asked = question("the dog, 京 a cat", "og")
    pieces = maker.cut(asked).pieces
    first, last = maker.answer_pieces(asked, pieces)
    assert (pieces.starts[first], pieces.ends[last]) == (4, 8)


def test_nothing_to_read():
    with pytest.raises(ValueError, match="Question q: the context has no word"):
        features(cutter(), question("\u200b \x00"))
    read = dataclasses.replace(question("\u200b"), file="a.json")
    with pytest.raises(ValueError, match=r"^a\.json, question q: the context"):
        features(cutter(), read)
    asked = question("a \u200b b", "\u200b")
    with pytest.raises(ValueError, match="Question q: the answer has no word"):
        features(cutter(), asked)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((67, 128, 64), "max_seq_length=67, max_query_length=64"),
        ((384, 0, 64), "at least 1.*doc_stride=0"),
        ((384, 128, 0), "at least 1.*max_query_length=0"),
    ],
)
def test_layouts_without_room(values, message):
    with pytest.raises(ValueError, match=message):
        squad_windows.Cutter(VOCABULARY, squad_options.Layout(*values))


@pytest.mark.parametrize(
    "make",
    [lambda: VOCABULARY, _sentence_pieces, byte_pair_samples.vocabulary],
    ids=["word_pieces", "sentence_pieces", "byte_pairs"],
)
def test_a_long_text_is_split_as_a_whole(make, monkeypatch):
    tokenizer = make().tokenizer()
    text = "ab the ca, 博\tdé \n 𝄞a \u3000" * 30 + "ab" * 40 + " \n" * 40
    tokens = tokenizer.tokenize_with_offsets(text)
    ids = tokenizer.convert_tokens_to_ids([token.text for token in tokens])
    for part in (1, 7, 50):
        monkeypatch.setattr(squad_windows, "_PART", part)
        pieces = squad_windows.split(tokenizer, text)
        assert pieces.ids.tolist() == ids
        assert pieces.starts.tolist() == [token.start for token in tokens]
        assert pieces.ends.tolist() == [token.end for token in tokens]


@pytest.mark.slow
def test_a_context_of_three_megabytes():
    context = ("x" * 99 + " ca\n") * 30_000
    asked = question(context, "ca", 103 * 27_000 + 100)
    maker = cutter(384, 128, 64)
    windows = maker.cut(asked)
    assert len(windows.starts) == 467
    labels = maker.labels(windows)
    assert np.count_nonzero(labels["start_positions"]) == 3
    assert recovered(maker, asked) == {"ca"}
    assert sum(map(sum, windows.has_most_context())) == len(windows.pieces.ids)


# ---- Real questions ---------------------------------------------------------


def _real(shared_data, version, every, vocab="uncased"):
    path = str(shared_data / "squad" / f"dev-v{version}.json")
    questions = squad_questions.read(path)[::every]
    vocabulary = vocabularies.open(
        shared_data / "vocab" / f"bert_{vocab}.txt", vocab == "uncased"
    )
    maker = squad_windows.Cutter(vocabulary, squad_options.Layout(384, 128, 64))
    return squad_questions.with_one_answer(
        path, questions, version == "2.0"
    ), maker


def _check_real(questions, maker):
    """Compares all features; returns how many answers are not recovered."""
    lost = {"we": 0, "the original": 0}
    for asked in questions:
        windows = maker.cut(asked)
        columns = maker.features(windows) | maker.labels(windows)
        answer = None if asked.is_impossible else asked.answers[0]
        rows, (first, last) = wanted(maker, asked)
        assert len(rows) == len(windows.starts)
        is_mended = False
        if answer:
            texts = recovered(maker, asked)
            is_lost = windows.text(first, last) != answer.text
            is_mended = is_lost and texts == {answer.text}
            lost["we"] += texts != {answer.text}
            lost["the original"] += is_lost
            # Lost answers do not start and end at borders of tokens.
            start, end = answer.start, answer.start + len(answer.text)
            assert texts == {answer.text} or not (
                start in windows.pieces.starts and end in windows.pieces.ends
            )
        most_context = windows.has_most_context()
        for row, reference in enumerate(rows):
            assert reference.pop("most_context") == most_context[row].tolist()
            for name, value in reference.items():
                # Equal, except where only the original loses the answer.
                if not (name.endswith("_positions") and is_mended):
                    assert columns[name][row].tolist() == value, name
    return lost


@pytest.mark.slow
@pytest.mark.parametrize("version", ["1.1", "2.0"])
def test_features_of_real_questions(version, shared_data):
    questions, maker = _real(shared_data, version, 24)
    lost = _check_real(questions, maker)
    assert lost["we"] <= lost["the original"] < len(questions) / 50


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("version", "lost"),
    [
        ("1.1", {"we": 65, "the original": 70}),
        ("2.0", {"we": 19, "the original": 20}),
    ],
)
def test_gold_answers_are_recovered(version, lost, shared_data):
    # All but 65 of 10,570 and 19 of 5,928, which are parts of words such as
    # "Japan" in "Japanese".
    questions, maker = _real(shared_data, version, 1)
    assert _check_real(questions, maker) == lost
