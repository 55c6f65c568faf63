"""Distillation: objectives with a teacher.

The teacher is never trained: it runs without dropout, and no gradient flows
into it. The objective holds it, so no checkpoint contains it. The training loop
knows nothing of teachers and averages the losses as usual.

Shapes as in modeling.py.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import losses, modeling
from bert_tf.checkpoints import tf1_files
from bert_tf.encoders import families, layers, ops, watching
from bert_tf.errors import InputError
from bert_tf.training import distillation_losses, loop, pretraining

import keras
import tensorflow as tf

# The name of the loss over the teacher's logits.
TEACHER = "teacher"


def _fixed(outputs: Any) -> Any:
    """Stops gradients through a nested structure of tensors."""
    return tf.nest.map_structure(tf.stop_gradient, outputs)


# ---- Logits ------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How a task compares its model's outputs with a teacher's.

    Attributes:
        losses: The names of the losses of the task's objective. The comparison
            is divided by the same weight as the first of them.
        sums: (student's outputs, teacher's outputs, batch, temperature) -> a
            float32 scalar.
    """

    losses: tuple[str, ...]
    sums: Callable[[Any, Any, loop.Batch, float], tf.Tensor]

    @classmethod
    def from_loss(
        cls,
        loss: str,
        counts: Callable[[loop.Batch], tf.Tensor],
        divergence: Callable[..., tf.Tensor] = distillation_losses.classes,
    ) -> "Comparison":
        """Returns the comparison for an objective with a single loss.

        The logits are [Q, C]; `counts` returns the weights [Q] of the rows of a
        batch.
        """

        def sums(logits, teacher, batch, temperature):
            return divergence(logits, teacher, counts(batch), temperature)

        return cls((loss,), sums)


def by_logits(
    objective: loop.Objective,
    comparison: Comparison,
    teacher: Callable[[loop.Batch], Any],
    temperature: float,
    hard_label_weight: float,
) -> loop.Objective:
    """Adds a loss over the teacher's outputs to the objective of a task.

    The task's own losses have the factor `hard_label_weight`, and the teacher's
    loss has 1 minus it. All are reported without these factors.

    Unlike in TinyBERT's code, heads read the pooled output without another
    ReLU, and divergences are not divided by the number of classes: the balance
    between labels and teacher would depend on it.
    """

    def weights(batch):
        own = objective.weights(batch)
        return own | {TEACHER: own[comparison.losses[0]]}

    def sums(model, batch, dropout_seed):
        seen = []

        def remembering(*inputs):
            seen.append(model(*inputs))
            return seen[-1]

        found = objective.sums(remembering, batch, dropout_seed)
        theirs = _fixed(teacher(batch))
        loss = comparison.sums(seen[-1], theirs, batch, temperature)
        return found | {TEACHER: {"loss": loss}}

    factors = dict.fromkeys(comparison.losses, hard_label_weight)
    return dataclasses.replace(
        objective,
        weights=weights,
        sums=sums,
        factors=factors | {TEACHER: 1 - hard_label_weight},
    )


def shared_words(*configs: modeling.BertConfig) -> int | None:
    """Returns the words of all tables; None if all are padded to one size."""
    sizes = {config.vocab_size for config in configs}
    return min(sizes) if len(sizes) > 1 else None


def of_words(
    student: tuple[tf.Tensor, tf.Tensor],
    teacher: tf.Tensor,
    batch: loop.Batch,
    temperature: float,
    shared: int | None = None,
) -> tf.Tensor:
    """Compares the logits of masked words; see `Comparison.sums`.

    `shared` is the result of `shared_words`.
    """
    words, _ = student  # [B, P, V], [B, 2] or so
    return distillation_losses.classes(
        words[..., :shared],
        teacher[..., :shared],
        pretraining.mask_weights(batch),
        temperature,
    )


# ---- Layers ------------------------------------------------------------------


