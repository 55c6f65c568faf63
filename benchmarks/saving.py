"""Times pre-training steps during a save in the background, and without.

    python -m benchmarks.saving --model=base --batch=8 --rounds=5
    python -m benchmarks.saving --model=base --batch=8 --rounds=5 --threads=1

The steps and the checkpoint, with weights and moments, are those of
run_pretraining.py. In each round, several steps run alone; then a save starts
in the background, and steps continue until it is complete; then a save runs in
the foreground. With `--threads=1`, the steps leave the other cores idle, as the
steps of an accelerator do; without it they use all cores.

Prints the medians: a step alone, and a step while a save is in progress almost
all of the time; their ratio; how long either kind of save blocks the steps; the
memory of the copy; and whether the files are equal, byte for byte.
"""

import pathlib
import statistics
import tempfile
import time
from typing import Any, NamedTuple

from benchmarks import pretraining_step

from absl import app, flags

_MODEL = flags.DEFINE_string("model", "small", "Of configs/models.")
_BATCH = flags.DEFINE_integer("batch", 8, "B.")
_LENGTH = flags.DEFINE_integer("length", 128, "S.")
_PREDICTIONS = flags.DEFINE_integer("predictions", 20, "P.")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "Whose medians are printed.")
_STEPS = flags.DEFINE_integer("steps", 2, "Made alone in every round.")
_THREADS = flags.DEFINE_integer(
    "threads", 0, "That the steps compute in; by default one a processor.", 0
)
_FOLDER = flags.DEFINE_string(
    "folder", None, "To save in: of the disk to measure. By default in /tmp."
)


class Round(NamedTuple):
    """The measurements of a round: seconds, and bytes of the copy."""

    alone: float
    saving: float
    writing: float
    stall: float
    foreground: float
    memory: int
    is_same: bool


def measure(step: Any, state: Any, folder: pathlib.Path) -> Round:
    """Runs one round."""
    from bert_tf.training import training_state

    alone = _seconds(step, _STEPS.value) / _STEPS.value
    before = pretraining_step.resident()
    with training_state.Writer() as writer:
        began = time.perf_counter()
        prefix = state.save(str(folder / "background"), writer)
        stall = time.perf_counter() - began
        memory = pretraining_step.resident() - before
        saving: list[float] = []
        while not saving or writer.is_writing:
            saving.append(_seconds(step, 1))
        writer.wait()
        writing = time.perf_counter() - began
    kept = _contents(prefix)
    # Steps have changed the state since, so this must differ from `kept`.
    began = time.perf_counter()
    own = state.save(str(folder / "foreground"))
    foreground = time.perf_counter() - began
    with training_state.Writer() as writer:
        again = state.save(str(folder / "background"), writer)
    is_same = _contents(own) == _contents(again) != kept
    return Round(
        *(alone, statistics.mean(saving), writing, stall, foreground),
        *(memory, is_same),
    )


def _seconds(step: Any, count: int) -> float:
    began = time.perf_counter()
    step(count)
    return time.perf_counter() - began


def _contents(prefix: str) -> list[bytes]:
    endings = (".index", ".data-00000-of-00001")
    return [pathlib.Path(prefix + ending).read_bytes() for ending in endings]


def main(_):
    """Measures, and prints the table."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    tf.config.threading.set_inter_op_parallelism_threads(_THREADS.value)
    step, state = pretraining_step.make(
        *(pretraining_step.config_of(_MODEL.value), _BATCH.value),
        *(_LENGTH.value, _PREDICTIONS.value),
    )
    state.keep = 1
    step(2)
    size = sum(4 * v.numpy().size for v in state.variables.values())
    with tempfile.TemporaryDirectory(dir=_FOLDER.value) as name:
        folder = pathlib.Path(name)
        for kind in ("background", "foreground"):
            (folder / kind).mkdir()
        # The first save of a process is slower.
        state.save(str(folder / "foreground"))
        rounds = [measure(step, state, folder) for _ in range(_ROUNDS.value)]
    middle = Round(*map(statistics.median, zip(*rounds, strict=True)))
    print(
        f"{_MODEL.value}, {_BATCH.value} x {_LENGTH.value}, a checkpoint of "
        f"{size / 1e6:,.0f} MB\n"
        f"step alone {middle.alone:.3f} s, while saving {middle.saving:.3f} s: "
        f"{middle.saving / middle.alone:.3f} times, for {middle.writing:.2f} s"
        f"\nsteps stand still {middle.stall:.3f} s in the background, "
        f"{middle.foreground:.3f} s in the foreground\n"
        f"memory: {middle.memory / 1e6:,.0f} MB more\n"
        f"same bytes: {all(one.is_same for one in rounds)}"
    )


if __name__ == "__main__":
    app.run(main)
