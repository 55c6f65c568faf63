"""The encoder-decoders: configs, variables, and names in transformers.

Registers two families: `encoder-decoder`, whose halves are BERTs (Rothe et al.,
2020, https://arxiv.org/abs/1907.12461), and `vaswani`, the original
Transformer (Vaswani et al., 2017, https://arxiv.org/abs/1706.03762).

Variables of the encoder have BERT's names. The decoder's begin with `decoder/`
and are otherwise named as in transformers: `decoder/layer_0/crossattention/...`

Shapes as in modeling.py.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import configuration, modeling, options
from bert_tf.encoders import (
    albert,
    bert,
    families,
    family,
    foreign,
    layers,
    ops,
    roberta,
)
from bert_tf.errors import InputError

import numpy as np
import tensorflow as tf

# What the decoder shares with the encoder: nothing, the embeddings, or
# everything but the cross-attention. The output layer is always the decoder's
# table of word embeddings.
SHARED = options.SHARED_WEIGHTS

_ONE_VALUE = {
    key: value
    for key, value in modeling.BertConfig.one_value.items()
    if key != "is_encoder_decoder"
}


@dataclasses.dataclass(frozen=True)
class EncoderDecoderConfig(modeling.BertConfig):
    """Architecture of both halves, which are BERTs of the same size.

    Attributes:
        shared: What the decoder shares with the encoder, one of SHARED.
    """

    model_type: ClassVar[str] = "encoder-decoder"
    architectures: ClassVar[str] = "EncoderDecoder"
    one_value: ClassVar[Mapping[str, Any]] = _ONE_VALUE
    reads_packed: ClassVar[bool] = False
    pretraining_head: ClassVar[str | None] = None

    shared: str = "none"

    def __post_init__(self):
        super().__post_init__()
        if self.shared not in SHARED:
            raise InputError(
                f"`shared` must be one of {', '.join(SHARED)}. "
                f"Received: shared={self.shared!r}"
            )

    def encoder(
        self, kind: type[modeling.BertConfig]
    ) -> configuration.BertConfig:
        """Returns the encoder's config, of the class of another family."""
        names = {field.name for field in dataclasses.fields(kind)}
        values = dataclasses.asdict(self)
        return kind(**{k: v for k, v in values.items() if k in names})


@dataclasses.dataclass(frozen=True)
class VaswaniConfig(EncoderDecoderConfig):
    """Architecture of the original Transformer; the defaults are its base."""

    model_type: ClassVar[str] = "vaswani"
    architectures: ClassVar[str] = "Vaswani"
    least_types: ClassVar[int] = 0
    pooler_acts: ClassVar[tuple[str, ...]] = (configuration.NO_POOLER,)
    has_transform: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = ("type_vocab_size",)

    hidden_size: int = 512
    num_hidden_layers: int = 6
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    hidden_act: str = "relu"
    type_vocab_size: int = 0
    layer_norm_eps: float = 1e-6
    pooler_act: str = configuration.NO_POOLER
    shared: str = "embeddings"


def of_encoder(
    config: modeling.BertConfig, shared: str
) -> EncoderDecoderConfig:
    """Returns the config of an encoder-decoder that starts from an encoder.

    Raises InputError unless the encoder is BERT, or has BERT's layers.
    """
    names = {field.name for field in dataclasses.fields(modeling.BertConfig)}
    own = {field.name for field in dataclasses.fields(config)}
    model = families.find(config).model
    make_parts = getattr(model, "make_parts", None)
    has_berts_layers = make_parts is modeling.Bert.make_parts
    is_causal = getattr(model, "is_causal", False)
    # DistilBERT has the layers, and no segments.
    has_berts_layers &= config.type_vocab_size > 0
    if own != names or not has_berts_layers or is_causal:
        raise InputError(
            "Both halves of an encoder-decoder must be BERTs: start from BERT "
            "or RoBERTa, or give the config of a transformer. "
            f"Received: model_type={config.model_type}"
        )
    values = dataclasses.asdict(config.with_head_of(modeling.BertConfig))
    return EncoderDecoderConfig(**values, shared=shared)


def checked(config: modeling.BertConfig) -> EncoderDecoderConfig:
    """Returns a config; InputError if it is not an encoder-decoder's."""
    if not isinstance(config, EncoderDecoderConfig):
        raise InputError(
            "The config must be an encoder-decoder's: make it with "
            "`of_encoder`, or give a file with model_type=encoder-decoder or "
            f"vaswani. Received: model_type={config.model_type}"
        )
    return config


