"""Writing files in the background of training steps."""

import logging
import os
import signal
import sys
import threading

from bert_tf.training import training_state

import pytest


def _fail():
    raise OSError("the disk is full")


def test_the_caller_goes_on():
    release, done = threading.Event(), []
    with training_state.Writer() as writer:
        writer.start(lambda: done.append(release.wait(60)))
        assert writer.is_writing
        assert not done
        release.set()
        writer.wait()
        assert not writer.is_writing
    assert done == [True]


def test_one_at_a_time_in_order():
    at_work, seen = [], []

    def write(number):
        at_work.append(number)
        seen.append(list(at_work))
        at_work.remove(number)

    with training_state.Writer() as writer:
        for number in range(20):
            writer.start(lambda number=number: write(number))
    assert seen == [[number] for number in range(20)]


class _BrokenOffError(BaseException):
    """Raised like the exception of a signal handler."""


@pytest.mark.skipif(sys.platform == "win32", reason="of POSIX's timers")
def test_a_signal_breaks_off_the_wait_and_not_the_write():
    """The next write waits for it, and reports its error."""
    release, order = threading.Event(), []

    def first():
        release.wait(60)
        order.append("first")
        _fail()

    def receive(*_):
        raise _BrokenOffError

    before = signal.signal(signal.SIGALRM, receive)
    try:
        with training_state.Writer() as writer:
            writer.start(first)
            with pytest.raises(_BrokenOffError):
                signal.setitimer(signal.ITIMER_REAL, 0.1)
                writer.wait()
            assert writer.is_writing
            threading.Timer(0.1, release.set).start()
            with pytest.raises(OSError, match="the disk is full"):
                writer.start(lambda: order.append("second"))
            writer.start(lambda: order.append("second"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert order == ["first", "second"]


def test_a_failure_is_told_at_the_next_and_once():
    done = []
    with training_state.Writer() as writer:
        writer.start(_fail)
        with pytest.raises(OSError, match="the disk is full"):
            writer.start(lambda: done.append(1))
        assert not done
        writer.start(lambda: done.append(2))
    assert done == [2]


def test_a_failure_is_told_at_the_end():
    with (
        pytest.raises(OSError, match="the disk is full"),
        training_state.Writer() as writer,
    ):
        writer.start(_fail)


def test_another_error_stays_and_is_not_hidden(caplog):
    release = threading.Event()

    def write():
        release.wait(60)
        _fail()

    with (
        caplog.at_level(logging.ERROR, logger="absl"),
        pytest.raises(ValueError, match="of a step"),
        training_state.Writer() as writer,
    ):
        writer.start(write)
        threading.Timer(0.1, release.set).start()
        raise ValueError("of a step")
    assert "the disk is full" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux's threads")
def test_steps_go_first():
    found = []

    def write():
        number = threading.get_native_id()
        found.append(os.getpriority(os.PRIO_PROCESS, number))

    own = os.getpriority(os.PRIO_PROCESS, 0)
    with training_state.Writer() as writer:
        writer.start(write)
    assert found == [min(own + 15, 19)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == own
