"""The methods of Keras encoders that can have LoRA."""

import os
from collections.abc import Sequence

from bert_tf.checkpoints import adapters
from bert_tf.encoders import lora_layers
from bert_tf.errors import InputError

import keras


class WithLora(keras.layers.Layer):
    """The methods of an encoder that can have matrices."""

    lora: lora_layers.Lora | None = None

    @property
    def trainable(self) -> bool:
        """Whether it is trained; with LoRA, only the matrices are."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        keras.layers.Layer.trainable.fset(self, value)
        if self.lora and value:
            lora_layers.freeze_others(self)

    def enable_lora(
        self,
        rank: int = 8,
        alpha: float | None = None,
        targets: Sequence[str] = ("query", "value"),
    ) -> None:
        """Freezes the encoder and adds small trainable matrices to its kernels.

        Heads and other layers of a model stay as they are. Compile afterwards.

        Args:
            rank: Rank of the matrices: a kernel [in, out] gets [in, rank] and
                [rank, out].
            alpha: Their product is scaled by alpha / rank; by default by 1.
            targets: Dense layers of each transformer layer: some of "query",
                "key", "value" and "dense", which means all others and the
                pooler's.

        Raises:
            InputError: LoRA is already enabled, or a value is invalid.
        """
        if self.lora:
            raise InputError(
                "The encoder has LoRA already: use merge_lora() first. "
                f"Received: rank={self.lora.rank}"
            )
        lora = lora_layers.Lora(
            rank, rank if alpha is None else alpha, tuple(sorted(set(targets)))
        )
        lora_layers.enable(self, lora)
        self.lora = lora

    def merge_lora(self) -> None:
        """Makes the matrices a part of the kernels, which are trained again."""
        lora_layers.merge(self, lora_layers.enabled_lora(self))
        self.lora = None

    def save_lora(
        self, folder: str | os.PathLike[str], has_head: bool = True
    ) -> None:
        """Writes the matrices alone into a new folder, as peft does.

        Models with a head have a `save_lora` that also writes the head.

        Args:
            folder: The new folder.
            has_head: Whether peft adds them to a model with a head, such as
                AutoModelForSequenceClassification; False for an AutoModel,
                whose modules have other names. `load_lora` reads both.

        Raises:
            InputError: Without a head, the adapter would lack a layer.
        """
        adapters.save(self, folder, has_head)

    def load_lora(self, folder: str | os.PathLike[str]) -> None:
        """Adds the matrices of such a folder, also one that peft wrote.

        A head's weights in the folder are not used, with a warning: models
        with a head have a `load_lora` that reads both.

        Raises:
            InputError: It holds no LoRA, or one of another model.
        """
        adapters.load(self, folder)
