"""Pre-training: runtime, and by model family model, objective and memory.

Called from the `main` of run_pretraining.py only.
"""

from collections.abc import Callable, Mapping
from typing import Any

from bert_tf import both_directions, heads, modeling, replaced_tokens
from bert_tf.checkpoints import names, opened
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.flags import distillation_flags, run_flags
from bert_tf.setup import run_setup
from bert_tf.training import (
    distribution,
    loop,
    memory_use,
    pjrt,
    pretraining,
    replaced_tokens_objective,
    session,
)

from absl import logging

# A config's pre-training head -> its model, for families without a generator.
_MODELS: Mapping[str | None, Callable[[modeling.Bert], heads.Model]] = {
    "pretraining": heads.BertPretrainer,
    "next_piece": heads.BertNextPiece,
    both_directions.HEAD: both_directions.BothDirections,
}


def find_runtime(name: str, plan: session.Plan) -> pjrt.Runtime | None:
    """Returns the devices of JAX; None unless --runtime asks for them.

    Call it before TensorFlow uses a device.

    Args:
        name: One of options.RUNTIMES.
        plan: How to train.

    Raises:
        InputError: If JAX does not train what the flags ask for.
    """
    if name != "pjrt":
        return None
    strategy = distribution.asked_for(
        run_flags.DISTRIBUTION_STRATEGY.value, run_flags.USE_TPU.value
    )
    unsupported = {
        f"distribution_strategy={strategy}": strategy != "default",
        "dtype=float16": plan.recipe.dtype == "float16",
        "use_xla=false": plan.use_xla is False,
        "auto_batch_size": plan.accumulate is None,
        "profile_steps": plan.profile_steps is not None,
        "teacher": distillation_flags.TEACHER.value is not None,
    }
    for flag, is_given in unsupported.items():
        if is_given:
            raise InputError(
                "--runtime=pjrt trains on all devices of this host that JAX "
                f"finds, and does not support --{flag}. Leave out one of the "
                f"two flags. Received: runtime=pjrt, {flag}"
            )
    return pjrt.start()


def make_model(config: modeling.BertConfig) -> heads.Model:
    """Returns the model to train; call it in the strategy's scope."""
    encoder, family = families.make(config), families.find(config)
    if family.generator is not None:
        return replaced_tokens.ReplacedTokensPretrainer(
            encoder, family.generator.model(encoder)
        )
    if family.pretrainer is not None:
        return family.pretrainer.model(encoder)
    return _MODELS[config.pretraining_head](encoder)


def make_objective(
    model: heads.Model, data: pretraining.Data
) -> loop.Objective:
    """Returns the training objective of the model."""
    if model.generator is None:
        return pretraining.objective(data.objective)
    return replaced_tokens_objective.objective(model)


def memory(
    config: modeling.BertConfig,
    sizes: tuple[int, int, int],
    how: tuple[Any, ...],
) -> memory_use.Memory:
    """Estimates the memory of a replica, as `memory_use.training_memory`.

    `sizes` are batch size, sequence length and predictions per sequence; `how`
    is dtype, remat and accumulate.
    """
    generator = families.find(config).generator
    others = generator.config(config) if generator else None
    return memory_use.memory_of(config, others, sizes, how)


def _check_no_generator(source: opened.Checkpoint | None) -> None:
    """Raises InputError if the initial checkpoint is an extracted generator.

    A generator predicts masked words, but would initialize a discriminator.
    """
    words = names.HEADS["masked_lm"].variables.keys()
    if source is not None and words <= source.shapes.keys():
        raise InputError(
            "A generator by itself is not pre-trained further: it would start "
            "a discriminator, whose generator is new. Give the checkpoint that "
            "it was taken out of. "
            f"Received: init_checkpoint={source.path}"
        )


def check(config: modeling.BertConfig) -> None:
    """Raises InputError if a family can't be pre-trained with the flags."""
    family = families.find(config)
    if config.pretraining_head is None:
        start = family.starts_from
        first = f"pre-train one of model_type={start}, and start from that"
        raise InputError(
            "This model is fine-tuned only: "
            f"{first if start else 'start from a pre-trained one'} by "
            f"--init_checkpoint. Received: model_type={config.model_type}"
        )
    generator = family.generator
    if generator is not None:
        generator.config(config)
        _check_no_generator(run_setup.open_init_checkpoint())
    given = distillation_flags.TEACHER.value
    if given and config.pretraining_head != "pretraining":
        raise InputError(
            "A teacher is for models that learn masked words, and this one "
            "learns something else: leave out --teacher. Received: "
            f"teacher={given}, model_type={config.model_type}"
        )


# Context of language models, for the log.
_PREDICTED_FROM = {
    "next_piece": "before it",
    both_directions.HEAD: "before it, and from those behind it",
}


def report_what_is_learned(model: heads.Model, data: pretraining.Data) -> None:
    """Logs objectives that flags do not show, and untrained parts."""
    pretrainer = families.find(model.bert.config).pretrainer
    if pretrainer is not None:
        logging.info(
            "%s The pooler is saved with the encoder, but not trained.",
            pretrainer.report,
        )
    elif data.objective in _PREDICTED_FROM:
        logging.info(
            "Each token is predicted from those %s. The pooler is saved with "
            "the encoder, but not trained.",
            _PREDICTED_FROM[data.objective],
        )
    elif model.generator is not None:
        logging.info(
            "Learns which tokens were replaced, against a generator of L=%d, "
            "D=%d.",
            model.generator.config.num_hidden_layers,
            model.generator.config.hidden_size,
        )
    elif not pretraining.has_pairs(data.objective):
        logging.info(
            "The records have no segment pairs: bert/pooler and "
            "cls/seq_relationship are saved with the other weights, but not "
            "trained."
        )
