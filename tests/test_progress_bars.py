"""Progress bars at terminals: what the screen shows, and what is left on it."""

import fcntl
import itertools
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]

# A clock that the script advances, so that all times are known.
_HEAD = """
import os, signal, sys, types
from absl import flags, logging
from bert_tf.flags import command_line

_CASE = flags.DEFINE_string("case", "", "What happens.")
_FOLDER = flags.DEFINE_string("folder", None, "A folder.")
command_line.start("__main__")
from bert_tf import errors, phases

clock = types.SimpleNamespace(now=0.0)
phases.time = types.SimpleNamespace(monotonic=lambda: clock.now)
"""

_COUNTING = f"""{_HEAD}
def main(_):
    command_line.unwind_at_signals()
    if _FOLDER.value:
        logging.get_absl_handler().use_absl_log_file("log", _FOLDER.value)
    phase = phases.Phase("Counting {{}}", "files", 100)
    for number in range(1, 101):
        clock.now += 0.5
        phase.add()
        if number == 50:
            logging.info("Half are done.")
            if _CASE.value == "error":
                raise errors.InputError("File 51 is missing.")
            if _CASE.value:
                os.kill(os.getpid(), signal.Signals[_CASE.value])
    phase.finish()

command_line.run(main)
"""

_TRAINING = f"""{_HEAD}
from bert_tf.training import loop, progress, training_run

objective = loop.Objective(lambda batch: {{}}, lambda *_: {{}})

def train(first, count):
    # Building the graph takes 3,000 seconds more.
    clock.now += 2 * count if first else 4000
    return loop.Block(
        objective,
        {{"words": {{"loss": 0.5 * count}}}},
        {{"words": count}},
        {{
            "sequences": 32 * count,
            "tokens": 900 * count,
            "step_seconds": 2 * count,
        }},
        {{"learning_rate": 1e-4, "gradient_norm": 1.0}},
    )

def stop(step):
    if step == 1500:
        os.kill(os.getpid(), signal.SIGINT)

def main(_):
    training_run.time = phases.time
    report = progress.Progress(_FOLDER.value, 0, 2500, epoch_steps=1000)
    try:
        training_run.run(
            *(train, 0, 2500, 500, (2500, lambda *_: None)),
            report=(500, report),
            hooks=[(500, stop)],
        )
    finally:
        report.close()

command_line.run(main)
"""


def _output(code, *flags, columns=80, **env):
    """Returns what a script writes to a terminal, and its exit code."""
    ours, theirs = pty.openpty()
    size = struct.pack("HHHH", 50, columns, 0, 0)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    # Bars are redrawn by each call, not at most every 0.1 seconds.
    env = {"TERM": "xterm", "TQDM_MININTERVAL": "0", **env}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *flags],
        cwd=_ROOT,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 1 << 12):
            text += part
    except OSError:  # The script has ended.
        pass
    os.close(ours)
    return text.decode(), process.wait(timeout=60)


def _screen(text):
    """Returns the lines that a terminal shows after this output."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[AK]|[^\x1b]", text):
        if part == "\r":
            column = 0
        elif part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[A":
            row -= 1
        elif part == "\x1b[K":
            lines[row] = lines[row][:column]
        else:
            line = lines[row].ljust(column)
            lines[row] = line[:column] + part + line[column + 1 :]
            column += 1
    shown = [re.sub(r"^\d\d:\d\d:\d\d ", "", line.rstrip()) for line in lines]
    return [line for line in shown if line != "Loading libraries."]


def _screens(text):
    """Returns the screens after each line or bar."""
    ends = [x.start() for x in re.finditer(r"[\r\n]", text)]
    return [_screen(text[:end]) for end in ends]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "bar"),
    [
        (
            80,
            "Counting {} 75%|███████████████     | "
            "75 of 100 files  2.0 files/s  0:12 left",
        ),
        pytest.param(
            *(60, "Counting {} 75%|████████▎  | 75 of 100 files  2.0 files/s"),
            marks=pytest.mark.exhaustive,
        ),
        (40, "Counting {} 75%|███ | 75 of 100 files"),
    ],
)
def test_log_lines_scroll_above_the_bar(columns, bar):
    text, code = _output(_COUNTING, columns=columns)
    assert code == 0
    during = _screens(text)
    assert max(map(len, itertools.chain(*during))) <= columns
    assert ["Half are done.", bar] in during
    # The bar is always a single line.
    assert max(map(len, during)) == 2
    assert _screen(text) == [
        "Half are done.",
        "Counting {}: 100 files in 0:50.",
        "",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "code", "left"),
    [
        ("error", 1, ["error: File 51 is missing."]),
        # A training run is stopped by it, below.
        pytest.param("SIGINT", 130, [], marks=pytest.mark.exhaustive),
        ("SIGTERM", 143, []),
    ],
)
def test_no_bar_is_left_after_an_end_in_between(case, code, left):
    text, received = _output(_COUNTING, f"--case={case}")
    assert received == code
    assert any("50%|" in line for line in itertools.chain(*_screens(text)))
    assert _screen(text) == ["Half are done.", *left, ""]


@pytest.mark.parametrize(
    ("flags", "env"),
    [([], {"TERM": "dumb"}), (["--verbosity=-1"], {}), (["--folder"], {})],
    ids=["dumb", "quiet", "file"],
)
def test_where_there_are_no_bars(flags, env, tmp_path):
    is_file = flags == ["--folder"]
    flags = [f"--folder={tmp_path}", "--nologtostderr"] if is_file else flags
    text, code = _output(_COUNTING, *flags, **env)
    assert code == 0
    assert "|" not in text
    if is_file:
        text = next(tmp_path.glob("log.*.INFO.*")).read_text()
    lines = [line for line in _screen(text) if "left" in line]
    assert len(lines) == (0 if "--verbosity=-1" in flags else 5)


@pytest.mark.slow
def test_a_training_run_that_is_stopped(tmp_path):
    text, code = _output(_TRAINING, f"--folder={tmp_path}")
    assert code == 130
    # 1,500 steps of 2 seconds each.
    bar = (
        "40%|██▍   | 1,000/2,500  epoch 1/3  50:00 left  loss 0.5000  "
        "16.0 sequences/s"
    )
    lines = set(itertools.chain(*_screens(text)))
    assert [line for line in lines if line.startswith("40%")] == [bar]
    *_, stopping, saved, hint, last = _screen(text)
    assert stopping == "Saving, then ending. Ctrl-C again ends at once."
    assert saved.startswith("WARNING: SIGINT: saved step 1500; ending.")
    assert (hint.strip(), last) == ("command again.", "")
    assert not any("%|" in line for line in _screen(text))
