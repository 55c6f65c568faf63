"""Finds the processes that train together: from TF_CONFIG or Slurm."""

import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError

_EXAMPLE = (
    '{"cluster": {"worker": ["host1:port", "host2:port"]}, '
    '"task": {"type": "worker", "index": 0}}'
)
_ROLES = ("chief", "worker")
_MOST_LISTED = 8
_SLURM = (
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_TASKS_PER_NODE",
)


def find(environment: Mapping[str, str]) -> str:
    """Returns a validated TF_CONFIG: the environment's, or one for `srun`."""
    if "TF_CONFIG" in environment:
        text = environment["TF_CONFIG"]
        _check(text)
        return text
    missing = [name for name in _SLURM if name not in environment]
    if missing:
        raise InputError(
            "The strategy multi_worker_mirrored reads the cluster from the "
            "environment variable TF_CONFIG, which is not set, nor are all of "
            f"{', '.join(_SLURM)}, which srun sets. Use mirrored on one "
            "machine."
        )
    return json.dumps(_from_slurm(environment))


def others(text: str) -> str:
    """Returns the addresses of the other processes in a TF_CONFIG."""
    config = json.loads(text)
    role, index = config["task"]["type"], int(config["task"]["index"])
    found = [
        address
        for name in _ROLES
        for i, address in enumerate(config["cluster"].get(name, ()))
        if (name, i) != (role, index)
    ]
    if len(found) > _MOST_LISTED:
        found[_MOST_LISTED:] = [f"and {len(found) - _MOST_LISTED} more"]
    return ", ".join(found)


def share_of_gpus(
    environment: Mapping[str, str], gpus: int
) -> tuple[int, int] | None:
    """Returns the GPUs of this machine that belong to this Slurm task.

    (first, step) means every `step`-th GPU from the first. None means all
    visible GPUs: the task is alone on the machine, or Slurm has already divided
    them.
    """
    names = ("SLURM_NODEID", "SLURM_LOCALID", "SLURM_GPUS_ON_NODE")
    if any(name not in environment for name in (*_SLURM, *names)):
        return None
    numbers = [environment[name] for name in names]
    if not all(number.isdecimal() for number in numbers):
        return None
    node, local, there = map(int, numbers)
    counts = _tasks(environment["SLURM_STEP_TASKS_PER_NODE"])
    # Other mistakes are reported when the cluster is built.
    if node >= len(counts) or counts[node] == 1 or gpus < there:
        return None
    tasks = counts[node]
    if gpus % tasks:
        raise InputError(
            "The GPUs of a machine must be a multiple of its tasks. Received: "
            f"{gpus} GPUs, {tasks} tasks on the machine"
        )
    return local, tasks


def _check(text: str) -> None:
    try:
        config = json.loads(text)
        workers = {
            role: list(addresses)
            for role, addresses in config["cluster"].items()
        }
        role, index = config["task"]["type"], int(config["task"]["index"])
    # RecursionError: lists nested too deeply.
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:
        raise InputError(
            f"TF_CONFIG does not describe a cluster, such as {_EXAMPLE}. "
            f"Received: {_shortened(text)}"
        ) from error
    addresses = [address for role in workers for address in workers[role]]
    wrong = None
    if unknown := sorted({*workers, role} - {*_ROLES}):
        names = ", ".join(unknown)
        wrong = f"it names {names}, and only chief and worker train"
    elif not 0 <= index < len(workers.get(role, ())):
        wrong = (
            f"this is {role} {index}, of which the cluster has "
            f"{len(workers.get(role, ()))}, counted from 0"
        )
    elif len(workers.get("chief", ())) > 1:
        wrong = "it has more than one chief"
    elif len(set(addresses)) < len(addresses):
        wrong = "two processes have the same address"
    elif bad := [a for a in addresses if not _is_address(str(a))]:
        wrong = f"{bad[0]} is not HOST:PORT"
    if wrong:
        raise InputError(
            f"TF_CONFIG contradicts itself: {wrong}. "
            f"Received: {_shortened(text)}"
        )


def _is_address(text: str) -> bool:
    found = re.fullmatch(r".+:(\d{1,5})", text)
    return found is not None and 0 < int(found[1]) < 1 << 16


def _shortened(text: str) -> str:
    """Shortens a variable for an error message: clusters can be large."""
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}…"


# Not tf.distribute's SlurmClusterResolver. It would work with and without GPUs
# if it were passed the ports, which all jobs of a host share by default, and
# the number of GPUs, for which it otherwise calls nvidia-smi, which may be
# missing. But it raises a RuntimeError if a variable is missing, and it does
# not expose the tasks of each host, which are needed to divide the GPUs.
def _from_slurm(environment: Mapping[str, str]) -> dict[str, Any]:
    """Returns the cluster of a Slurm step, in the order of Slurm's ranks."""
    hosts = _hosts(environment["SLURM_STEP_NODELIST"])
    tasks = _tasks(environment["SLURM_STEP_TASKS_PER_NODE"])
    rank, job = environment["SLURM_PROCID"], environment["SLURM_JOB_ID"]
    if (
        len(hosts) != len(tasks)
        or not (rank.isdecimal() and job.isdecimal())
        or int(rank) >= sum(tasks)
    ):
        raise InputError(
            "The variables of Slurm contradict each other. Start the script "
            "by srun, or describe the workers in TF_CONFIG. Received: "
            + ", ".join(f"{name}={environment[name]}" for name in _SLURM)
        )
    ends = itertools.accumulate(tasks)
    node = next(i for i, end in enumerate(ends) if int(rank) < end)
    if environment.get("SLURM_NODEID", str(node)) != str(node):
        raise InputError(
            "The tasks of a host need ranks that follow each other. Start the "
            "script by srun --distribution=block, or describe the workers in "
            f"TF_CONFIG. Received: SLURM_PROCID={rank}, "
            f"SLURM_NODEID={environment['SLURM_NODEID']}"
        )
    # Ports that two jobs on one host rarely share.
    first = 20_000 + int(job) % 10_000
    workers = [
        f"{host}:{first + task}"
        for host, count in zip(hosts, tasks, strict=True)
        for task in range(count)
    ]
    return {
        "cluster": {"worker": workers},
        "task": {"type": "worker", "index": int(rank)},
    }


def _hosts(text: str) -> list[str]:
    """Expands `a[1-2,07],b` to a1, a2, a07, b."""
    item = r"[^][,]+(?:\[[\d,-]+\])?"
    if not re.fullmatch(f"{item}(?:,{item})*", text):
        raise InputError(
            "Slurm's list of hosts is written in a way that is not understood "
            "here. Give the hosts in TF_CONFIG. Received: "
            f"SLURM_STEP_NODELIST={text}"
        )
    hosts = []
    for prefix, _, ranges in re.findall(r"([^,\[]+)(\[([^\]]*)\])?", text):
        for part in ranges.split(","):
            first, _, last = part.partition("-")
            if not part:
                hosts.append(prefix)
                continue
            for number in range(int(first), int(last or first) + 1):
                hosts.append(prefix + str(number).zfill(len(first)))
    return hosts


def _tasks(text: str) -> list[int]:
    """Expands `2(x3),1` to 2, 2, 2, 1."""
    counts = re.findall(r"(\d+)(?:\(x(\d+)\))?(?:,|$)", text)
    return [int(n) for n, times in counts for _ in range(int(times or 1))]
