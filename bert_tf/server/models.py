"""The models that are served: where they lie, and which version answers.

A model is a folder of numbered versions, as TensorFlow Serving has them, of
which the newest answers; or a SavedModel. The folder is looked at again and
again: a new version is loaded and warm before it takes over.
"""

import asyncio
import collections
import contextlib
import dataclasses
import logging
import os
from collections.abc import Callable, Iterator, Sequence

from bert_tf.errors import InputError
from bert_tf.server import batching, servables
from bert_tf.server import signatures as signature_defs
from bert_tf.server.refusals import Refusal

import tensorflow as tf

_LOG = logging.getLogger("bert_tf.server")
_OLD_STATES = 10  # Versions that are gone and still told of.
# As TensorFlow Serving's status has them.
_LOADING, _AVAILABLE = "LOADING", "AVAILABLE"
_UNLOADING, _END = "UNLOADING", "END"

# Model, rows.
OnBatch = Callable[[str, int], None]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a model lies, and what clients call it."""

    name: str
    path: str


def parse_places(given: Sequence[str]) -> list[Place]:
    """Returns where models lie, of `PATH` or `NAME=PATH` each.

    Without a name it is that of the folder, or of the one above a version.
    It raises InputError for a name twice, or one that no path of a URL has.
    """
    places = []
    for text in given:
        name, is_named, path = text.partition("=")
        if not is_named:
            name, path = "", text
        path = path.rstrip("/") or path
        if not name:
            above, name = os.path.split(os.path.abspath(path))
            name = os.path.basename(above) if name.isdigit() else name
        if not path or not name or set(name) & set("/:?#%"):
            raise InputError(
                "--model must be paths of models, or name=path, with commas "
                f"between; a name has none of / : ? # %. Received: model={text}"
            )
        places.append(Place(name, path))
    counts = collections.Counter(place.name for place in places)
    for name, count in counts.items():
        if count > 1:
            raise InputError(
                f"{count} models are called {name}. Name them apart, as in "
                f"--model=one=/path,two=/other. Received: model="
                f"{','.join(given)}"
            )
    return places


def find_versions(path: str) -> dict[int, str]:
    """Returns number -> folder of the SavedModels of a model, newest first."""
    if tf.io.gfile.exists(os.path.join(path, signature_defs.SAVED_MODEL)):
        last = os.path.basename(os.path.abspath(path))
        return {int(last) if last.isdigit() else 1: path}
    if not tf.io.gfile.isdir(path):
        return {}
    found = {}
    for entry in tf.io.gfile.listdir(path):
        name = entry.rstrip("/")
        folder = os.path.join(path, name)
        file = os.path.join(folder, signature_defs.SAVED_MODEL)
        if name.isdigit() and name.isascii() and tf.io.gfile.exists(file):
            found[int(name)] = folder
    return dict(sorted(found.items(), reverse=True))


def _contents(path: str) -> tuple:
    """Returns what tells whether the files of a folder have changed."""
    found = []
    for folder, _, names in tf.io.gfile.walk(path):
        for name in names:
            file = os.path.join(folder, name)
            with contextlib.suppress(tf.errors.OpError):
                stat = tf.io.gfile.stat(file)
                found.append((file, stat.length, stat.mtime_nsec))
    return tuple(sorted(found))


class Model:
    """A model: its versions, one of which answers."""

    def __init__(
        self,
        place: Place,
        limits: batching.Limits,
        on_batch: OnBatch = lambda name, rows: None,
    ):
        """Loads nothing yet: see `update`."""
        self.name = place.name
        self.path = place.path
        self._limits = limits
        self._on_batch = on_batch
        self._current: servables.Servable | None = None
        self._unloading: set[asyncio.Task] = set()
        self._failed: dict[int, tuple] = {}  # Version -> its files then.
        # Version -> state, and what is wrong with it.
        self._states: dict[int, tuple[str, str]] = {}

    @property
    def waiting(self) -> int:
        """Requests that wait or are under way."""
        return self._current.waiting if self._current else 0

    # ---- Versions -----------------------------------------------------------

    async def update(self) -> None:
        """Loads the newest version that can be, unless it answers already."""
        found = await asyncio.to_thread(find_versions, self.path)
        for version, path in found.items():
            if self._current and self._current.version == version:
                return
            if await self._load(version, path):
                return
        if self._current:
            return
        if not found:
            raise InputError(
                "A model must be a SavedModel, or a folder of SavedModels in "
                "folders called 1, 2 and so on: write one with "
                f"export_saved_model.py. Received: model={self.path}"
            )
        _, why = self._states[max(found)]
        raise InputError(f"No version of {self.name} can be loaded: {why}")

    async def _load(self, version: int, path: str) -> bool:
        """Loads a version in place of the current one; False if it can't be."""
        contents = await asyncio.to_thread(_contents, path)
        if self._failed.get(version) == contents:
            return False  # Nobody has mended it.
        self._states[version] = (_LOADING, "")
        try:
            loaded = await asyncio.to_thread(
                servables.Servable,
                path,
                version,
                self._limits,
                lambda rows: self._on_batch(self.name, rows),
            )
        except Exception as error:
            self._failed[version] = contents
            self._states[version] = (_END, str(error))
            is_foreseen = isinstance(error, (InputError, tf.errors.OpError))
            _LOG.error(
                "Version %d of %s can't be loaded: %s",
                version,
                self.name,
                error,
                exc_info=None if is_foreseen else error,
            )
            return False
        self._failed.pop(version, None)
        self._states[version] = (_AVAILABLE, "")
        old, self._current = self._current, loaded
        _LOG.info("Serving version %d of %s.", version, self.name)
        if old:
            task = asyncio.create_task(self._unload(old))
            self._unloading.add(task)
            task.add_done_callback(self._unloading.discard)
        return True

    async def _unload(self, old: servables.Servable) -> None:
        """Lets go of a version when nobody uses it any more."""
        self._states[old.version] = (_UNLOADING, "")
        while old.users:
            await asyncio.sleep(0.02)
        await asyncio.to_thread(old.close)
        self._states[old.version] = (_END, "")
        gone = [v for v, (state, _) in self._states.items() if state == _END]
        for version in sorted(gone)[:-_OLD_STATES]:
            del self._states[version]

    async def close(self) -> None:
        """Answers what waits, then lets go of all versions."""
        current, self._current = self._current, None
        if current:
            await self._unload(current)
        await asyncio.gather(*self._unloading)

    # ---- Requests -----------------------------------------------------------

    @contextlib.contextmanager
    def using(self, version: int | None) -> Iterator[servables.Servable]:
        """Holds a version while it is used, by default the one that answers.

        It raises Refusal if that is not there.
        """
        current = self._current
        if current is None or version not in (None, current.version):
            which = f"Latest({self.name})"
            if version is not None:
                which = f"Specific({self.name}, {version})"
            raise Refusal(f"Servable not found for request: {which}", 404)
        current.users += 1
        try:
            yield current
        finally:
            current.users -= 1

    def status(self, version: int | None) -> dict:
        """Returns what TensorFlow Serving's status says of versions."""
        states = dict(sorted(self._states.items(), reverse=True))
        if version is not None:
            states = {k: x for k, x in states.items() if k == version}
        if not states:
            raise Refusal(
                f"Could not find version {version} of model {self.name}", 404
            )
        return {
            "model_version_status": [
                {
                    "version": str(number),
                    "state": state,
                    "status": {
                        "error_code": "INVALID_ARGUMENT" if why else "OK",
                        "error_message": why,
                    },
                }
                for number, (state, why) in states.items()
            ]
        }
