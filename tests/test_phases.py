"""What is said of phases that last."""

import re
import time

from bert_tf import phases

import pytest
from absl import logging


@pytest.fixture
def said(caplog, monkeypatch):
    """Lines come at once, not every ten seconds."""
    monkeypatch.setattr(phases, "_SECONDS_BETWEEN_LINES", 0.05)
    with caplog.at_level("INFO", logger="absl"):
        logging.set_verbosity(logging.INFO)
        yield caplog


def test_a_short_phase_says_nothing(caplog):
    with caplog.at_level("INFO", logger="absl"):
        assert list(phases.tracked("abc", "Doing", "letters", 3)) == list("abc")
        with phases.lasting("Waiting"):
            pass
    assert not caplog.messages


def test_how_far_it_is_and_how_long_it_will_take(said):
    phase = phases.Phase("Answering", "windows", 2000)
    phase.add(500)
    assert not said.messages
    time.sleep(0.06)
    phase.add(500)
    (line,) = said.messages
    found = re.fullmatch(
        r"Answering: 1,000 of 2,000 windows, ([\d,.]+) windows/s, 0:00 left",
        line,
    )
    assert found
    # A thousand in some 60 ms.
    assert 1000 < float(found[1].replace(",", "")) < 1000 / 0.06
    phase.add(1000)
    phase.finish()
    assert said.messages[-1] == "Answering: 2,000 windows in 0:00."


def test_without_a_total(said):
    phase = phases.Phase("Counting", "files")
    time.sleep(0.06)
    phase.add()
    (line,) = said.messages
    assert line.startswith("Counting: 1 files, ")
    assert "left" not in line


def test_a_process_that_is_not_to_say_anything(said):
    phase = phases.Phase("Counting", "files", is_shown=False)
    time.sleep(0.06)
    phase.add()
    phase.finish()
    assert not said.messages


def test_what_can_not_say_how_far_it_is(said):
    with phases.lasting("Writing"):
        time.sleep(0.3)
    assert 2 <= len(said.messages) <= 5  # the longer, the rarer
    assert set(said.messages) == {"Writing: 0:00 so far"}
    time.sleep(0.1)
    assert len(said.messages) <= 5


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
