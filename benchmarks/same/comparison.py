"""Compares the outputs of a run in two checkouts, for same_as_before.py.

Files are compared byte for byte, except for the parts in LEFT_OUT and MASKS,
and for expected differences.
"""

import collections
import dataclasses
import fnmatch
import itertools
import pathlib
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

# Files that differ between two runs of the same checkout.
LEFT_OUT = {
    "*saved_model.pb": "has names and source lines of Python functions; its "
    "answers are compared instead",
    "*fingerprint.pb": "a hash of saved_model.pb",
    "*variables/variables.index": "has checksums of the next",
}
# A tensor in checkpoints that is not part of the model.
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
# Parts that are removed from texts: pattern, files, reason.
_TIMED = "per_second|input_share|peak_memory|flops_utilization"
_LOGS = "stderr *log.txt"
_TEXTS = "*.txt *.json *.jsonl *.tsv *.csv *.conll *.out *checkpoint std*"
# The version, in the name of a GLUE run.
_VERSIONED = r"(?<=_batch8)_[0-9a-f]{8}\b"
MASKS = (
    (r"(?m)^[IWE]\d{4} [\d:.]+ .*\n", _LOGS, "TensorFlow's own log"),
    (r"(?m)^\d\d:\d\d:\d\d ", _LOGS, "time of a line"),
    (r"\n +", _LOGS, "where a line is broken, which speeds decide"),
    (r"(?m)^(Tokenized|Cut|Wrote) .*(/s|left)$\n?", _LOGS, "how fast it goes"),
    (r"[\d,.]+ [\w ]+/s\b", _LOGS, "speed"),
    (r"(?m)^.* \d+:\d\d (so far|in all)\n", _LOGS, "how long it takes"),
    (r"(?m)^.*: took \d+:\d\d\n", _LOGS, "how long it took, if that is long"),
    (r"(?m)^.*: [\d,]+ .* in (\d+:)?\d+:\d\d\.\n", _LOGS, "how long it took"),
    (r"(?<= steps in )(\d+:)?\d+:\d\d\b", _LOGS, "how long it took"),
    (r"(?m)^.*: [\d,]+ of [\d,]+ .* left\n", _LOGS, "how far it is"),
    (r"(?m) in \d+:\d\d; used .*$", _LOGS, "how long a run of GLUE took"),
    (r" \S+ left ", _LOGS, "time that is left"),
    (r"\bmemory [\d.]+ GiB", _LOGS, "memory that was used"),
    (r"waiting for data \d+ ?%", _LOGS, "how long data took"),
    (r"(?m)^Took .* seconds\.$", _LOGS, "how long it took"),
    (rf'"\w*({_TIMED})": [^,}}]+,? ?', "*.jsonl", "speed and memory"),
    (r'"seconds": [\d.]+', "*results.jsonl", "how long a run of GLUE took"),
    (r'"key": "[0-9a-f]{64}"', "*results.jsonl", "the version is a part of it"),
    (r'"date_saved": "[^"]*"', "*metadata.json", "time, of KerasHub's"),
    (
        r'(?<="parser": ")_',
        "*flags.jsonl",
        "whether a class of ours is private",
    ),
    (r"(?m)^# \d{4}-\d\d-\d\dT[\d:+]+$", "*flags.txt", "time of the start"),
    (_VERSIONED, _TEXTS, "the version, in the name of a run of GLUE"),
)
# TensorBoard's files, whose names include time and host.
_EVENTS = re.compile(r"events\.out\.tfevents\..*")


@dataclasses.dataclass(frozen=True)
class Expected:
    """An expected difference.

    Attributes:
        old: Text in the first checkout, or the name of a script.
        new: The text that replaces it in the second checkout.
        reason: The reason.
        runs: Pattern of the runs that it is limited to.
    """

    old: str
    new: str
    reason: str
    runs: str = "*"

    def rewrite(self, text: str) -> str:
        """Replaces old text by new text, regardless of line breaks.

        The result is the text of the first checkout as the second should have
        it.
        """
        words = r"\s+".join(map(re.escape, self.old.split()))
        return re.sub(rf"(?<!\w){words}", self.new, text)


@dataclasses.dataclass(frozen=True)
class New:
    """Files that only the second checkout should write.

    Attributes:
        names: Pattern of the file names.
        reason: The reason.
        runs: Pattern of the runs that it is limited to.
    """

    names: str
    reason: str
    runs: str = "*"


@dataclasses.dataclass(frozen=True)
class Changed:
    """Files with expected changes, which are not compared.

    Attributes:
        names: Pattern of the file names.
        reason: The reason.
        runs: Pattern of the runs that it is limited to.
    """

    names: str
    reason: str
    runs: str = "*"


