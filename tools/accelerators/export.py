"""Exports training steps as StableHLO: state and batch in, state and sums out.

    python -m tools.accelerators.export --platform=TPU --folder=/tmp/x bert span

Writes NAME.bc, a portable artifact, and NAME.json about it. With the package
tensorflow-tpu, this is TensorFlow's own lowering for TPUs.
"""

import argparse
import functools
import importlib
import json
import multiprocessing
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

from benchmarks import pretraining_step
from tools.accelerators import cases, chips
from tools.accelerators.cases import Case

PLATFORMS = ("CPU", "GPU", "TPU")
_CHOICES = 4


class Step:
    """A training step of `run_pretraining.py` or of a task's script.

    Attributes:
        function: (weights and slots, step, batch) -> (the same, sums, report).
        state: Specifications of the weights and slots.
        batch: Specifications of a replica's batch.
        flops: Multiplications and additions that a step needs.
    """

    def __init__(self, case: Case, platform: str = "CPU"):
        from bert_tf import optimization
        from bert_tf.encoders import families
        from bert_tf.training import distribution, fused_attention, schedules

        import tensorflow as tf

        distribution.set_up("default", dtype=case.dtype)
        self.case = case
        self._platform = platform
        values = pretraining_step.config_of(case.model, case.family)
        values["num_hidden_layers"] = case.layers
        values["vocab_size"] = case.vocab_size or values["vocab_size"]
        self.config = families.from_values(values)
        self.model, self.objective, trained = _model(case, self.config)
        self.batch = _batch(case)
        for bert in filter(None, (self.model.bert, self.model.generator)):
            bert.encoder.remat = case.remat
            bert.fuses_attention = (
                (case.fused and platform == "GPU")
                # Batches of fine-tuning differ in length.
                and case.head == "pretraining"
                and not fused_attention.against_batch(bert, self.batch)
            )
        self.optimizer = optimization.AdamWeightDecay(
            schedules.linear_warmup_decay(1e-4, 100, 10000)
        )
        self.optimizer.build(trained)
        self.weights = self.model.variables
        slots = self.optimizer.slots.values()
        self.variables = [*(x.value for x in self.weights), *slots]
        self.state = [tf.TensorSpec(x.shape, x.dtype) for x in self.variables]

    @property
    def specs(self) -> tuple[Any, ...]:
        """Specifications of the arguments of `function`."""
        import tensorflow as tf

        return self.state, tf.TensorSpec([], tf.int64), self.batch

    def function(self, state, step, batch):
        from bert_tf.training import pjrt, replica_step

        step_of_replica = replica_step.ReplicaStep(
            *(self.model, self.optimizer, self.objective),
            *(passes(self._platform), 1, self.case.accumulate),
        )
        slots = self.optimizer.slots
        with pjrt.replaced(self.weights, slots, state) as made:
            sums, report = step_of_replica(step, batch)
            return [x.handle for x in made], sums, report

    @property
    def flops(self) -> float:
        from bert_tf.training import accelerators

        case = self.case
        rows = case.rows * (_CHOICES if "choice" in case.head else 1)
        sizes = (rows, rows * case.length, rows * case.length**2)
        if (generator := self.model.generator) is not None:
            return accelerators.replaced_tokens_flops(
                *(self.config, generator.config, *sizes),
                case.rows * case.predictions,
            )
        predictions, reads_all = 0, self.model.reads_all
        if case.head == "pretraining":
            per_row = case.length if reads_all else case.predictions
            predictions = case.rows * per_row
        return accelerators.training_flops(
            self.config, *sizes, predictions, reads_all
        )


def passes(platform: str) -> Callable[..., Any]:
    """Returns the loop's argument that compiles for a platform."""
    from bert_tf import compiled

    dialect = "TPU" if platform == "TPU" else "XLA"
    return functools.partial(compiled.marked, dialect=dialect)


