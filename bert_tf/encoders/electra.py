"""ELECTRA (Clark et al., 2020, https://arxiv.org/abs/2003.10555), and its row.

BERT's encoder without a pooler, whose embeddings may have a different size from
the hidden states. During pre-training a smaller encoder of the same kind, the
generator, replaces some of its tokens: see replaced_tokens.py. Both share all
embeddings (words, positions, types, and their layer norm), as in the original's
code; in the paper they share words and positions.

Every variable's path is its name in the released checkpoints. Shapes as in
modeling.py.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import configuration, modeling
from bert_tf.configuration import NO_POOLER
from bert_tf.encoders import bert, family, foreign, layers
from bert_tf.errors import InputError

import keras

# ---- Config ------------------------------------------------------------------

# The dense layer of transformers' classifiers, which replaces the pooler.
_SUMMARY: dict[str, Any] = {
    "summary_type": "first",
    "summary_use_proj": True,
    "summary_activation": "gelu",
}
_OF_GENERATOR = ("generator_hidden_size", "generator_layers")
_LARGEST_SHARE = 16  # A larger number must be a size.
KEYS = foreign.ConfigKeys(
    defaults={"vocab_size": 30522},
    fixed={"pooler_act": "gelu_erf"},
    transform_act="gelu_erf",
    unsaid=frozenset(_OF_GENERATOR),
    needed=_SUMMARY,
    written={"classifier_dropout": None, "pad_token_id": 0, **_SUMMARY},
)


@dataclasses.dataclass(frozen=True)
class ElectraConfig(configuration.BertConfig):
    """Architecture of an ELECTRA; the defaults are the small model's.

    The released archives contain no config.
    """

    model_type: ClassVar[str] = "electra"
    architectures: ClassVar[str] = "Electra"
    tells: ClassVar[str] = _OF_GENERATOR[0]
    pretraining_head: ClassVar[str | None] = "replaced_tokens"
    sizes: ClassVar[tuple[str, ...]] = (
        *configuration.BertConfig.sizes,
        "embedding_size",
    )
    pretraining_keys: ClassVar[frozenset[str]] = frozenset(_OF_GENERATOR)
    pooler_acts: ClassVar[tuple[str, ...]] = (
        *configuration.ACTIVATIONS,
        configuration.NO_POOLER,
    )
    other_rates: ClassVar[Mapping[str, str]] = {
        **configuration.BertConfig.other_rates,
        "summary_last_dropout": "multiple-choice heads are",
    }
    # Dropout of heads, and the keys that may have only the value in `_SUMMARY`.
    unused_keys: ClassVar[frozenset[str]] = frozenset(
        {"summary_last_dropout", *_SUMMARY}
    )

    hidden_size: int = 256  # D
    num_attention_heads: int = 4  # N
    intermediate_size: int = 1024  # F
    hidden_act: str = "gelu_erf"
    type_vocab_size: int = 2  # T
    # By default the pooled output is the unchanged vector of [CLS].
    pooler_act: str = configuration.NO_POOLER
    embedding_size: int = 128  # E
    # The generator's sizes, as shares of the sizes above: the original's
    # hparams of these names.
    generator_hidden_size: float = 0.25
    generator_layers: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        for name in _OF_GENERATOR:
            share = getattr(self, name)
            is_number = isinstance(share, int | float) and share is not True
            if not is_number or not 0 < share <= _LARGEST_SHARE:
                raise InputError(
                    f"`{name}` must be a positive number, a share of the "
                    f"model's own size and {_LARGEST_SHARE} at most. "
                    f"Received: {name}={share!r}"
                )

    @property
    def maps_embeddings(self) -> bool:
        """Whether a dense layer maps embeddings from E to D."""
        return self.embedding_size != self.hidden_size

    @property
    def generator(self) -> "ElectraConfig":
        """Returns the config of the generator, by the original's rules.

        Raises InputError if they give no valid model.
        """
        size = round(self.hidden_size * self.generator_hidden_size)
        kind = type(self)
        try:
            return dataclasses.replace(
                self.with_head_of(kind),
                hidden_size=size,
                num_hidden_layers=round(
                    self.num_hidden_layers * self.generator_layers
                ),
                intermediate_size=4 * size,
                num_attention_heads=max(1, size // 64),
                pooler_act=configuration.NO_POOLER,
                generator_hidden_size=kind.generator_hidden_size,
                generator_layers=kind.generator_layers,
            )
        except InputError as error:
            raise InputError(
                "There is no generator of these sizes: change "
                f"{' or '.join(f'`{x}`' for x in _OF_GENERATOR)}. {error}"
            ) from error

    @classmethod
    def in_our_words(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Maps the values of a file, ours or transformers', to our keys."""
        return KEYS.in_our_words(values, cls)


