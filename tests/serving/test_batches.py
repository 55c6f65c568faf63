"""Batches, windows and streamed lines; answers: test_run_prediction.py."""

import threading
import time

from bert_tf.serving import batches, serving_lines, serving_model

import pytest
import tensorflow as tf


def asked(*texts):
    return [serving_lines.Query({"text_a": text}) for text in texts]


class _Lengths:
    """A model whose score is the length of its text; records its batches."""

    def __init__(self):
        self.batches = []

    def serve(self, text_a):
        self.batches.append([len(text) for text in text_a.numpy()])
        return {"score": tf.cast(tf.strings.length(text_a), tf.float32)}

    def predictor(self, batch_size):
        model = serving_model.Model(
            *("classification", self.serve, frozenset(["text_a"])),
            *((), "", 0),
        )
        return batches.Predictor(model, batch_size)


def test_answers_come_in_order_and_batches_by_length():
    model = _Lengths()
    texts = ["a" * n for n in (3, 9, 1, 7, 5, 8, 2)]
    found = model.predictor(3).answer(asked(*texts))
    assert [answer["score"] for answer in found] == [3, 9, 1, 7, 5, 8, 2]
    assert model.batches == [[9, 8, 7], [5, 3, 2], [1]]


def test_long_lines_are_tokenized_alone(monkeypatch):
    monkeypatch.setattr(batches, "_MOST_IN_BATCH", 10)
    model = _Lengths()
    model.predictor(8).answer(asked("a" * 30, "b" * 6, "c" * 3, "d", "e" * 4))
    assert model.batches == [[30], [6, 4], [3, 1]]


def test_windows_have_so_many_lines_or_characters(monkeypatch):
    monkeypatch.setattr(batches, "_MOST_IN_WINDOW", 10)
    texts = ["a", "b", "c", "d" * 9, "e" * 50, "f", "g" * 9]
    windows = list(batches.windows(asked(*texts), 2))
    found = [[q.columns["text_a"][0] for q in window] for window in windows]
    assert found == [["a", "b"], ["c", "d"], ["e"], ["f", "g"]]
    assert list(batches.windows([], 2)) == []


def masked(*texts):
    parser = serving_lines.Parser(
        serving_lines.MASKED_LM, False, "plain", top_k=2
    )
    return [parser.parse(text, "f") for text in texts]


def test_windows_have_room_for_the_filled_texts(monkeypatch):
    monkeypatch.setattr(batches, "_MOST_IN_WINDOW", 100)
    # A line of 8 characters and two texts that fill it; of 12 with four.
    one, two = "[MASK] a", "[MASK][MASK]"
    assert [query.size for query in masked(one, two)] == [24, 60]
    asked = masked(one, two, one, one, one, two)
    windows = list(batches.windows(asked, 8))
    assert windows == [asked[:2], asked[2:5], asked[5:]]
    found = []
    for window in batches.as_they_come(asked, 8):
        time.sleep(0.1)  # The reader continues until there is no room.
        assert sum(query.size for query in window) <= 100
        found += window
    assert found == asked


def test_lines_that_have_come_are_taken_without_waiting_for_more():
    answered = threading.Event()

    def lines():
        yield from asked("a", "b")
        assert answered.wait(60), "the first two were not answered"
        yield from asked("c")

    windows = batches.as_they_come(lines(), 8)
    here = next(windows)
    while len(here) < 2:
        here += next(windows)
    assert [query.columns["text_a"] for query in here] == ["a", "b"]
    answered.set()
    (last,) = next(windows)
    assert last.columns["text_a"] == "c"
    assert list(windows) == []


def test_lines_wait_within_the_same_bounds(monkeypatch):
    monkeypatch.setattr(batches, "_MOST_IN_WINDOW", 10)
    read = []

    def lines():
        for query in asked("a" * 50, "b" * 6, "c" * 4, "d" * 3, "e", "f", "g"):
            read.append(query)
            yield query

    taken = 0
    for window in batches.as_they_come(lines(), 8):
        time.sleep(0.1)  # The reader continues until there is no room.
        taken += len(window)
        *wait, _ = [query.length for query in read[taken:]] or [0]
        for sizes in wait, [query.length for query in window]:
            assert len(sizes) < 2 or sum(sizes) <= 10
    assert taken == 7


def test_what_came_before_an_error_is_answered_first():
    def lines():
        yield from asked("a", "b")
        raise ValueError("line 3")

    found = []
    with pytest.raises(ValueError, match="line 3"):
        for window in batches.as_they_come(lines(), 8):
            found += window
    assert len(found) == 2


def test_vectors_of_tokens_are_refused():
    model = serving_model.Model(
        *("encoder", dict, frozenset(["text_a"])), *((), "token", 0)
    )
    with pytest.raises(ValueError, match=r"use extract_features.py"):
        batches.Predictor(model, 1)