def by_layers(
    objective: loop.Objective,
    student: modeling.Bert,
    teacher: modeling.Bert,
) -> loop.Objective:
    """Returns TinyBERT's objective: match the layers of the teacher.

    This is stage one of two (Jiao et al., 2019,
    https://arxiv.org/abs/1909.10351, section 3.1). It does not train the head;
    stage two, `by_logits`, does. The student's layer m learns from the
    teacher's layer m * k, where the teacher has k times as many layers. The
    losses compare attention scores before the softmax, and hidden states,
    including the embeddings. As in the original's code, one dense layer with a
    bias, `fit_dense`, maps all hidden states to the teacher's width; the paper
    has two without a bias.

    Only tokens count here, unlike in the original, whose means include padding:
    here the amount of padding varies between batches.
    """
    fit = _fit_dense(student.config, teacher.config)

    def weights(batch):
        sizes = objective.sizes(batch)
        tokens, pairs = sizes["tokens"], sizes["pairs"]
        seen = [bert.seen(tokens, pairs) for bert in (student, teacher)]
        return {"attention": tf.minimum(*seen), "hidden": tokens}

    def sums(model, batch, dropout_seed):
        rows = _rows(batch)
        tokens = _token_weights(rows)
        ours, our_attention = _watched(model.bert, rows, dropout_seed)
        theirs, their_attention = _fixed(_watched(teacher, rows, None))
        step = len(their_attention) // len(our_attention)
        attention = [
            distillation_losses.attention_scores(*pair, tokens)
            for pair in zip(
                our_attention, their_attention[step - 1 :: step], strict=True
            )
        ]
        our_states = [ours.embeddings, *ours.layers]
        their_states = [theirs.embeddings, *theirs.layers][::step]
        hidden = [
            distillation_losses.hidden_states(fit(x), y, tokens)
            for x, y in zip(our_states, their_states, strict=True)
        ]
        return {
            "attention": {"loss": sum(attention)},
            "hidden": {"loss": sum(hidden)},
        }

    return loop.Objective(
        weights,
        sums,
        sizes=objective.sizes,
        trained=_of_layers(student),
        own=fit.variables,
    )


def _fit_dense(
    student: modeling.BertConfig, teacher: modeling.BertConfig
) -> layers.Dense:
    """Returns the layer that maps hidden states to the teacher's width."""
    fit = layers.Dense(
        student, student.hidden_size, teacher.hidden_size, name="fit_dense"
    )
    with keras.name_scope(tf1_files.OF_OBJECTIVES.rstrip("/")):
        fit.build()
    return fit


def by_relations(
    objective: loop.Objective,
    student: modeling.Bert,
    teacher: modeling.Bert,
    relation_heads: int,
) -> loop.Objective:
    """Returns MiniLMv2's objective: match the teacher's relations.

    Only the last layers are compared (Wang et al., 2021, section 3.3; for large
    teachers the paper uses a layer a few below the last). Nothing after the
    student's last queries, keys and values is trained, and neither is the head.
    """

    def weights(batch):
        return {"relations": objective.sizes(batch)["tokens"]}

    def sums(model, batch, dropout_seed):
        rows = _rows(batch)
        _, ours = _watched(model.bert, rows, dropout_seed)
        _, theirs = _fixed(_watched(teacher, rows, None))
        loss = distillation_losses.relations(
            ours[-1], theirs[-1], _token_weights(rows), relation_heads
        )
        return {"relations": {"loss": loss}}

    return loop.Objective(
        weights,
        sums,
        sizes=objective.sizes,
        trained=_up_to_last_values(student),
    )


def _watched(
    bert: modeling.Bert, rows: loop.Batch, seed: tf.Tensor | None
) -> tuple[modeling.BertOutputs, list[watching.Attended]]:
    """Runs an encoder and returns its outputs and attention inputs."""
    with watching.watched(bert) as seen:
        outputs = bert(rows, seed)
    return outputs, seen


def check_watched(bert: keras.Model, name: str) -> None:
    """Raises InputError if attention in an encoder can't be captured.

    `name` is the name of the encoder in the error message.
    """
    if isinstance(bert, modeling.Bert):
        rows = {"input_ids": tf.zeros([1, 2], tf.int32)}
        outputs, seen = _watched(bert, rows, None)
        if len(seen) == len(outputs.layers):
            return
    raise InputError(
        f"{name} has no layers of attention that can be compared one by one: "
        "use --distillation=logits. "
        f"Received: model_type={bert.config.model_type}"
    )


