"""The methods that all public Keras classes share."""

import os
from collections.abc import Sequence
from typing import Any

from bert_tf import optimization
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
    train_function: Any  # Keras', or None

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
        if isinstance(optimizer, optimization.Optimizer):
            optimizer = keras_optimizer.KerasOptimizer(optimizer)
        return super().compile(optimizer, *args, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Compiles a loaded model, which Keras leaves to overridden methods."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def make_train_function(self, force=False):
        """Creates the optimizer's variables before the step is traced.

        Keras would create them in the step, and trace it a second time.

        Raises:
            InputError: The optimizer trains other variables.
        """
        self._drop_stale("train_function")
        optimizer = self.optimizer
        if optimizer is not None and not optimizer.built:
            with self.distribute_strategy.scope():
                optimizer.build(self.trainable_variables)
        elif optimizer is not None and self.train_function is None:
            known = {id(x) for x in optimizer._trainable_variables}
            new = [x for x in self.trainable_variables if id(x) not in known]
            if new:
                raise InputError(
                    "The optimizer was made for other variables, before LoRA "
                    "or what is trained changed: compile the model again, with "
                    f"a new optimizer. Received: {new[0].path} is new"
                )
        is_traced = self.train_function is not None and not force
        super().make_train_function(force)
        if not is_traced:
            self._check_lora_in_steps()

    def _check_lora_in_steps(self) -> None:
        """Makes the step of `fit` an error once a callback has changed LoRA."""
        step, traced = self.train_function, self._lora

        def train(batches):
            if self._lora is not traced:
                raise InputError(
                    "LoRA must not change between two steps of fit: change it "
                    "at the end, and compile the model again. "
                    f"Received: {self._lora}, and before {traced}"
                )
            return step(batches)

        self.train_function = train

    def make_test_function(self, force=False):
        """Makes the step of `evaluate`, again if LoRA has changed."""
        self._drop_stale("test_function")
        return super().make_test_function(force)

    def make_predict_function(self, force=False):
        """Makes the step of `predict`, again if LoRA has changed."""
        self._drop_stale("predict_function")
        return super().make_predict_function(force)

    def _drop_stale(self, name: str) -> None:
        """Drops a traced step if the encoder's LoRA is another one."""
        if self._lora is not getattr(self, f"_lora_of_{name}", None):
            setattr(self, f"_lora_of_{name}", self._lora)
            setattr(self, name, None)

    @property
    def _lora(self) -> Any:
        return getattr(self._encoder(), "lora", None)

    def save(self, filepath, *args, **kwargs):
        """Saves as Keras does; InputError for .h5, whose writer would fail."""
        if os.fspath(filepath).endswith((".h5", ".hdf5")):
            raise InputError(
                "Keras cannot save a whole model of bert_tf as HDF5. Use a "
                "name that ends in .keras, or save the weights alone: "
                "model.save_weights('NAME.weights.h5'). "
                f"Received: filepath={os.fspath(filepath)}"
            )
        if getattr(self, "optimizer", None) is not None:
            # May raise. Later, Keras would have emptied an older file.
            self.optimizer.get_config()
        return super().save(filepath, *args, **kwargs)

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
