"""The architecture of an XLNet, and its keys in other libraries' files.

The released xlnet_config.json has the original's keys (`d_model`, `n_layer`);
its activation "gelu" is the tanh form. A config.json of transformers has nearly
the same keys, and there "gelu" is the erf form.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from bert_tf import configuration
from bert_tf.contrib import xlnet_vocabulary
from bert_tf.encoders import foreign
from bert_tf.errors import InputError

# Our field -> the key of the original and of transformers.
_RENAMED = {
    "hidden_size": "d_model",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "intermediate_size": "d_inner",
    "hidden_act": "ff_activation",
    "hidden_dropout_prob": "dropout",
}
# Keys that only the original has.
_ORIGINAL = {
    "vocab_size": "n_token",
    "attention_probs_dropout_prob": "dropatt",
    "initializer_range": "init_range",
}
_SUMMARY: dict[str, Any] = {
    "summary_type": "last",
    "summary_use_proj": True,
    "summary_activation": "tanh",
}
# Keys with the only supported value. The original sets others for its
# pre-training, which has memory and reversed data.
_ONE_VALUE: dict[str, Any] = {
    "attn_type": "bi",
    "bi_data": False,
    "clamp_len": -1,
    "same_length": False,
    "untie_r": True,
    **_SUMMARY,
}
_UNUSED = """
    d_head mem_len reuse_len use_mems_eval use_mems_train
    start_n_top end_n_top summary_last_dropout
"""
# There is no table of positions, and no table of token types.
_NO_TABLES = ("max_position_embeddings", "type_vocab_size")
_BASE = {
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
}
KEYS = foreign.ConfigKeys(
    renamed=_RENAMED,
    defaults={"vocab_size": 32000, **_BASE},
    fixed={"pooler_act": "tanh"},
    unsaid=frozenset({*_NO_TABLES, "attention_probs_dropout_prob"}),
    written={
        "bos_token_id": 1,
        "eos_token_id": 2,
        "mem_len": None,
        "pad_token_id": 5,
        **_SUMMARY,
    },
)


@dataclasses.dataclass(frozen=True)
class XlnetConfig(configuration.BertConfig):
    """Architecture of an XLNet; the defaults are the base model's.

    `max_position_embeddings` is the max length of a row. It may be any number,
    because attention depends on distances only.
    """

    model_type: ClassVar[str] = "xlnet"
    architectures: ClassVar[str] = "XLNet"
    tells: ClassVar[str] = "n_token"
    least_types: ClassVar[int] = 0
    reads_packed: ClassVar[bool] = False
    pretraining_head: ClassVar[str | None] = "permuted_words"
    has_transform: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = ("type_vocab_size",)
    pools_last: ClassVar[bool] = True
    # Its p_mask hides the context's <sep>; <cls> means no answer.
    unscored_tokens: ClassVar[int] = 2
    one_value: ClassVar[Mapping[str, Any]] = {
        **configuration.BertConfig.one_value,
        **_ONE_VALUE,
    }
    other_rates: ClassVar[Mapping[str, str]] = {
        "summary_last_dropout": "heads are"
    }
    unused_keys: ClassVar[frozenset[str]] = frozenset(_UNUSED.split())

    max_position_embeddings: int = 4096
    type_vocab_size: int = 0

    @classmethod
    def check_is_bert(cls, values: Mapping[str, Any]) -> None:
        """Raises InputError if a config is not of a supported XLNet."""
        super().check_is_bert(values)
        names = ("d_head", "d_model", "n_head")
        sizes: list[Any] = [values.get(name) for name in names]
        of_head, size, heads = sizes
        # Other values are checked as `hidden_size` and `num_attention_heads`.
        are_whole = all(type(x) is int for x in sizes)
        if are_whole and size != heads * of_head:
            raise InputError(
                "`d_head` must be `d_model` divided by `n_head`. Received: "
                f"d_head={of_head!r}, d_model={size!r}, n_head={heads!r}"
            )

    def check_vocabulary(self, vocabulary: Any, path: str) -> None:
        """Raises InputError if <cls> is not where the encoder expects it.

        The encoder puts the token with the ID of <cls> in a separate segment.
        In another vocabulary, that ID is a different token.
        """
        super().check_vocabulary(vocabulary, path)
        first = xlnet_vocabulary.FIRST
        ends = [xlnet_vocabulary.SEP, xlnet_vocabulary.CLS]
        if vocabulary.template.after != tuple(map(first.index, ends)):
            after = [vocabulary.pieces[x] for x in vocabulary.template.after]
            after = after or ["no special token"]
            raise InputError(
                f"{path} does not belong to an XLNet, whose sequences end with "
                f"{' '.join(ends)}, IDs 4 and 3. Pass the spiece.model of an "
                f"XLNet. Received: a vocabulary of type {vocabulary.kind}, "
                f"whose sequences end with {' '.join(after)}"
            )

    @classmethod
    def of_file(
        cls, values: Mapping[str, Any], given: Collection[str]
    ) -> configuration.BertConfig:
        """Creates a config; transformers has one rate for all dropout."""
        rate = values.get("hidden_dropout_prob", cls.hidden_dropout_prob)
        both = {"attention_probs_dropout_prob": rate, **values}
        return super().of_file(both, given)

    @classmethod
    def in_our_words(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of any file by our keys.

        Only the original's file lacks a `model_type`.
        """
        if "model_type" in values:
            return KEYS.in_our_words(values, cls)
        keys = {theirs: x for x, theirs in (_RENAMED | _ORIGINAL).items()}
        return {keys.get(key, key): value for key, value in values.items()}
