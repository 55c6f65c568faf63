"""The models that benchmarks.objectives compares, and how each is trained."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

Config = Mapping[str, Any]

# Dropout of an AWD-LSTM's classifiers, for a rate of 0.1 elsewhere.
_AWD_RATES = {
    "hidden": 0.15,
    "embedding": 0.02,
    "input": 0.25,
    "recurrent": 0.2,
    "output": 0.1,
    "classifier": 0.1,
}


def _transformer(sizes: Config, dropout: float) -> Config:
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    return {**sizes, **dict.fromkeys(names, dropout)}


def _electra(sizes: Config, dropout: float) -> Config:
    generator = {"generator_hidden_size": 0.25, "generator_layers": 1.0}
    return {**_transformer(sizes, dropout), **generator}


def _without_types(sizes: Config, dropout: float) -> Config:
    return {**_transformer(sizes, dropout), "type_vocab_size": 0}


def _student(
    size: int, dropout: float, **more: float
) -> Callable[[Config, float], Config]:
    """Returns the config of an encoder without attention layers.

    `size` is a multiple of D; `dropout` is a multiple of the usual rate.
    """

    def config(sizes: Config, rate: float) -> Config:
        D = sizes["hidden_size"]
        return {
            "vocab_size": sizes["vocab_size"],
            "max_position_embeddings": sizes["max_position_embeddings"],
            "embedding_size": D,
            "hidden_size": size * D,
            "hidden_dropout_prob": dropout * rate,
            **more,
        }

    return config


def _awd_lstm(sizes: Config, dropout: float) -> Config:
    rates = {x: round(10 * dropout * y, 3) for x, y in _AWD_RATES.items()}
    return {
        **_student(1, 1)(sizes, dropout),
        "hidden_size": 50,
        "lstm_size": 2 * sizes["hidden_size"],
        **{f"{name}_dropout_prob": rate for name, rate in rates.items()},
    }


@dataclasses.dataclass(frozen=True)
class Objective:
    """A way to train a model.

    Attributes:
        family: The model_type.
        segments: Value of --objective for create_pretraining_data.py.
        config: Returns the keys of its config, for the sizes of a transformer
            and a dropout rate.
        masks: Flags of create_pretraining_data.py.
        starts_from: The objective whose weights are fine-tuned; by default its
            own.
        after: The objective of the first two thirds of the work, if any.
        learning_rate: Learning rate of pre-training.
        fine_tuning: Flags of run_classifier.py.
        rates: Learning rates of fine-tuning, in place of --rates.
        vocabulary: The file of its vocabulary: SentencePiece's if it ends with
            .model, otherwise WordPiece's.
        needs_minutes: Whether it is only compared at equal time.
        needs_pairs: Whether it reads pairs of texts only.
        note: What the table says about it.
    """

    family: str
    segments: str = "none"
    config: Callable[[Config, float], Config] = _transformer
    masks: tuple[str, ...] = ()
    starts_from: str | None = None
    after: str | None = None
    learning_rate: float = 1e-3
    fine_tuning: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    vocabulary: str = "vocab.txt"
    needs_minutes: bool = False
    needs_pairs: bool = False
    note: str = ""


OBJECTIVES = {
    "bert": Objective("bert", "nsp"),
    "no_nsp": Objective("bert"),
    "ltr_no_nsp": Objective("left_to_right"),
    "ltr_no_nsp_bilstm": Objective(
        "left_to_right_bilstm", starts_from="ltr_no_nsp"
    ),
    "ltr_then_bert": Objective(
        "bert", "nsp", after="ltr_no_nsp", learning_rate=5e-4
    ),
    "roberta": Objective("bert", "full_sentences"),
    "electra": Objective(
        "electra",
        "sop",
        _electra,
        ("--mask_share=0.85", "--random_share=0"),
        # At 1e-3 the discriminator collapses to one vector for all texts.
        learning_rate=3e-4,
    ),
    "elmo": Objective(
        "bilstm_lm",
        config=_student(2, 1, num_hidden_layers=2),
        rates=("3e-4", "1e-3"),
        needs_minutes=True,
        note="ELMo's biLM reads WordPiece tokens, as an ELMo of characters "
        "can't be pre-trained here; all weights are fine-tuned",
    ),
    "ulmfit": Objective(
        "awd_lstm",
        config=_awd_lstm,
        fine_tuning=("--lr_schedule=slanted_triangular",),
        rates=("1e-3", "3e-3"),
        needs_minutes=True,
        note="without fine-tuning the language model on the task's texts; too "
        "few epochs to unfreeze layer by layer",
    ),
    "gpt": Objective(
        "openai-gpt",
        config=_without_types,
        fine_tuning=("--auxiliary_lm_weight=0.5",),
        needs_minutes=True,
        note="with BERT's vocabulary and the language-model loss in "
        "fine-tuning",
    ),
    "xlnet": Objective(
        "xlnet",
        vocabulary="spiece.model",
        config=_without_types,
        needs_minutes=True,
        note="with a SentencePiece vocabulary of the same size",
    ),
}
# Trained from random weights, on labels alone.
UNTRAINED = {
    "random": OBJECTIVES["bert"],
    "random_ltr": OBJECTIVES["ltr_no_nsp"],
    "textcnn": Objective(
        "textcnn",
        config=_student(3, 5),
        rates=("1e-3", "3e-3"),
        needs_minutes=True,
    ),
    "bilstm": Objective(
        "bilstm",
        config=_student(2, 1),
        rates=("1e-3", "3e-3"),
        needs_minutes=True,
    ),
    "esim": Objective(
        "esim",
        config=_student(1, 5),
        rates=("3e-4", "1e-3"),
        needs_minutes=True,
        needs_pairs=True,
        note="reads pairs only",
    ),
}
ALL = {**OBJECTIVES, **UNTRAINED}