# ---- Layers ------------------------------------------------------------------


class Electra(modeling.Bert):
    """ELECTRA without a head: the discriminator.

    Of its outputs, `embeddings` are the first layer's input, [B, S, D].
    """

    config: ElectraConfig
    scope = "electra"
    lends_parts = True

    def __init__(
        self, config: ElectraConfig, name: str = "electra", **kwargs: Any
    ):
        super().__init__(config, name=name, **kwargs)

    def make_parts(self):
        self.embeddings = modeling.Embeddings(
            self.config, self.config.embedding_size, name="embeddings"
        )
        _make_layers(self)

    def build_parts(self):
        self.embeddings.build()
        _build_layers(self)


class Generator(Electra):
    """The encoder that predicts replacements for masked words."""

    scope = "generator"
    first_number = 128  # A compiled step has at most 127 layers.

    def __init__(
        self, electra: Electra, name: str = "generator", **kwargs: Any
    ):
        """Makes the generator of an ELECTRA, over the same embeddings."""
        super().__init__(
            electra.config.generator,
            name=name,
            **{"dtype": electra.dtype_policy} | kwargs,
        )
        self.embeddings = electra.embeddings

    def make_parts(self):
        _make_layers(self)

    def build_parts(self):
        _build_layers(self)


def _make_layers(model: Electra) -> None:
    """Makes all that is after the embeddings."""
    config = model.config
    if config.maps_embeddings:
        model.mapping = layers.Dense(
            config,
            config.embedding_size,
            config.hidden_size,
            name="embeddings_project",
        )
        # TensorFlow's own, as the original names none.
        glorot = keras.initializers.GlorotUniform()
        model.mapping.kernel_initializer = glorot
    stack = [
        layers.TransformerLayer(config, name=f"layer_{i}")
        for i in range(config.num_hidden_layers)
    ]
    model.encoder = modeling.Encoder(stack, name="encoder")
    model.pooler = modeling.make_pooler(config)


def _build_layers(model: modeling.Bert) -> None:
    for part in (model.mapping, model.encoder, model.pooler):
        if part is not None:
            part.build()


# ---- The row ----------------------------------------------------------------

_EMBEDDINGS = {
    "electra/embeddings/word_embeddings": "VE",
    "electra/embeddings/token_type_embeddings": "TE",
    "electra/embeddings/position_embeddings": "ME",
    "electra/embeddings/LayerNorm/beta": "E",
    "electra/embeddings/LayerNorm/gamma": "E",
}
_OUR_MAPPING = "electra/embeddings_project"
_MAPPING = {f"{_OUR_MAPPING}/kernel": "ED", f"{_OUR_MAPPING}/bias": "D"}
_OUR_POOLER = "electra/pooler/dense"
_POOLER = {f"{_OUR_POOLER}/kernel": "DD", f"{_OUR_POOLER}/bias": "D"}


def _ours(name: str) -> str:
    """Returns what a variable of BERT's is called."""
    return f"electra/{name.removeprefix('bert/')}"


