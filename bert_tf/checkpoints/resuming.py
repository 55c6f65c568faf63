"""Checks by variable name whether a run can resume from a checkpoint."""

from collections.abc import Collection, Set

from bert_tf import optimization
from bert_tf.checkpoints import tf1_files
from bert_tf.errors import InputError

_MOST_LISTED = 10


def moments_of(names: Collection[str], variables: Collection[str]) -> set[str]:
    """Returns the names that are optimizer moments of these variables."""
    found = ((name, optimization.slot_of(name)) for name in names)
    return {name for name, slot in found if slot and slot[0] in variables}


def check(prefix: str, wanted: Set[str], stored: Set[str]) -> None:
    """Raises InputError unless checkpoint and run have the same names.

    They cover weights, moments, the step, and the position in the data.
    """
    ours, theirs = wanted - stored, stored - wanted
    if not ours and not theirs:
        return
    reasons = (
        _weights(ours, theirs),
        _moments(wanted, stored),
        _state(ours, theirs),
    )
    raise InputError(
        f"{prefix} can't be gone on with. "
        f"{' '.join(reason for reason in reasons if reason)} "
        "Choose another output_dir, or start from these weights with "
        "--init_checkpoint."
    )


def _weights(ours: Set[str], theirs: Set[str]) -> str:
    here, there = (
        [name for name in names if tf1_files.is_weight(name)]
        for names in (ours, theirs)
    )
    if not here and not there:
        return ""
    return (
        "It holds another model than this run's. "
        f"In this run only: {_listed(here)}. "
        f"In the checkpoint only: {_listed(there)}."
    )


def _moments(wanted: Set[str], stored: Set[str]) -> str:
    """Describes how the moments of shared variables differ."""
    kinds, owners = [], []
    for names, others in ((wanted, stored), (stored, wanted)):
        found = [slot for slot in map(optimization.slot_of, names) if slot]
        kinds.append({kind for _, kind in found})
        owners.append({owner for owner, _ in found if owner in others})
    here, there = (", ".join(sorted(kind)) or "none" for kind in kinds)
    if kinds[0] and not kinds[1]:
        return (
            f"It holds no moments ({here}), only weights, as what "
            "--strip_optimizer writes and the checkpoint in best/."
        )
    if kinds[0] != kinds[1]:
        fitting = [
            name
            for name, kind in optimization.OPTIMIZERS.items()
            if {*kind.slot_names} == kinds[1]
        ]
        return (
            f"Its optimizer's moments are {there}, and this run's {here}: "
            "pass the --optimizer that it was trained with"
            f"{': one of ' if fitting else ''}{', '.join(fitting)}."
        )
    only_here, only_there = owners[0] - owners[1], owners[1] - owners[0]
    if not only_here and not only_there:
        return ""
    return (
        "Its run trained other variables. "
        f"Trained in this run only: {_listed(only_here)}. "
        f"In the checkpoint only: {_listed(only_there)}."
    )


def _state(ours: Set[str], theirs: Set[str]) -> str:
    """Describes a step, data position or loss scale that only one has."""
    here, there = (
        [name for name in names if tf1_files.is_state(name)]
        for names in (ours, theirs)
    )
    said = []
    if here:
        said.append(f"It lacks {_listed(here)}.")
    if there:
        said.append(f"This run has no {_listed(there)}.")
    if any(name.startswith("loss_scale/") for name in (*here, *there)):
        said.append("Of the two one is of --dtype=float16: keep the --dtype.")
    return " ".join(said)


def _listed(names: Collection[str]) -> str:
    first = sorted(names)[:_MOST_LISTED]
    if len(names) > len(first):
        first.append(f"and {len(names) - len(first)} more")
    return ", ".join(first) or "nothing"
