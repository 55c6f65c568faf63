"""Log lines about phases that take long."""

import types

from bert_tf import phases
from tests import processes

import pytest
from absl import logging


@pytest.fixture
def said(caplog):
    with caplog.at_level("INFO", logger="absl"):
        logging.set_verbosity(logging.INFO)
        yield caplog


@pytest.fixture
def clock(monkeypatch):
    """A clock in seconds, which the test advances."""
    clock = types.SimpleNamespace(now=0.0)
    monotonic = types.SimpleNamespace(monotonic=lambda: clock.now)
    monkeypatch.setattr(phases, "time", monotonic)
    return clock


def test_a_short_phase_says_nothing(said):
    assert list(phases.tracked("abc", "Doing", "letters", 3)) == list("abc")
    with phases.lasting("Waiting"):
        pass
    assert not said.messages


def test_how_far_it_is_and_how_long_it_will_take(said, clock):
    phase = phases.Phase("Answering", "windows", 2000)
    hidden = phases.Phase("Counting", "files", is_shown=False)
    for each in (phase, hidden):
        clock.now = 9.0
        each.add(500)
        assert not said.messages
    clock.now = 20.0
    phase.add(500)
    phase.add(1000)
    hidden.add()
    clock.now = 30.0
    phase.finish()
    hidden.finish()
    assert said.messages == [
        "Answering: 1,000 of 2,000 windows, 50.0 windows/s, 0:20 left",
        "Answering: 2,000 windows in 0:30.",
    ]


def test_nothing_done_yet(said, clock):
    phase = phases.Phase("Answering", "windows", 2000)
    clock.now = 10.0
    phase.add(0)
    assert said.messages == ["Answering: 0 of 2,000 windows, 0.0 windows/s"]


def test_without_a_total(said, clock):
    phase = phases.Phase("Counting", "files")
    clock.now = 10.0
    phase.add()
    assert said.messages == ["Counting: 1 files, 0.1 files/s"]


def test_what_can_not_say_how_far_it_is(said, monkeypatch):
    monkeypatch.setattr(phases, "_SECONDS_BETWEEN_LINES", 0.01)
    with phases.lasting("Writing"):
        processes.wait_for(lambda: len(said.messages) >= 2)
    *before, last = said.messages
    assert set(before) == {"Writing: 0:00 so far"}
    assert last == "Writing: took 0:00"


class TestDuration:
    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (0, "0:00"),
            (0.4, "0:00"),
            (9, "0:09"),
            (59.6, "1:00"),
            (61, "1:01"),
            (3599.7, "1:00:00"),
            (3661, "1:01:01"),
            (86_399, "23:59:59"),
            (86_400, "1d 0:00:00"),
            (93_784, "1d 2:03:04"),
            (10 * 86_400 + 5, "10d 0:00:05"),
        ],
    )
    def test_text(self, seconds, text):
        assert phases.duration(seconds) == text