# ---- Variables ---------------------------------------------------------------

_DECODER = "decoder/layer_{}"
_CROSS = {
    f"{_DECODER}/cross{name}": letters
    for name, letters in bert.BERT.variables.items()
    for name in [name.removeprefix(f"{bert.LAYER}/")]
    if name.startswith("attention/")
}
_LAYERS = {
    name.replace(bert.LAYER, _DECODER): letters
    for name, letters in bert.BERT.variables.items()
    if name.startswith(bert.LAYER)
}
_EMBEDDINGS = {
    f"decoder/{name.removeprefix('bert/')}": letters
    for name, letters in bert.BERT.variables.items()
    if name.startswith("bert/embeddings/")
}
_TRANSFORM = {
    "decoder/predictions/transform/dense/kernel": "DD",
    "decoder/predictions/transform/dense/bias": "D",
    "decoder/predictions/transform/LayerNorm/beta": "D",
    "decoder/predictions/transform/LayerNorm/gamma": "D",
}
# Name in the decoder -> name of the same variable in a BERT that predicts
# masked words.
SOURCES = (
    {name: name.replace("decoder", "bert", 1) for name in _EMBEDDINGS}
    | {name: name.replace(_DECODER, bert.LAYER) for name in _LAYERS}
    | {
        name: name.replace("decoder", "cls", 1)
        for name in (*_TRANSFORM, "decoder/predictions/output_bias")
    }
)


def _absent(config: EncoderDecoderConfig) -> frozenset[str]:
    """Returns the variables that are shared with the encoder."""
    found: set[str] = set()
    if config.shared != "none":
        found |= _EMBEDDINGS.keys()
    if config.shared == "all":
        found |= _LAYERS.keys()
    return frozenset(found)


# ---- transformers ------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _NestedKeys(foreign.ConfigKeys):
    """Keys of a config.json that contains the configs of both halves."""

    def to_ours(self, values, config):
        """Converts the encoder's config; the decoder's must agree."""
        halves = [values.get(name) for name in ("encoder", "decoder")]
        for half in halves:
            kind = half.get("model_type") if isinstance(half, dict) else None
            if kind != "bert":
                raise InputError(
                    "Both halves of an encoder-decoder must be BERTs: "
                    "`encoder` and `decoder` need model_type=bert. "
                    f"Received: model_type={kind}"
                )
        encoder, decoder = (
            {**self.defaults, **super(_NestedKeys, self).to_ours(half, config)}
            for half in halves
        )
        different = [
            f"{key} is {encoder.get(key)} and {decoder.get(key)}"
            for key in sorted(encoder.keys() | decoder.keys())
            if encoder.get(key) != decoder.get(key)
        ]
        if different:
            raise InputError(
                "Encoder and decoder must have the same size and activations. "
                f"Received: {'; '.join(different)}"
            )
        return encoder

    def to_theirs(self, config):
        """Returns the configs of both halves, and what generation needs."""
        own = {**super().to_theirs(config), "model_type": "bert"}
        decoder = {"is_decoder": True, "add_cross_attention": True}
        return {
            "encoder": own,
            "decoder": {**own, **decoder},
            "is_encoder_decoder": True,
        }

    def token_ids(self, special):
        """Returns the IDs of the start, end and padding tokens."""
        return {
            "decoder_start_token_id": special.cls.id,
            "eos_token_id": special.sep.id,
            "pad_token_id": special.pad.id,
        }


