"""Adds the teacher from `setup.teachers` to the objective of a task.

Called from the `main` of the training scripts only.
"""

import dataclasses
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bert_tf import heads, options
from bert_tf.checkpoints import names, trained_models
from bert_tf.encoders import families
from bert_tf.records import record_types, tfrecord
from bert_tf.setup import teachers
from bert_tf.training import distillation, fine_tuning, loop

import keras
import numpy as np
import tensorflow as tf
from absl import logging

# Head of a teacher -> builder of its model from encoder and label count.
_MODELS: Mapping[str, Callable[[keras.Model, int], keras.Model]] = {
    "encoder": lambda bert, _: bert,
    "classification": heads.BertClassifier,
    "tagging": heads.BertTagger,
    "span": lambda bert, _: heads.BertSpanFinder(bert),
    "multiple_choice": lambda bert, _: heads.BertMultipleChoice(bert),
    "masked_lm": lambda bert, _: heads.BertMaskedLM(bert),
}


def _make(
    teacher: teachers.Teacher, strategy: tf.distribute.Strategy
) -> keras.Model:
    """Returns the teacher's model with its weights, not trainable."""
    bias = names.HEADS[teacher.head].bias
    number = teacher.source.shapes[bias][0] if bias else 0
    with strategy.scope():
        model = _MODELS[teacher.head](families.make(teacher.config), number)
        logging.info("The teacher, for --distillation=%s:", teacher.kind)
        trained_models.restore(model, teacher.source, teacher.head)
    model.trainable = False
    return model


def objective(
    own: loop.Objective,
    comparison: distillation.Comparison,
    teacher: teachers.Teacher,
    strategy: tf.distribute.Strategy,
    student: keras.Model,
    skips_padding: bool = False,
) -> loop.Objective:
    """Returns a task's objective with the teacher in it.

    Args:
        own: The task's own objective.
        comparison: How the task compares logits.
        teacher: The result of `teachers.find`.
        strategy: The teacher is created in its scope.
        student: The task's model.
        skips_padding: Whether the teacher skips padding.
    """
    model = _make(teacher, strategy)
    bert = model if teacher.head == "encoder" else model.bert
    if teacher.kind in options.DISTILLATIONS_OF_LAYERS:
        distillation.check_watched(student.bert, "The student")
        distillation.check_watched(bert, f"The teacher {teacher.source.path}")
    bert.skips_padding = skips_padding
    with strategy.scope():
        learned = _OBJECTIVES[teacher.kind](
            own, comparison, teacher, model, student
        )
    return _identified(learned, teacher)


def with_kept_logits(
    own: loop.Objective,
    comparison: distillation.Comparison,
    teacher: teachers.Teacher,
    run: fine_tuning.Run,
    batch_size: int,
) -> tuple[loop.Objective, fine_tuning.Run]:
    """Returns `objective` with the teacher's logits computed before training.

    Args:
        own: The task's own objective.
        comparison: How the task compares logits [B, C].
        teacher: The teacher, which must be compared by logits.
        run: The student's run.
        batch_size: Batch size of the teacher.

    Returns:
        The objective, and the run with the teacher's logits in its records.
    """
    model = _make(teacher, run.strategy)
    asked = dataclasses.replace(run, model=model)
    data = _write_logits(asked, _outputs(teacher, model), batch_size)
    learned = _learned(own, comparison, teacher, lambda x: x[LOGITS])
    return (
        _identified(learned, teacher),
        dataclasses.replace(run, data={**run.data, "train": data}),
    )


def _identified(
    learned: loop.Objective, teacher: teachers.Teacher
) -> loop.Objective:
    """Returns the objective with what the workers of a cluster compare."""
    told = {
        "distillation": teacher.kind,
        "temperature": teacher.temperature,
        "hard_label_weight": teacher.hard_label_weight,
        "relation_heads": teacher.relation_heads,
        "weights": teacher.digest,
    }
    return dataclasses.replace(learned, teacher=str(told))


def _outputs(
    teacher: teachers.Teacher, model: keras.Model
) -> Callable[[loop.Batch], Any]:
    """Returns the teacher as a function, with labels in the student's order.

    A score is what the teacher predicts, not the logit of a sigmoid.
    """
    activation = keras.activations.get(teacher.config.score_act)
    is_score = teacher.head == "classification" and model.num_labels == 1

    def outputs(batch: loop.Batch) -> Any:
        found = model(batch)
        if is_score:
            return activation(found)
        if teacher.order is None:
            return found
        return tf.gather(found, teacher.order, axis=-1)

    return outputs


def _learned(
    own: loop.Objective,
    comparison: distillation.Comparison,
    teacher: teachers.Teacher,
    outputs: Callable[[loop.Batch], Any],
) -> loop.Objective:
    return distillation.by_logits(
        own,
        comparison,
        outputs,
        teacher.temperature,
        teacher.hard_label_weight,
    )


_OBJECTIVES: Mapping[str, Callable[..., loop.Objective]] = {
    "logits": lambda own, comparison, teacher, model, _: _learned(
        own, comparison, teacher, _outputs(teacher, model)
    ),
    options.DISTILLATION_OF_WORDS: lambda own, _, teacher, model, student: (
        distillation.by_words_and_states(
            own, student, model, teacher.temperature
        )
    ),
    "tinybert_layers": lambda own, _, __, model, student: (
        distillation.by_layers(own, student.bert, model)
    ),
    "minilm": lambda own, _, teacher, model, student: distillation.by_relations(
        own, student.bert, model, teacher.relation_heads
    ),
}


# ---- Logits with the records ------------------------------------------------

# Every epoch reads the same examples, and a teacher has no dropout, so its
# logits never change. They are stored with each record, and a step costs as
# much as without a teacher.

# The feature of the records with the logits, [B, C].
LOGITS = "teacher_logits"


def _write_logits(
    run: fine_tuning.Run,
    teacher: Callable[[loop.Batch], tf.Tensor],
    batch_size: int,
) -> record_types.RecordFile:
    """Copies the training records and adds the teacher's logits.

    Args:
        run: The run of the teacher's model, with the records to copy.
        teacher: A batch of the records -> its logits [B, C].
        batch_size: Rows of a batch, over all replicas.
    """
    data = run.data["train"]

    def outputs(batch):
        return {LOGITS: teacher(batch)}

    parts = fine_tuning.predict(run, "train", outputs, batch_size)
    first = next(parts)
    said = record_types.RecordType(
        "teacher",
        (record_types.Feature(LOGITS, first[LOGITS].shape[1], tf.float32),),
    )
    stem, ending = os.path.splitext(data.path)
    path = f"{stem}_with_logits{ending}"
    with tfrecord.Writer(path) as writer:
        parts = itertools.chain([first], parts)
        writer.write_all(_with_logits(data.path, said, parts))
    whole = record_types.RecordType(
        f"{data.record_type.name} with a teacher's logits",
        (*data.record_type.features, *said.features),
    )
    return dataclasses.replace(data, path=path, record_type=whole, source=data)


def _with_logits(
    path: str,
    said: record_types.RecordType,
    parts: Iterable[Mapping[str, np.ndarray]],
) -> Iterator[bytes]:
    """Yields each record with its logits appended.

    Protobuf merges two concatenated messages into one with the features of
    both.
    """
    records = tf.data.TFRecordDataset(path).as_numpy_iterator()
    for part in parts:
        for logits in said.encode_batch(part):
            yield next(records) + logits