def _model(case: Case, config: Any) -> tuple[Any, Any, Any]:
    """Returns a model, its objective and the variables that it trains."""
    if case.head == "pretraining":
        return pretraining_step.model_of(config)
    from bert_tf import heads
    from bert_tf.encoders import families
    from bert_tf.tasks.classification import classification_task
    from bert_tf.tasks.classification import objective as classification

    encoder = families.make(config)
    if case.head in ("classification", "regression"):
        labels = ("0", "1") if case.head == "classification" else None
        model = heads.BertClassifier(encoder, len(labels or ("",)))
        made = classification_task.Task(case.head, labels, (), {})
        objective = classification.make_objective(made, None)
    else:
        script = importlib.import_module(case.head)
        model, objective = {
            "run_ner": lambda: (
                heads.BertTagger(encoder, 9),
                script.Tagging.objective,
            ),
            "run_multiple_choice": lambda: (
                heads.BertMultipleChoice(encoder),
                script.MultipleChoice.objective,
            ),
            "run_squad": lambda: (
                heads.BertSpanFinder(encoder),
                script.OBJECTIVE,
            ),
        }[case.head]()
    return model, objective, model.trained_variables


def _batch(case: Case) -> dict[str, Any]:
    from bert_tf.records import record_types

    import tensorflow as tf

    packed = record_types.PRETRAINING_TYPES["pretraining_packed"]
    record_type = {
        "pretraining": packed if case.packed > 1 else record_types.PRETRAINING,
        "classification": record_types.CLASSIFICATION,
        "regression": record_types.REGRESSION,
        "run_ner": record_types.TAGGING,
        "run_multiple_choice": record_types.MULTIPLE_CHOICE,
        "run_squad": record_types.SPAN,
    }[case.head]
    lengths = {
        "S": case.length,
        "P": case.predictions,
        "K": _CHOICES if "choice" in case.head else case.packed,
    }
    batch = {
        x.name: tf.TensorSpec(
            [case.rows, *x.shape(lengths)],
            tf.int32 if x.dtype == tf.int64 else x.dtype,
        )
        for x in record_type.features
    }
    return batch | {"row_weights": tf.TensorSpec([case.rows], tf.float32)}


# ---- Lowering ----------------------------------------------------------------


def lower(case: Case, platform: str) -> tuple[bytes, dict[str, Any]]:
    """Returns a portable StableHLO artifact and facts about the step.

    Raises:
        tf.errors.OpError: If an operation can't be lowered.
    """
    from bert_tf.encoders import ops

    import keras
    import tensorflow as tf

    def zeros(self, shape, dtype=None, **options):
        del self, options
        return tf.zeros(shape, dtype or "float32")

    began = time.process_time()
    normal = keras.initializers.TruncatedNormal
    with mock.patch.object(normal, "__call__", zeros):
        step = Step(case, platform)
    devices = {"CPU", platform}
    with mock.patch.object(ops, "_devices", lambda: devices):
        specs = tf.nest.flatten(step.specs)

        @tf.function(autograph=False, jit_compile=True)
        def function(*tensors):
            return step.function(*tf.nest.pack_sequence_as(step.specs, tensors))

        make = function.experimental_get_compiler_ir(*specs)
    artifact = make(stage="stablehlo_serialized", platform_name=platform)
    return artifact, {
        "state": len(step.state),
        "layers": step.config.num_blocks,
        "flops": step.flops,
        "dtype": case.dtype,
        "sequences": case.rows,
        "seconds": round(time.process_time() - began, 1),
    }


def _write(name: str, platform: str, folder: pathlib.Path) -> None:
    import tensorflow as tf

    path = folder / cases.file_name(name)
    try:
        artifact, about = lower(cases.find(name), platform)
    except (tf.errors.OpError, ValueError) as error:
        about = {"refused": str(error)}
    else:
        path.write_bytes(artifact)
    path.with_suffix(".json").write_text(json.dumps(about))


def main() -> None:
    """Writes the artifacts of all cases, each in its own process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--platform", choices=PLATFORMS, required=True)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("cases", nargs="+")
    options = parser.parse_args()
    os.environ |= chips.TPU_ENVIRONMENT | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    options.folder.mkdir(parents=True, exist_ok=True)
    # Imported once. Only the children start TensorFlow.
    importlib.import_module("bert_tf.training.session")
    processes = multiprocessing.get_context("fork")
    for name in options.cases:
        child = processes.Process(
            target=_write, args=(name, options.platform, options.folder)
        )
        child.start()
        child.join()
        if child.exitcode:
            raise SystemExit(f"{name} ended with exit code {child.exitcode}.")


if __name__ == "__main__":
    main()
