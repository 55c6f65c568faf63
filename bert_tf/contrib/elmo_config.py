"""The architecture of an ELMo, and its keys in the options.json of bilm-tf."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from bert_tf import configuration
from bert_tf.contrib import elmo_characters
from bert_tf.contrib.student_config import StudentConfig
from bert_tf.errors import InputError

# Keys of both objects in an options.json -> our fields.
_PARTS: dict[str, dict[str, str]] = {
    "lstm": {
        "dim": "cell_size",
        "projection_dim": "projection_size",
        "n_layers": "num_hidden_layers",
        "use_skip_connections": "skip_connections",
        "cell_clip": "cell_clip",
        "proj_clip": "projection_clip",
    },
    "char_cnn": {
        "activation": "hidden_act",
        "embedding": "embedding_size",
        "filters": "filters",
        "max_characters_per_token": "max_characters",
        "n_characters": "vocab_size",
        "n_highway": "num_highways",
    },
}
# They may be left out.
_CLIPS = ("cell_clip", "proj_clip")
# How a model was trained.
_UNUSED = """
    all_clip_norm_val batch_size dropout n_epochs n_negative_samples_batch
    n_tokens_vocab n_train_tokens sample_softmax share_embedding_softmax
    unroll_steps
"""
_COUNT = len(elmo_characters.TOKENS)
_ACTS = ("relu", "tanh")
# Rules of values.
_FEW = "less than 100"
_CLIP = "a positive number, or null for no limit"
_BOOL = "true or false"
_FILTERS = (
    "pairs [width, count] of positive integers, with widths up to "
    "`max_characters` and a sum of counts that is more than half of "
    "`hidden_size`"
)


def _is_clip(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and value > 0)


def _is_filter(value: Any) -> bool:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    return is_pair and all(type(x) is int and x > 0 for x in value)


@dataclasses.dataclass(frozen=True)
class ElmoConfig(StudentConfig):
    """Architecture of an ELMo; the defaults are the released model's.

    Each direction has half of `hidden_size`. `filters` are pairs: the width in
    characters and the number of filters. With `mixture_norm`, the vectors of
    each layer are normalized before layers are mixed.
    """

    model_type: ClassVar[str] = "elmo"
    architectures: ClassVar[str] = "Elmo"
    tells: ClassVar[str] = "char_cnn"
    pretraining_head: ClassVar[str | None] = None
    sizes: ClassVar[tuple[str, ...]] = (
        *StudentConfig.sizes,
        *("num_hidden_layers", "cell_size", "num_highways", "max_characters"),
    )
    has_transform: ClassVar[bool] = False
    unread: ClassVar[tuple[str, ...]] = (
        *StudentConfig.of_attention,
        "layer_norm_eps",
    )
    one_value: ClassVar[Mapping[str, Any]] = {
        **configuration.BertConfig.one_value,
        "bidirectional": True,
    }
    unused_keys: ClassVar[frozenset[str]] = frozenset(_UNUSED.split())

    vocab_size: int = _COUNT  # V
    hidden_size: int = 1024  # D
    num_hidden_layers: int = 2  # L
    hidden_act: str = "relu"
    hidden_dropout_prob: float = 0.5  # Of heads only.
    max_position_embeddings: int = 4096
    embedding_size: int = 16  # E
    filters: tuple[tuple[int, int], ...] = (
        *((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)),
    )
    num_highways: int = 2
    max_characters: int = 50  # Of a word, with two marks.
    cell_size: int = 4096
    cell_clip: float | None = 3.0
    projection_clip: float | None = 3.0
    skip_connections: bool = True
    mixture_norm: bool = False

    def __post_init__(self):
        super().__post_init__()
        for name, is_right, rule in (
            ("vocab_size", self.vocab_size == _COUNT, _COUNT),
            ("hidden_act", self.hidden_act in _ACTS, " or ".join(_ACTS)),
            ("num_hidden_layers", self.num_hidden_layers < 100, _FEW),
            ("num_highways", self.num_highways < 100, _FEW),
            ("max_characters", self.max_characters > 2, "more than 2"),
            ("filters", self._are_filters(), _FILTERS),
            (
                "hidden_size",
                not self.hidden_size % 2 and self.units < self.cell_size,
                "even, and its half less than `cell_size`",
            ),
            ("cell_clip", _is_clip(self.cell_clip), _CLIP),
            ("projection_clip", _is_clip(self.projection_clip), _CLIP),
            ("skip_connections", type(self.skip_connections) is bool, _BOOL),
            ("mixture_norm", type(self.mixture_norm) is bool, _BOOL),
        ):
            if not is_right:
                raise InputError(
                    f"`{name}` of an ELMo must be {rule}. "
                    f"Received: {name}={json.dumps(getattr(self, name))}"
                )
        filters = tuple((width, count) for width, count in self.filters)
        object.__setattr__(self, "filters", filters)

    def _are_filters(self) -> bool:
        is_list = isinstance(self.filters, list | tuple) and self.filters
        if not is_list or not all(map(_is_filter, self.filters)):
            return False
        most = max(width for width, _ in self.filters)
        return most <= self.max_characters and self.num_filters > self.units

    @classmethod
    def in_our_words(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the values of a file, ours or bilm-tf's, by our keys."""
        if values.keys().isdisjoint(_PARTS):
            return {"vocab_size": _COUNT, **values}
        own = {x: y for x, y in values.items() if x not in _PARTS}
        for name, keys in _PARTS.items():
            part = values.get(name)
            clips = {x: None for x in _CLIPS if x in keys}
            needed = keys.keys() - clips
            if not isinstance(part, dict) or not (
                needed <= part.keys() <= keys.keys()
            ):
                raise InputError(
                    f"`{name}` must be an object with the keys "
                    f"{', '.join(sorted(needed))}, as in the options.json of "
                    f"an ELMo. Received: {name}={json.dumps(part)}"
                )
            own |= {keys[x]: y for x, y in (clips | part).items()}
        size, table = own.pop("projection_size"), own["embedding_size"]
        own["hidden_size"] = 2 * size if type(size) is int else size
        if isinstance(table, dict):
            own["embedding_size"] = table.get("dim")
        # bilm-tf counts its padding of rows after training.
        if own["vocab_size"] == _COUNT + 1:
            own["vocab_size"] = _COUNT
        return own

    @property
    def units(self) -> int:
        """The size of a direction's output, P."""
        return self.hidden_size // 2

    @property
    def num_filters(self) -> int:
        """The number of all filters, N."""
        return sum(count for _, count in self.filters)

    @property
    def num_blocks(self) -> int:
        """Layers of the output: words, LSTMs and their mixture."""
        return self.num_hidden_layers + 2

    @property
    def activations(self) -> int:
        """Activations per token kept for training, with six tokens a word."""
        values = self.num_filters + self.embedding_size
        characters = self.max_characters * values
        gates = 2 * self.num_hidden_layers * (9 * self.cell_size + self.units)
        return (2 * characters + gates) // 6