def _rows(batch: loop.Batch) -> loop.Batch:
    """Returns the batch with one row per sequence: choices become rows."""
    if batch["input_ids"].shape.rank == 2:
        return batch
    names = ("input_ids", "input_mask", "segment_ids")
    length = tf.shape(batch["input_ids"])[-1]
    return {name: tf.reshape(batch[name], [-1, length]) for name in names}


def _token_weights(rows: loop.Batch) -> tf.Tensor:
    """1 for tokens, 0 for padding and for rows that fill batches: [B, S]."""
    return tf.cast(rows["input_mask"], tf.float32)


def _of_layers(bert: modeling.Bert) -> list[keras.Variable]:
    """Returns the variables that the hidden states of all layers depend on."""
    unread = {variable.path for variable in bert.pooler.variables}
    unread |= families.find(bert.config).on_top
    return [v for v in bert.trainable_variables if v.path not in unread]


def _up_to_last_values(bert: modeling.Bert) -> list[keras.Variable]:
    """Returns the variables that the last layer's attention depends on."""
    *first, last = bert.encoder.layers
    read = {v.path for layer in first for v in layer.variables}
    read |= {v.path for v in last.attention.self_attention.variables}
    unread = {v.path for v in last.variables} - read
    return [v for v in _of_layers(bert) if v.path not in unread]


# ---- Pre-training, as DistilBERT's ------------------------------------------

# From DistilBERT's README: alpha_mlm 2, alpha_ce 5, alpha_cos 1.
_FACTORS: Mapping[str, float] = {"masked_lm": 2.0, TEACHER: 5.0, "cosine": 1.0}


def by_words_and_states(
    objective: loop.Objective,
    student: keras.Model,
    teacher: keras.Model,
    temperature: float,
) -> loop.Objective:
    """Returns DistilBERT's three losses (Sanh et al., 2019, section 3).

    They are 5 times the divergence from the teacher's word predictions, 2 times
    the masked-word loss, and the cosine loss between the last hidden states of
    all tokens. There is no loss over two segments: the pooler and the
    next-sentence head keep their weights.

    The divergence covers masked words only; the original compares the
    predictions of all tokens. Two vocabulary products over all S positions
    would take more time and memory than the rest of the step.

    Args:
        objective: The pre-training objective.
        student: A BertPretrainer.
        teacher: A BertMaskedLM of the same width.
        temperature: Divides the logits of both models.
    """
    shared = shared_words(student.bert.config, teacher.bert.config)

    def weights(batch):
        words = tf.reduce_sum(pretraining.mask_weights(batch))
        tokens = objective.sizes(batch)["tokens"]
        return {"masked_lm": words, TEACHER: words, "cosine": tokens}

    def sums(model, batch, dropout_seed):
        ours, our_words = _states_and_words(
            model.bert, model.cls.predictions, batch, dropout_seed
        )
        theirs, their_words = _fixed(
            _states_and_words(teacher.bert, teacher.predictions, batch, None)
        )
        counts = pretraining.mask_weights(batch)  # [B, P]
        divergence = distillation_losses.classes(
            our_words[..., :shared],
            their_words[..., :shared],
            counts,
            temperature,
        )
        distance = distillation_losses.cosine(
            ours, theirs, _token_weights(batch)
        )
        return {
            "masked_lm": losses.classification(
                our_words, batch["masked_lm_ids"], counts
            ),
            TEACHER: {"loss": divergence},
            "cosine": {"loss": distance},
        }

    return loop.Objective(
        weights,
        sums,
        _FACTORS,
        objective.sizes,
        pretraining.trained_variables(student, "none"),
    )


def _states_and_words(
    bert: modeling.Bert,
    predictions: keras.layers.Layer,
    batch: loop.Batch,
    seed: tf.Tensor | None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns last hidden states [B, S, D] and word logits [B, P, V]."""
    sequence = bert(batch, seed).sequence
    masked = ops.gather_rows(
        sequence, batch["masked_lm_positions"]
    )  # [B, P, D]
    words = predictions(masked, bert.embeddings.word_embeddings)
    return sequence, tf.cast(words, tf.float32)
