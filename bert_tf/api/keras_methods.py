"""The methods that all public Keras classes share."""

from collections.abc import Sequence
from typing import Any

from bert_tf.api import keras_optimizer, text_inputs
from bert_tf.errors import InputError

import keras
import tensorflow as tf

INPUTS = ("input_ids", "input_mask", "segment_ids")


class Methods(text_inputs.WithTexts):
    """The methods that all public Keras classes share.

    Attributes:
        exported: Names of the inputs, and the rank of the first three.
    """

    exported: tuple[Sequence[str], int] = (INPUTS, 2)

    def __init__(self, *args: Any, name: str | None = None, **kwargs: Any):
        """Names the model as Keras does: a second one gets a number."""
        super().__init__(*args, name=name, **kwargs)

    @property
    def input(self) -> dict[str, keras.KerasTensor]:
        """Symbolic inputs, for `keras.Model(model.input, model.output)`."""
        return self._symbolic()[0]

    @property
    def output(self) -> Any:
        """What the model returns for `input`."""
        return self._symbolic()[1]

    def _symbolic(self) -> tuple[dict[str, keras.KerasTensor], Any]:
        if "_symbols" not in vars(self):
            names, rank = self.exported
            inputs = {
                name: keras.Input([None] * (rank - 1), dtype="int32", name=name)
                for name in names
            }
            # Keras would track a dictionary.
            object.__setattr__(self, "_symbols", (inputs, self(inputs)))
        return vars(self)["_symbols"]

    def compile(self, optimizer="rmsprop", *args, **kwargs):
        """Compiles as Keras does; the optimizer may be one of bert_tf's."""
        optimizer = keras_optimizer.as_keras(optimizer)
        return super().compile(optimizer, *args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model, which Keras leaves to overridden methods."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force=False):
        """Creates the optimizer's variables before the step is traced.

        Keras would create them in the step, and trace it a second time.
        """
        optimizer = self.optimizer
        if optimizer is not None and not optimizer.built:
            with self.distribute_strategy.scope():
                optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def export(self, filepath, format="tf_saved_model", **kwargs):
        """Exports as Keras' does; by default for any batch and length.

        Raises:
            InputError: The format is ONNX: Keras writes the operator Erfc, of
                GELU, which ONNX does not have.
        """
        if format == "onnx":
            raise InputError(
                "Keras' export to ONNX cannot be opened by ONNX Runtime. Use "
                'bert_tf.export(model, path, format="onnx"). '
                "Received: format='onnx'"
            )
        names, rank = self.exported
        columns = {
            name: tf.TensorSpec([None] * rank, tf.int32, name) for name in names
        }
        kwargs.setdefault("input_signature", [columns])
        return super().export(filepath, format=format, **kwargs)
