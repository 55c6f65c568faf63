"""Changes files in many ways, and looks at what reads them.

Whatever is in a file, reading it succeeds or raises an error of one line. Pipes
are never waited for.
"""

import contextlib
import json
import os
import pathlib
import random
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bert_tf.flags import error_lines

# In the place of a file.
FOLDER, PIPE, MISSING = "a folder", "a pipe", "missing"
_LONGEST = 2000
_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 3.5, 10**30, float("nan"), "x", "", []),
    *({}, [None], [[["x"]]], {"x": {"y": [1]}}, "\ud800", "x" * 100_000),
)
_DEEP = b"[" * 100_000

Read = Callable[[pathlib.Path], object]


def mutations(data: bytes, count: int, seed: int) -> dict[str, bytes | str]:
    """Returns changed contents of a file, or what takes its place, by names.

    Args:
        data: The content of the file.
        count: The number of changes besides those that all files get.
        seed: Of the random choices.
    """
    rng = random.Random(seed)
    found: dict[str, bytes | str] = {
        **{name: name for name in (FOLDER, PIPE, MISSING)},
        "empty": b"",
        "zeros": bytes(len(data)),
        "cut": data[: len(data) // 2],
        "without its last byte": data[:-1],
        "twice": data * 2,
        "no UTF-8": b"\xff\xfe\x00\xd8" + data,
        "deep": _DEEP,
    }
    with contextlib.suppress(ValueError):
        found |= _of_json(json.loads(data), count // 2, rng)
    while len(found) < count + 10:
        place = rng.randrange(len(data))
        changed = bytearray(data)
        kind = rng.choice(["flip", "remove", "insert", "repeat"])
        if kind == "flip":
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == "remove":
            del changed[place : place + rng.choice([1, 4, 100])]
        elif kind == "insert":
            changed[place:place] = rng.choice(
                [b"\n", b"\t", b'"', b",", b"\0", b"9" * 5000, b"\xff"]
            )
        else:
            changed[place:place] = changed[place : place + 50]
        found[f"{len(found)}: {kind} at {place}"] = bytes(changed)
    return found


def _of_json(value: Any, count: int, rng: random.Random) -> dict[str, bytes]:
    """Returns JSON with values of other types in some places."""
    places = [(), *_places(value)]
    # First those that most readers look at.
    chosen = places[: count // 2] + rng.choices(places, k=count)
    found = {}
    for place in chosen[:count]:
        other = rng.choice(_VALUES)
        changed = json.loads(json.dumps(value))
        if not place:
            changed = other
        else:
            inside = changed
            for key in place[:-1]:
                inside = inside[key]
            if rng.random() < 0.2:
                del inside[place[-1]]
                other = "removed"
            else:
                inside[place[-1]] = other
        name = f"{place}: {repr(other)[:20]}"
        found[name] = json.dumps(changed).encode()
    return found


def _places(value: Any) -> Iterator[tuple]:
    """Yields the keys to all values, the outer ones first."""
    waiting: list[tuple[tuple, Any]] = [((), value)]
    while waiting:
        place, inside = waiting.pop(0)
        items: Iterable[tuple[Any, Any]] = ()
        if isinstance(inside, dict):
            items = inside.items()
        elif isinstance(inside, list):
            items = enumerate(inside[:20])
        for key, item in items:
            yield (*place, key)
            waiting.append(((*place, key), item))


def check(
    folder: pathlib.Path,
    work: pathlib.Path,
    name: str,
    read: Read,
    count: int,
) -> list[str]:
    """Reads a folder with one of its files changed; returns what went wrong.

    Args:
        folder: The folder as it should be.
        work: A new folder, for the changed one.
        name: The file in the folder.
        read: Reads the folder.
        count: The number of changes; see `mutations`.
    """
    problems = []
    data = (folder / name).read_bytes()
    for change, content in mutations(data, count, len(name)).items():
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(folder, work)
        with _placed(work / name, content) as is_opened:
            problem = _problem(read, work)
        if is_opened():
            problem = "waits for a pipe"
        if problem:
            problems.append(f"{name}, {change}: {problem}")
    return problems


@contextlib.contextmanager
def _placed(
    path: pathlib.Path, content: bytes | str
) -> Iterator[Callable[[], bool]]:
    """Puts content in the place of a file.

    It yields what tells whether a pipe was opened. Its reader gets nothing,
    and need not be waited for.
    """
    path.unlink()
    opened = threading.Event()
    if content == FOLDER:
        path.mkdir()
    elif content == PIPE:
        os.mkfifo(path)
        done = threading.Event()

        def answer():
            while not done.is_set():
                with open(path, "wb"):
                    if not done.is_set():
                        opened.set()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    yield opened.is_set
    if content == PIPE:
        done.set()
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        thread.join()
        os.close(reader)


def _problem(read: Read, folder: pathlib.Path) -> str:
    """Returns what is wrong with the way a folder is read; "" if nothing."""
    try:
        read(folder)
    except BaseException as error:
        if not error_lines.is_foreseen(error):
            return f"{type(error).__name__}: {str(error)[:300]}"
        line = error_lines.one_line(error)
        if len(line) > _LONGEST:
            return f"an error of {len(line)} characters: {line[:200]}"
    return ""
