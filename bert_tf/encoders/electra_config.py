"""The architecture of an ELECTRA, and its config.json."""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import configuration
from bert_tf.encoders import foreign
from bert_tf.errors import InputError

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
                self,
                hidden_size=size,
                num_hidden_layers=round(
                    self.num_hidden_layers * self.generator_layers
                ),
                intermediate_size=4 * size,
                num_attention_heads=max(1, size // 64),
                pooler_act=configuration.NO_POOLER,
                problem_type=None,
                score_act="linear",
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
