"""Manages which versions of a model are served, and their labels.

A folder's models.config lists, for each model, the loaded versions and their
labels: `stable`, `canary`, and `previous`, the last stable version, which stays
loaded for a rollback. TensorFlow Serving does not move a label to a version
that it has not loaded, so labels are moved only to listed versions.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError
from bert_tf.exporting import server_configs, versions
from bert_tf.storage import file_systems

STABLE, CANARY = server_configs.LABELS
PREVIOUS = "previous"


@dataclasses.dataclass(frozen=True)
class Served:
    """A served model: its folder, versions and labels.

    Attributes:
        name: Its name for clients.
        path: Folder of its versions.
        versions: The loaded versions; None for only the newest.
        labels: Label -> version.
    """

    name: str
    path: str
    versions: tuple[int, ...] | None = None
    labels: Mapping[str, int] = dataclasses.field(default_factory=dict)


def path_in(folder: str) -> str:
    """Returns the path of a folder's models.config."""
    return os.path.join(folder, server_configs.MODELS)


def read(folder: str) -> list[Served]:
    """Returns the models in a folder's models.config.

    Raises InputError if it is missing, or has unsupported fields.
    """
    path = path_in(folder)
    entries = server_configs.read(folder).model_config_list.config
    if not entries:
        raise InputError(
            f"{path} lists no model, or is not there: export_saved_model.py "
            "--serving_dir --config_dir adds them. Received: "
            f"config_dir={folder}"
        )
    found = [_served(entry, path) for entry in entries]
    for served in found:
        if sum(x.name == served.name for x in found) > 1:
            raise InputError(
                f"{path} has several models of one name, of which only one "
                f"can be served. Rename them. Received: name={served.name}"
            )
    return found


def find(folder: str, model: str) -> Served:
    """Returns a model of `read` by its name; "" for the only one.

    Raises InputError if there is no such model.
    """
    known = {served.name: served for served in read(folder)}
    if not model and len(known) == 1:
        return next(iter(known.values()))
    if model not in known:
        raise InputError(
            f"--model must be one of those that {path_in(folder)} lists: "
            f"{', '.join(known)}. Received: model={model}"
        )
    return known[model]


def _served(entry: Any, path: str) -> Served:
    where = f"{path}, model {entry.name or 'without a name'}"
    if not entry.name or not entry.base_path:
        raise InputError(
            f"{where}: a model needs a name and a base_path. Received: "
            f"name={entry.name}, base_path={entry.base_path}"
        )
    policy = entry.model_version_policy
    kind = policy.WhichOneof("policy_choice") or "latest"
    if kind == "all" or policy.latest.num_versions > 1:
        raise InputError(
            f"{where}: versions are served that it lists, or the newest. "
            "Write model_version_policy { specific { versions: 1 } }. "
            f"Received: {kind}"
        )
    listed = tuple(policy.specific.versions) if kind == "specific" else None
    labels = dict(entry.version_labels)
    for label, version in labels.items():
        if listed is not None and version not in listed:
            raise InputError(
                f"{where}: a label is of a version that is served, and these "
                f"are {_said(listed)}. Received: {label}={version}"
            )
    return Served(entry.name, entry.base_path, listed, labels)


def _said(numbers: Any) -> str:
    return ", ".join(map(str, numbers)) or "none"


# ---- Changes ----------------------------------------------------------------


def promote(
    folder: str,
    model: str,
    stable: int | None = None,
    canary: int | None = None,
) -> Served:
    """Moves labels of a model to other versions, which are served already.

    The last stable version becomes `previous`. A canary that becomes stable
    loses its canary label, which the next export gets. Versions without a label
    are no longer served, unless they are newer than all labelled ones.

    Args:
        folder: Folder of models.config.
        model: Name of the model; "" for the only one.
        stable: The version to label as stable.
        canary: The version to label as canary; 0 for none.

    Returns:
        The model with its new labels.

    Raises:
        InputError: There is no such model, or no such version of it.
    """
    find(folder, model)  # Fails before a lock is created.
    with server_configs.changing(folder) as config:
        served = find(folder, model)
        _check_listed(served)
        labels = dict(served.labels)
        if stable is not None:
            _check_loaded(served, STABLE, stable)
            if labels.get(STABLE, stable) != stable:
                labels[PREVIOUS] = labels[STABLE]
            labels[STABLE] = stable
            for label in (CANARY, PREVIOUS):
                if labels.get(label) == stable:
                    del labels[label]
        if canary:
            _check_loaded(served, CANARY, canary)
            labels[CANARY] = canary
        elif canary is not None:
            labels.pop(CANARY, None)
        newest = max(labels.values(), default=0)
        waiting = [x for x in served.versions or () if x > newest]
        return _write(_entry(config, served), labels, waiting)


