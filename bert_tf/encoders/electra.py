"""ELECTRA (Clark et al., 2020, https://arxiv.org/abs/2003.10555), and its row.

BERT's encoder without a pooler, whose embeddings may have a different size from
the hidden states. During pre-training a smaller encoder of the same kind, the
generator, replaces some of its tokens: see replaced_tokens.py. Both share all
embeddings (words, positions, types, and their layer norm), as in the original's
code; in the paper they share words and positions.

Every variable's path is its name in the released checkpoints. Shapes as in
modeling.py.
"""

from typing import Any

from bert_tf import modeling
from bert_tf.configuration import NO_POOLER
from bert_tf.encoders import bert, family, foreign, layers
from bert_tf.encoders.electra_config import KEYS, ElectraConfig

import keras


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
    if config.pooler_act == NO_POOLER:
        model.pooler = modeling.NoPooler(name="pooler")
    else:
        model.pooler = modeling.Pooler(config, name="pooler")


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