@dataclasses.dataclass(frozen=True)
class TakenOut:
    """Text that is removed in both checkouts before the comparison.

    Attributes:
        pattern: A regular expression.
        files: Patterns of the file names.
        reason: The reason.
    """

    pattern: str
    files: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Rounded:
    """Numbers that are expected to be rounded differently.

    Attributes:
        names: Pattern of the names of files with arrays.
        most: Max difference.
        reason: The reason.
        runs: Pattern of the runs that it is limited to.
    """

    names: str
    most: float
    reason: str
    runs: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The result of comparing a run.

    Attributes:
        compared: Number of compared files.
        difference: The first difference, or "".
        expected: Expected differences -> number of files with them.
        lines: Number of answers of exports in the files.
    """

    compared: int = 0
    difference: str = ""
    expected: dict[str, int] = dataclasses.field(default_factory=dict)
    lines: int = 0


@dataclasses.dataclass(frozen=True)
class Side:
    """A checkout and the folder that its runs write to."""

    name: str
    checkout: pathlib.Path
    work: pathlib.Path


def compare(
    run: str,
    before: Side,
    after: Side,
    expected: Sequence[Expected],
    new: Sequence[New] = (),
    changed: Sequence[Changed] = (),
    taken_out: Sequence[TakenOut] = (),
    rounded: Sequence[Rounded] = (),
) -> Verdict:
    """Compares all output of a run."""
    sides = [_files(side, run) for side in (before, after)]
    added = {
        x.names: fnmatch.filter(sides[1].keys() - sides[0].keys(), x.names)
        for x in new
        if fnmatch.fnmatch(run, x.runs)
    }
    for name in itertools.chain(*added.values()):
        del sides[1][name]
    if sides[0].keys() != sides[1].keys():
        odd = sorted(sides[0].keys() ^ sides[1].keys())[0]
        where = "first" if odd in sides[0] else "second"
        return Verdict(difference=f"{odd}: only the {where} writes it")
    meant = [x for x in expected if fnmatch.fnmatch(run, x.runs)]
    counts = collections.Counter(
        {name: len(found) for name, found in added.items() if found}
    )
    for y in changed:
        if fnmatch.fnmatch(run, y.runs):
            for name in fnmatch.filter(sides[0], y.names):
                del sides[0][name]
                counts[y.names] += 1
    lines: list[int] = []
    for number, name in enumerate(sides[0]):
        kind = _kind(name)
        try:
            if kind is _texts:
                left = _masked(sides[0][name], name, before, taken_out)
                right = _masked(sides[1][name], name, after, taken_out)
                counts.update(_texts(left, right, meant))
            elif kind is _arrays:
                most = _most(run, name, rounded)
                lines += _arrays(sides[0][name], sides[1][name], most)
            else:
                lines += kind(sides[0][name], sides[1][name])
        except _DifferentError as error:
            return Verdict(number + 1, f"{name}: {error}", dict(counts))
    return Verdict(len(sides[0]), "", dict(counts), sum(lines))


def _files(side: Side, run: str) -> dict[str, pathlib.Path]:
    """Returns files to compare by normalized names, without time and host."""
    folder = side.work / run
    found: dict[str, pathlib.Path] = {}
    events: collections.Counter[str] = collections.Counter()
    for path in sorted(folder.rglob("*")):
        name = re.sub(_VERSIONED, "", str(path.relative_to(folder)))
        if path.is_dir() or any(fnmatch.fnmatch(name, x) for x in LEFT_OUT):
            continue
        if _EVENTS.fullmatch(path.name):
            name = str(pathlib.Path(name).parent / "events")
            events[name] += 1
            name = f"{name}-{events[name]}"
        found[name] = path
    return found


def _kind(name: str) -> Callable[..., Any]:
    if any(fnmatch.fnmatch(name, pattern) for pattern in _TEXTS.split()):
        return _texts
    if re.search(r"(^|/)events-\d+$", name):
        return _events
    if name.endswith(".npz"):
        return _arrays
    return _bytes


class _DifferentError(Exception):
    """Has the first difference as its message."""


# ---- Texts ------------------------------------------------------------------


def _masked(
    path: pathlib.Path, name: str, side: Side, taken_out: Sequence[TakenOut]
) -> str:
    """Returns a text without the parts that differ between runs."""
    text = path.read_text("utf-8", "backslashreplace")
    # The second reads some outputs of the first: both folders become WORK.
    work = rf"{re.escape(str(side.work.parent))}/(before|after)/"
    text = re.sub(work, "WORK/", text)
    text = text.replace(sys.executable, "PYTHON")
    text = re.sub(
        rf"{re.escape(str(side.checkout))}(?![\w.-])", "CHECKOUT", text
    )
    more = [(x.pattern, x.files, x.reason) for x in taken_out]
    for pattern, files, _ in (*MASKS, *more):
        if any(fnmatch.fnmatch(name, file) for file in files.split()):
            text = re.sub(pattern, " " if pattern == r"\n +" else "", text)
    if name.endswith(
        ("stderr", "log.txt")
    ):  # Collapses the blanks around removed parts.
        text = re.sub(" +", " ", text)
    return text


def _texts(
    before: str, after: str, expected: Sequence[Expected]
) -> Iterable[str]:
    """Returns the expected differences that occur."""
    if before == after:
        return []
    used = []
    for x in expected:
        rewritten = x.rewrite(before)
        if rewritten != before:
            used.append(f"{x.old} -> {x.new}")
        before = rewritten
    if used and _words(before) == _words(after):
        return used
    raise _DifferentError(_first_line(before, after))


def _words(text: str) -> list[str]:
    """Splits a text into words, because new names move line breaks."""
    return [word for word in text.split() if word != "\\"]


def _first_line(before: str, after: str) -> str:
    lines = [text.split("\n") for text in (before, after)]
    for number in range(max(map(len, lines))):
        rows = [x[number] if number < len(x) else "(no line)" for x in lines]
        if rows[0] != rows[1]:
            start = next(
                (
                    i
                    for i, pair in enumerate(zip(*rows, strict=False))
                    if pair[0] != pair[1]
                ),
                min(map(len, rows)),
            )
            start = max(0, start - 40)
            cut = [repr(row[start : start + 100]) for row in rows]
            # The beginning of the line, for orientation.
            head = f" ({rows[0][:30]}...)" if start else ""
            return f"line {number + 1}{head}: {cut[0]} became {cut[1]}"
    return "equal lines"  # Not reached, as the texts differ.


# ---- Binary files -----------------------------------------------------------


def _bytes(before: pathlib.Path, after: pathlib.Path) -> list[int]:
    left, right = before.read_bytes(), after.read_bytes()
    if left == right:
        return []
    if ".data-" in before.name:
        _same_tensors(before, after)
        return []
    if before.suffix == ".npy":
        _same_values("values", np.load(before), np.load(after))
    size = min(len(left), len(right))
    differ = np.frombuffer(left[:size], np.uint8) != np.frombuffer(
        right[:size], np.uint8
    )
    first = int(differ.argmax()) if differ.any() else size
    raise _DifferentError(
        f"byte {first:,}, of {len(left):,} and {len(right):,} bytes"
    )


def _same_tensors(before: pathlib.Path, after: pathlib.Path) -> None:
    """Raises an error with the first tensor that differs in two checkpoints.

    In SavedModels, names of Python objects may differ, as in their graphs.
    """
    import tensorflow as tf

    left, right = (
        tf.train.load_checkpoint(str(path).partition(".data-")[0])
        for path in (before, after)
    )
    names = [set(x.get_variable_to_shape_map()) for x in (left, right)]
    if names[0] != names[1]:
        odd = sorted(names[0] ^ names[1])[0]
        raise _DifferentError(f"other tensors: {odd}")
    for name in sorted(names[0] - {_OBJECTS}):
        # A scalar string is read as bytes, not as an array.
        ours, theirs = (np.asarray(x.get_tensor(name)) for x in (left, right))
        _same_values(name, ours, theirs)
    if _OBJECTS not in names[0]:
        raise _DifferentError("equal tensors in other bytes")


def _same_values(
    name: str, left: np.ndarray, right: np.ndarray, most: float = 0
) -> None:
    """Raises _DifferentError unless values are equal, or within `most`."""
    if (left.shape, left.dtype) != (right.shape, right.dtype):
        raise _DifferentError(
            f"{name}: {left.dtype}{list(left.shape)} became "
            f"{right.dtype}{list(right.shape)}"
        )
    if left.tobytes() == right.tobytes():
        return
    if not np.issubdtype(left.dtype, np.number):
        count = int(np.sum(left != right))
        raise _DifferentError(f"{name}: {count} of {left.size} values differ")
    # Also for bfloat16 and unsigned integers.
    gap = np.abs(left.astype(np.float64) - right.astype(np.float64)).max()
    if gap <= most:
        return
    raise _DifferentError(f"{name}: largest difference {gap:.3g}")


def _most(run: str, name: str, rounded: Sequence[Rounded]) -> float:
    """Returns the max expected difference of numbers in a file."""
    return max(
        (
            x.most
            for x in rounded
            if fnmatch.fnmatch(run, x.runs) and fnmatch.fnmatch(name, x.names)
        ),
        default=0,
    )


def _arrays(
    before: pathlib.Path, after: pathlib.Path, most: float
) -> list[int]:
    left, right = np.load(before), np.load(after)
    if set(left.files) != set(right.files):
        odd = sorted(set(left.files) ^ set(right.files))[0]
        raise _DifferentError(f"only one of them has {odd}")
    for name in sorted(left.files):
        _same_values(name, left[name], right[name], most)
    return [len(left[left.files[0]])]


def _events(before: pathlib.Path, after: pathlib.Path) -> list[int]:
    """Compares TensorBoard's values, without times and speeds."""
    left, right = list(_scalars(before)), list(_scalars(after))
    if left != right:
        pairs = zip(left, right, strict=False)
        first = next((x for x in pairs if x[0] != x[1]), "their number")
        raise _DifferentError(f"{first}")
    return []


def _scalars(path: pathlib.Path) -> Iterator[tuple[int, str, bytes]]:
    from tensorflow.core.util import event_pb2

    data, start = path.read_bytes(), 0
    while start < len(data):
        (size,) = struct.unpack_from("<Q", data, start)
        record = data[start + 12 : start + 12 + size]
        start += size + 16
        event = event_pb2.Event.FromString(record)
        for value in event.summary.value:
            if not re.search(_TIMED, value.tag):
                yield event.step, value.tag, value.SerializeToString()
