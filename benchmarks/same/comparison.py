"""Compares what a run wrote in two checkouts, for benchmarks/same_as_before.py.

Files are compared byte for byte, but for what LEFT_OUT and MASKS name, and for
what is meant to differ.
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

# Files whose bytes differ from run to run of one and the same checkout.
LEFT_OUT = {
    "*saved_model.pb": "has names and source lines of Python functions; its "
    "answers are compared instead",
    "*fingerprint.pb": "a hash of saved_model.pb",
    "*variables/variables.index": "has checksums of the next",
}
# A tensor of theirs that is none of the model's.
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
# What is taken out of texts: pattern, in which files, why.
_TIMED = "per_second|input_share|peak_memory|flops_utilization"
_LOGS = "stderr *log.txt"
_TEXTS = "*.txt *.json *.jsonl *.tsv *.csv *.conll *.out *checkpoint std*"
# The version, in the name of a run of GLUE.
_VERSIONED = r"(?<=_batch8)_[0-9a-f]{8}\b"
MASKS = (
    (r"(?m)^[IWE]\d{4} [\d:.]+ .*\n", _LOGS, "TensorFlow's own log"),
    (r"(?m)^\d\d:\d\d:\d\d ", _LOGS, "time of a line"),
    (r"\n +", _LOGS, "where a line is broken, which speeds decide"),
    (r"(?m)^(Tokenized|Cut|Wrote) .*/s$\n?", _LOGS, "how fast it goes"),
    (r"[\d,.]+ [\w ]+/s\b", _LOGS, "speed"),
    (r"(?m)^.* \d+:\d\d (so far|in all)\n", _LOGS, "how long it takes"),
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
# TensorBoard's files, whose names have time and host in them.
_EVENTS = re.compile(r"events\.out\.tfevents\..*")


@dataclasses.dataclass(frozen=True)
class Expected:
    """A difference that is meant.

    Attributes:
        old: What texts of the first checkout say, and names of its scripts.
        new: What the second says instead.
        reason: Why.
        runs: Only in these, as a file pattern.
    """

    old: str
    new: str
    reason: str
    runs: str = "*"

    def rewrite(self, text: str) -> str:
        """Returns a text of the first checkout as the second has it.

        Wherever its lines are broken.
        """
        words = r"\s+".join(map(re.escape, self.old.split()))
        return re.sub(rf"(?<!\w){words}", self.new, text)


@dataclasses.dataclass(frozen=True)
class New:
    """Files that only the second checkout is meant to write.

    Attributes:
        names: Of the files, a pattern.
        reason: Why.
        runs: Only in these, as a file pattern.
    """

    names: str
    reason: str
    runs: str = "*"


@dataclasses.dataclass(frozen=True)
class Changed:
    """Files that are meant to hold something else; they are not compared.

    Attributes:
        names: Of the files, a pattern.
        reason: Why.
        runs: Only in these, as a file pattern.
    """

    names: str
    reason: str
    runs: str = "*"


@dataclasses.dataclass(frozen=True)
class TakenOut:
    """What is taken out of texts of both checkouts before they are compared.

    Attributes:
        pattern: A regular expression.
        files: Their names, as patterns.
        reason: Why.
    """

    pattern: str
    files: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Rounded:
    """Numbers that are meant to be rounded otherwise.

    Attributes:
        names: Of the files with arrays, a pattern.
        most: By so much at most.
        reason: Why.
        runs: Only in these, as a file pattern.
    """

    names: str
    most: float
    reason: str
    runs: str


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a comparison of a run found.

    Attributes:
        compared: Files that were compared.
        difference: The first one; "" of none.
        expected: Differences that are meant -> how many files have them.
        lines: Answers of exports that are in them.
    """

    compared: int = 0
    difference: str = ""
    expected: dict[str, int] = dataclasses.field(default_factory=dict)
    lines: int = 0


@dataclasses.dataclass(frozen=True)
class Side:
    """A checkout and the folder that its runs write into."""

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
    """Compares all that a run wrote and printed."""
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
    """Files to compare by their names, the same for any time and host."""
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
    """Says what the first difference is."""


# ---- Texts ------------------------------------------------------------------


def _masked(
    path: pathlib.Path, name: str, side: Side, taken_out: Sequence[TakenOut]
) -> str:
    """Returns a text without what differs from run to run."""
    text = path.read_text("utf-8", "backslashreplace")
    # The second reads some of what the first wrote: both folders are WORK.
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
    ):  # Blanks stood around what is gone.
        text = re.sub(" +", " ", text)
    return text


def _texts(
    before: str, after: str, expected: Sequence[Expected]
) -> Iterable[str]:
    """Returns the expected differences that there are."""
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
    """Words wherever lines are broken, which another name changes."""
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
            # What the line is about.
            head = f" ({rows[0][:30]}...)" if start else ""
            return f"line {number + 1}{head}: {cut[0]} became {cut[1]}"
    return "equal lines"  # Not reached: the texts differ.


# ---- Others -----------------------------------------------------------------


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
    """Names the first tensor of two checkpoints that differs.

    Of SavedModels the names of Python's objects may differ, as in their graph.
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
        # Texts alone are no arrays.
        ours, theirs = (np.asarray(x.get_tensor(name)) for x in (left, right))
        _same_values(name, ours, theirs)
    if _OBJECTS not in names[0]:
        raise _DifferentError("equal tensors in other bytes")


def _same_values(
    name: str, left: np.ndarray, right: np.ndarray, most: float = 0
) -> None:
    """Raises _DifferentError unless all bits are equal, or nearly so."""
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
    # bfloat16 and integers without signs as well.
    gap = np.abs(left.astype(np.float64) - right.astype(np.float64)).max()
    if gap <= most:
        return
    raise _DifferentError(f"{name}: largest difference {gap:.3g}")


def _most(run: str, name: str, rounded: Sequence[Rounded]) -> float:
    """Returns how far numbers of a file may be apart."""
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
    """Compares what TensorBoard shows, without times and speeds."""
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
