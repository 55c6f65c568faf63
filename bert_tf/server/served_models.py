"""The served models: their folders, and the versions that answer.

A model is a SavedModel, or a folder of numbered versions as for TensorFlow
Serving. The newest version answers, or the versions that a models.config lists.
The folder is polled: a new version is loaded and warmed up before it takes
over.
"""

import asyncio
import collections
import contextlib
import logging
import os
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence

from bert_tf.errors import InputError
from bert_tf.exporting import unsafe_ops, version_labels
from bert_tf.server import batching, constant_kernels, servables
from bert_tf.server.refusals import Refusal
from bert_tf.storage import written_files

import tensorflow as tf

_LOG = logging.getLogger("bert_tf.server")
_OLD_STATES = 10  # Unloaded versions that are still reported.
# States in TensorFlow Serving's status.
_LOADING, _AVAILABLE = "LOADING", "AVAILABLE"
_UNLOADING, _END = "UNLOADING", "END"
STATES = (_LOADING, _AVAILABLE, _UNLOADING, _END)

# Characters with a special meaning in the path of a URL.
_NOT_IN_NAMES = frozenset("/:?#%")

# Called with the model's name and the number of rows.
OnBatch = Callable[[str, int], None]


def parse_places(given: Sequence[str]) -> list[version_labels.Served]:
    """Parses `PATH` or `NAME=PATH` for each model.

    The default name is the folder's, or its parent's if the folder is a
    version. Raises InputError for a duplicate name, or a name that is not valid
    in a URL.
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
        if not path or not name or set(name) & _NOT_IN_NAMES:
            raise InputError(
                "--model must be paths of models, or name=path, with commas "
                f"between; a name has none of / : ? # %. Received: model={text}"
            )
        places.append(version_labels.Served(name, path))
    counts = collections.Counter(place.name for place in places)
    for name, count in counts.items():
        if count > 1:
            raise InputError(
                f"{count} models are called {name}. Name them apart, as in "
                f"--model=one=/path,two=/other. Received: model="
                f"{','.join(given)}"
            )
    return places


def read_places(folder: str) -> list[version_labels.Served]:
    """Returns the models in the models.config of a folder.

    Raises InputError if it is missing, or has unsupported fields.
    """
    served = version_labels.read(folder)
    for each in served:
        if set(each.name) & _NOT_IN_NAMES:
            raise InputError(
                f"{version_labels.path_in(folder)}: a name has none of "
                f"/ : ? # %. Received: name={each.name}"
            )
    return served


def find_versions(path: str) -> dict[int, str]:
    """Returns the folders of a model's versions by number, newest first."""
    if tf.io.gfile.exists(os.path.join(path, written_files.GRAPH)):
        last = os.path.basename(os.path.abspath(path))
        return {int(last) if last.isdigit() else 1: path}
    if not tf.io.gfile.isdir(path):
        return {}
    found = {}
    for entry in tf.io.gfile.listdir(path):
        name = entry.rstrip("/")
        folder = os.path.join(path, name)
        file = os.path.join(folder, written_files.GRAPH)
        if name.isdigit() and name.isascii() and tf.io.gfile.exists(file):
            found[int(name)] = folder
    return dict(sorted(found.items(), reverse=True))


def _contents(path: str) -> tuple:
    """Returns a key that changes when files of a folder change."""
    found = []
    for folder, _, names in tf.io.gfile.walk(path):
        for name in names:
            file = os.path.join(folder, name)
            with contextlib.suppress(tf.errors.OpError):
                stat = tf.io.gfile.stat(file)
                found.append((file, stat.length, stat.mtime_nsec))
    return tuple(sorted(found))