_WORDS = "decoder.bert.embeddings.word_embeddings.weight"
_PREDICTIONS = "decoder.cls.predictions"
_ENCODER_ROWS = tuple(
    row._replace(theirs=row.theirs.replace("bert", "encoder", 1))
    for row in bert.HF_ROWS
)
_DECODER_ROWS = tuple(
    foreign.Row(
        row.ours.replace(bert.LAYER, _DECODER).replace("bert", "decoder", 1),
        f"decoder.{row.theirs}",
        row.transposed,
    )
    for row in bert.HF_ROWS
    if row.ours not in bert.BERT.pooler
)
_CROSS_ROWS = tuple(
    row._replace(
        ours=row.ours.replace("/attention/", "/crossattention/"),
        theirs=row.theirs.replace(".attention.", ".crossattention."),
    )
    for row in _DECODER_ROWS
    if "/attention/" in row.ours
)
_HEAD_ROWS = tuple(
    row._replace(
        ours=row.ours.replace("cls", "decoder", 1),
        theirs=f"decoder.{row.theirs}",
    )
    for row in bert.HF_PREDICTIONS
)
_HUGGINGFACE = foreign.HuggingFace(
    prefix="",
    rows=(*_ENCODER_ROWS, *_DECODER_ROWS, *_CROSS_ROWS),
    heads={
        # The last one of a class counts.
        "encoder": foreign.HuggingFaceHead("EncoderDecoderModel", True, ()),
        "seq2seq": foreign.HuggingFaceHead(
            "EncoderDecoderModel", True, _HEAD_ROWS
        ),
    },
    tied={
        f"{_PREDICTIONS}.decoder.weight": _WORDS,
        f"{_PREDICTIONS}.decoder.bias": f"{_PREDICTIONS}.bias",
    },
    keys=_NestedKeys(
        defaults=bert.HUGGINGFACE.keys.defaults,
        fixed=bert.HUGGINGFACE.keys.fixed,
        unsaid=frozenset({"shared"}),
        written={"classifier_dropout": None},
    ),
)


# ---- Families ----------------------------------------------------------------

ENCODER_DECODER = dataclasses.replace(
    bert.BERT,
    name=EncoderDecoderConfig.model_type,
    config=EncoderDecoderConfig,
    variables={
        **bert.BERT.variables,
        **_EMBEDDINGS,
        **_LAYERS,
        **_CROSS,
        **_TRANSFORM,
    },
    absent=_absent,
    vocabularies=bert.BERT.vocabularies + roberta.ROBERTA.vocabularies,
    starts_from=None,
    on_top=frozenset(_TRANSFORM),
    huggingface=_HUGGINGFACE,
    keras_hub=None,
)
_WORD_TABLES = {
    name: letters
    for name, letters in ENCODER_DECODER.variables.items()
    if "/embeddings/" not in name or name.endswith("/word_embeddings")
}


# ---- The original Transformer's encoder -------------------------------------

# Vaswani et al., 2017, sections 3.4 and 3.5. The layers are BERT's; the
# embeddings have no token types and no layer norm, and are scaled by the root
# of their size. All projections have biases.


def position_table(positions: int, size: int) -> np.ndarray:
    """Returns the vectors of positions from 0, float32 [positions, size].

    The first half has sines and the second half cosines of the same angles, as
    in Marian; the paper interleaves them.
    """
    number = -(-size // 2)
    rates = 1e4 ** -(np.arange(number) / max(size / 2, 1))
    angles = np.arange(positions)[:, np.newaxis] * rates
    both = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return both[:, :size].astype(np.float32)


class SinusoidEmbeddings(modeling.Embeddings):
    """Sums scaled word embeddings and sinusoidal positions."""

    computes_as_bert = False

    def build(self, input_shape=None):
        self.word_embeddings = self.add_weight(
            name="word_embeddings",
            shape=(self.config.vocab_size, self.size),
            initializer=layers.initializer(self.config),
        )

    def call(
        self,
        input_ids,
        segment_ids,
        dropout_seed,
        position_ids=None,
        inputs_embeds=None,
    ):
        """Returns [B, S, D]; segments are ignored."""
        x = inputs_embeds
        if x is None:
            words = tf.convert_to_tensor(self.word_embeddings)  # [V, D]
            x = ops.embed(words, input_ids)  # [B, S, D]
        x *= math.sqrt(self.size)
        x += tf.cast(self._positions(input_ids, position_ids), x.dtype)
        return ops.dropout(x, self.config.hidden_dropout_prob, dropout_seed)

    @property
    def position_embeddings(self):
        """The vectors of all positions, float32 [M, D]."""
        return position_table(self.config.max_position_embeddings, self.size)


class VaswaniEncoder(modeling.Bert):
    """The encoder without a head."""

    embeddings_class = SinusoidEmbeddings


VASWANI = family.Family(
    name=VaswaniConfig.model_type,
    config=VaswaniConfig,
    model=VaswaniEncoder,
    variables={
        name: letters
        for name, letters in _WORD_TABLES.items()
        if name not in _TRANSFORM and name not in bert.BERT.pooler
    },
    words=bert.BERT.words,
    pooler=frozenset(),
    absent=_absent,
    vocabularies=ENCODER_DECODER.vocabularies + albert.ALBERT.vocabularies,
)
families.register(ENCODER_DECODER)
families.register(VASWANI)