def _absent(config: ElectraConfig) -> frozenset[str]:
    mapping = () if config.maps_embeddings else _MAPPING
    pooler = _POOLER if config.pooler_act == NO_POOLER else ()
    return frozenset((*mapping, *pooler))


# ---- Hugging Face -----------------------------------------------------------

_PREDICTIONS = "generator_predictions"
_TRANSFORM = bert.TRANSFORM
_DISCRIMINATOR = "discriminator_predictions"


def _hf_head(
    kind: str, *rows: foreign.Row, has_pooler: bool = False
) -> foreign.HuggingFaceHead:
    return foreign.HuggingFaceHead(f"Electra{kind}", has_pooler, rows)


_HUGGINGFACE = foreign.HuggingFace(
    prefix="electra.",
    rows=(
        *(
            foreign.Row(
                _ours(row.ours),
                row.theirs.replace("bert.", "electra.", 1),
                row.transposed,
            )
            for row in bert.HF_ROWS
            if row.ours not in bert.BERT.pooler
        ),
        *foreign.dense(_OUR_MAPPING, "electra.embeddings_project"),
    ),
    heads={
        "encoder": _hf_head("Model"),
        "masked_lm": _hf_head(
            "ForMaskedLM",
            *foreign.dense(f"{_TRANSFORM}/dense", f"{_PREDICTIONS}.dense"),
            *foreign.norm(
                f"{_TRANSFORM}/LayerNorm", f"{_PREDICTIONS}.LayerNorm"
            ),
            foreign.Row(
                "cls/predictions/output_bias", "generator_lm_head.bias"
            ),
        ),
        "replaced_tokens": _hf_head(
            "ForPreTraining",
            *foreign.dense(
                f"{_DISCRIMINATOR}/dense", f"{_DISCRIMINATOR}.dense"
            ),
            *foreign.dense(
                f"{_DISCRIMINATOR}/dense_1",
                f"{_DISCRIMINATOR}.dense_prediction",
            ),
        ),
        "classification": _hf_head(
            "ForSequenceClassification",
            *foreign.dense(_OUR_POOLER, "classifier.dense"),
            *foreign.output("", "classifier.out_proj"),
            has_pooler=True,
        ),
        "tagging": _hf_head(
            "ForTokenClassification",
            *foreign.output("cls/tagging/", "classifier"),
        ),
        "span": _hf_head(
            "ForQuestionAnswering",
            *foreign.output("cls/squad/", "qa_outputs"),
        ),
        "multiple_choice": _hf_head(
            "ForMultipleChoice",
            *foreign.dense(_OUR_POOLER, "sequence_summary.summary"),
            *foreign.output("cls/multiple_choice/", "classifier"),
            has_pooler=True,
        ),
    },
    tied={
        "generator_lm_head.weight": "electra.embeddings.word_embeddings.weight"
    },
    keys=KEYS,
    optional=frozenset(_MAPPING),
)


GENERATOR = family.Generator(
    config=lambda config: config.generator,
    model=Generator,
    names={
        "electra/embeddings/": "electra/embeddings/",
        "generator/": "electra/",
        f"{_PREDICTIONS}/output_bias": "cls/predictions/output_bias",
        f"{_PREDICTIONS}/": f"{_TRANSFORM}/",
    },
    by_piece=frozenset({f"{_PREDICTIONS}/output_bias"}),
)
# KerasHub's computes the other form of GELU, and pools by a layer that no
# released model has.
ELECTRA = family.Family(
    name="electra",
    config=ElectraConfig,
    model=Electra,
    variables=_EMBEDDINGS
    | _MAPPING
    | _POOLER
    | {
        _ours(name): letters
        for name, letters in bert.BERT.variables.items()
        if name.startswith(bert.LAYER)
    },
    words="electra/embeddings/word_embeddings",
    pooler=frozenset(_POOLER),
    absent=_absent,
    generator=GENERATOR,
    huggingface=_HUGGINGFACE,
)