class Model:
    """A model and its versions, at least one of them answering requests.

    Attributes:
        `place`: The model's current folder, versions and labels; see `update`.
    """

    def __init__(
        self,
        place: version_labels.Served,
        limits: batching.Limits,
        on_batch: OnBatch = lambda name, rows: None,
        allow_unsafe_ops: bool = False,
    ):
        """Creates a model without loading it; see `update`."""
        self._allow_unsafe_ops = allow_unsafe_ops
        self.name = place.name
        self.path = place.path
        self.place = place
        self._limits = limits
        self._on_batch = on_batch
        self._loaded: dict[int, servables.Servable] = {}
        self._labels: dict[str, int] = {}  # Labels of loaded versions.
        self._unloading: set[asyncio.Task] = set()
        self._failed: dict[int, tuple] = {}  # Version -> files that failed.
        # Version -> state and error message.
        self._states: dict[int, tuple[str, str]] = {}

    @property
    def waiting(self) -> int:
        """Number of waiting and running requests."""
        return sum(servable.waiting for servable in self._loaded.values())

    @property
    def addresses(self) -> dict[str, servables.Servable]:
        """The loaded versions by the suffix of their URLs.

        The newest comes first, as "" and as `/versions/N`, then the labels.
        """
        numbers = sorted(self._loaded, reverse=True)
        ends = dict(zip([""], numbers, strict=False))
        ends |= {f"/versions/{x}": x for x in numbers}
        ends |= {
            f"/labels/{urllib.parse.quote(label, safe='')}": x
            for label, x in self._labels.items()
            if x in self._loaded
        }
        return {end: self._loaded[x] for end, x in ends.items()}

    @property
    def loading(self) -> list[int]:
        """The versions that are being loaded."""
        states = self._states.items()
        return [number for number, (state, _) in states if state == _LOADING]

    # ---- Versions -----------------------------------------------------------

    async def update(self) -> None:
        """Loads the versions that should answer, then unloads others.

        They are those in `place`, or the newest that can be loaded. If a listed
        version cannot be loaded, the previous versions of its labels remain; if
        no version can be, all previous ones do.
        """
        place = self.place
        found = await asyncio.to_thread(find_versions, self.path)
        listed = place.versions
        wanted = list(found) if listed is None else sorted(listed)[::-1]
        answering: set[int] = set()
        problems: dict[int, Exception] = {}
        for version in wanted:
            if version not in self._loaded:
                await self._load(version, found.get(version), problems)
            if version in self._loaded:
                answering.add(version)
                if listed is None:
                    break
        self._log(problems)
        self._labels = {
            label: version if version in answering else self._labels[label]
            for label, version in place.labels.items()
            if version in answering or label in self._labels
        }
        if answering:
            kept = answering | set(self._labels.values())
            for version in self._loaded.keys() - kept:
                self._let_go(version)
        if not self._loaded:
            self._refuse(wanted)

    def _refuse(self, wanted: Sequence[int]) -> None:
        """Raises InputError because no version can answer."""
        if not wanted:
            raise InputError(
                "A model must be a SavedModel, or a folder of SavedModels in "
                "folders called 1, 2 and so on: write one with "
                f"export_saved_model.py. Received: model={self.path}"
            )
        _, why = self._states[max(wanted)]
        raise InputError(f"No version of {self.name} can be loaded: {why}")

    def _log(self, problems: Mapping[int, Exception]) -> None:
        """Logs the versions that can't be loaded.

        If no other version answers, `update` raises an error instead.
        """
        for version, error in problems.items():
            is_foreseen = isinstance(error, (InputError, tf.errors.OpError))
            if is_foreseen and not self._loaded:
                continue
            _LOG.error(
                "Version %d of %s can't be loaded: %s",
                version,
                self.name,
                error,
                exc_info=None if is_foreseen else error,
            )

    async def _load(
        self, version: int, path: str | None, problems: dict[int, Exception]
    ) -> None:
        """Loads a version; if that fails, adds the error to `problems`."""
        contents = await asyncio.to_thread(_contents, path) if path else ()
        if self._failed.get(version) == contents:
            return  # The files that failed before have not changed.
        self._states[version] = (_LOADING, "")
        try:
            if not path:
                raise InputError(
                    "a version is a folder with a SavedModel, and there is "
                    f"none. Received: {os.path.join(self.path, str(version))}"
                )
            _LOG.info("Loading version %d of %s.", version, self.name)
            await asyncio.to_thread(constant_kernels.check, path)
            if not self._allow_unsafe_ops:
                await asyncio.to_thread(
                    unsafe_ops.check, path, "--allow_unsafe_ops"
                )
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
            problems[version] = error
            return
        self._failed.pop(version, None)
        self._states[version] = (_AVAILABLE, "")
        self._loaded[version] = loaded
        _LOG.info("Serving version %d of %s.", version, self.name)

    def _let_go(self, version: int, seconds: float | None = None) -> None:
        """Stops requests to a version, and starts to unload it."""
        old = self._loaded.pop(version)
        task = asyncio.create_task(self._unload(old, seconds))
        self._unloading.add(task)
        task.add_done_callback(self._unloading.discard)

    async def _unload(
        self, old: servables.Servable, seconds: float | None = None
    ) -> None:
        """Releases a version once nobody uses it, or after a timeout."""
        self._states[old.version] = (_UNLOADING, "")
        until = None if seconds is None else time.monotonic() + seconds
        while old.users and (until is None or time.monotonic() < until):
            await asyncio.sleep(0.02)
        left = until and max(0, until - time.monotonic())
        await asyncio.to_thread(old.close, left)
        self._states[old.version] = (_END, "")
        gone = [v for v, (state, _) in self._states.items() if state == _END]
        for version in sorted(gone)[:-_OLD_STATES]:
            del self._states[version]

    async def close(self, seconds: float | None = None) -> None:
        """Answers waiting requests, and releases all versions.

        Args:
            seconds: Timeout for requests; None for no timeout.
        """
        for version in list(self._loaded):
            self._let_go(version, seconds)
        await asyncio.gather(*self._unloading)

    # ---- Requests -----------------------------------------------------------

    @contextlib.contextmanager
    def using(self, version: int | None) -> Iterator[servables.Servable]:
        """Holds a version, by default the newest, while it is used.

        Raises Refusal if it is not loaded.
        """
        newest = max(self._loaded, default=0)
        current = self._loaded.get(newest if version is None else version)
        if current is None:
            which = f"Latest({self.name})"
            if version is not None:
                which = f"Specific({self.name}, {version})"
            raise Refusal(
                f"Servable not found for request: {which}. {self._loaded_now}",
                404,
            )
        current.users += 1
        try:
            yield current
        finally:
            current.users -= 1

    @property
    def _loaded_now(self) -> str:
        listed = ", ".join(map(str, sorted(self._loaded))) or "none"
        return f"Loaded versions: {listed}."

    def labelled(self, label: str) -> int:
        """Returns the version of a label; Refusal for an unknown one."""
        if label not in self._labels:
            raise Refusal(f"Unrecognized servable version label: {label}")
        return self._labels[label]

    def status(self, version: int | None) -> dict:
        """Returns the status of versions in TensorFlow Serving's format."""
        states = dict(sorted(self._states.items(), reverse=True))
        if version is not None:
            states = {k: x for k, x in states.items() if k == version}
        if not states:
            raise Refusal(
                f"Could not find version {version} of model {self.name}. "
                f"{self._loaded_now}",
                404,
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