def roll_back(folder: str, model: str) -> Served:
    """Makes the previous version of a model stable again.

    The version that was stable is no longer served, neither by label nor as the
    newest. Arguments, result and errors are as for `promote`.
    """
    find(folder, model)  # Fails before a lock is created.
    with server_configs.changing(folder) as config:
        served = find(folder, model)
        _check_listed(served)
        labels = dict(served.labels)
        if PREVIOUS not in labels:
            there = ", ".join(f"{x}={n}" for x, n in sorted(labels.items()))
            raise InputError(
                f"{served.name} has no {PREVIOUS} version to go back to: "
                f"there is one after --{STABLE} has named another. Received: "
                f"{there}"
            )
        bad = labels.get(STABLE)
        labels[STABLE] = labels.pop(PREVIOUS)
        kept = {x: n for x, n in labels.items() if n != bad}
        return _write(_entry(config, served), kept, [])


def _entry(config: Any, served: Served) -> Any:
    entries = config.model_config_list.config
    return next(entry for entry in entries if entry.name == served.name)


def _check_listed(served: Served) -> None:
    """Raises InputError unless models.config lists the served versions."""
    if served.versions is None:
        raise InputError(
            f"{served.name} is served by its newest version, whichever that "
            "is. Write model_version_policy { specific { versions: 1 } } with "
            f"its number first. Received: model={served.name}"
        )


def _check_loaded(served: Served, label: str, version: int) -> None:
    """Raises InputError unless a version can have a label."""
    there = on_disk(served)
    if there is not None and version not in there:
        raise InputError(
            f"{served.path} has no version {version}: there are "
            f"{_said(there)}. Received: {label}={version}"
        )
    # A new label may point to a version that is not loaded yet.
    listed = served.versions or ()
    if label in served.labels and version not in listed:
        way_out = f"Name it the canary first (--{CANARY}={version})"
        if label == CANARY:
            way_out = f"Take the label off first (--{CANARY}=0)"
        raise InputError(
            f"TensorFlow Serving moves no label to a version that it has not "
            f"loaded, and of {served.name} these are: "
            f"{_said(listed)}. {way_out}, and ask again when the "
            f"server has read that. Received: {label}={version}"
        )


def _write(entry: Any, labels: Mapping[str, int], more: list[int]) -> Served:
    entry.version_labels.clear()
    entry.version_labels.update(labels)
    listed = sorted({*labels.values(), *more})
    entry.model_version_policy.specific.versions[:] = listed
    return Served(entry.name, entry.base_path, tuple(listed), labels)


# ---- Display ----------------------------------------------------------------


def on_disk(served: Served) -> list[int] | None:
    """Returns the versions in a model's folder; None if it does not exist here.

    models.config has the paths as seen by the server.
    """
    if not file_systems.find_backend(served.path).exists(served.path):
        return None
    return versions.numbers(served.path)


def describe(served: Served) -> list[str]:
    """Returns lines for display: the model, and each of its versions."""
    listed = served.versions
    there = on_disk(served)
    if listed is None:
        listed = tuple((there or [])[-1:])
    lines = [f"{served.name}  {served.path}"]
    for version in sorted({*(there or ()), *listed}):
        names = [x for x, n in sorted(served.labels.items()) if n == version]
        said = ", ".join(names) or "no label"
        if version not in listed:
            said = "not served"
        elif there is not None and version not in there:
            said += "; its folder is missing"
        lines.append(f"  {version}  {said}")
    return lines
