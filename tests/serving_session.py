"""A simulation of TensorFlow Serving for SavedModels, for tests.

As in its sources (json_tensor.cc, predict_util.cc, classifier.cc and
regressor.cc of tensorflow/serving): a session of the graph runs the tensors
that signatures name, without checking shapes first.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


class Server:
    """A SavedModel, served by its signatures.

    With `is_optimized`, its graph is optimized, as by TensorFlow Serving.
    """

    def __init__(self, path: pathlib.Path, is_optimized: bool = False):
        self._graph = tf.Graph()
        config = tf.compat.v1.ConfigProto() if is_optimized else None
        self._session = tf.compat.v1.Session(graph=self._graph, config=config)
        with self._graph.as_default():
            self.signatures = tf.compat.v1.saved_model.load(
                self._session, ["serve"], str(path)
            ).signature_def
        self._session._extend_graph()

    def rows(
        self, signature: str, rows: Sequence[Mapping[str, Any]]
    ) -> dict[str, np.ndarray]:
        """Answers `{"instances": rows}`, whose keys must be all inputs."""
        names = set(self.signatures[signature].inputs)
        for row in rows:
            assert set(row) == names, f"keys must be equal to: {names}"
        return self.ask(
            signature, **{name: [row[name] for row in rows] for name in names}
        )

    def ask(self, signature: str, **columns: Any) -> dict[str, np.ndarray]:
        """Answers a gRPC request, which may omit inputs with a default."""
        found = self.signatures[signature]
        defaults = {
            name: tf.make_ndarray(value)
            for name, value in found.defaults.items()
        }
        values = defaults | columns
        assert values.keys() == found.inputs.keys()
        # Without the shape checks of `Session.run`.
        feeds = {
            self._tensor(info): _array(values[name], info.dtype)
            for name, info in found.inputs.items()
        }
        names = sorted(found.outputs)
        fetched = [self._tensor(found.outputs[name]) for name in names]
        arrays = self._session._call_tf_sessionrun(
            None, feeds, fetched, [], None
        )
        return dict(zip(names, arrays, strict=True))

    def _tensor(self, info: Any) -> Any:
        return self._graph.get_tensor_by_name(info.name)._as_tf_output()

    def classify(
        self, examples: Sequence[bytes]
    ) -> list[list[tuple[str, float]]]:
        """Answers `:classify` by `serve_examples`: labels and scores."""
        found = self.signatures["serve_examples"]
        assert found.method_name == "tensorflow/serving/classify"
        assert list(found.inputs) == ["inputs"]
        assert set(found.outputs) == {"classes", "scores"}
        outputs = self.ask("serve_examples", inputs=examples)
        classes, scores = outputs["classes"], outputs["scores"]
        assert classes.dtype == object
        assert scores.dtype == np.float32
        assert classes.shape == scores.shape
        assert classes.shape[:1] == (len(examples),)
        assert classes.ndim == 2
        return [
            [(label.decode(), float(x)) for label, x in zip(*row, strict=True)]
            for row in zip(classes, scores, strict=True)
        ]

    def regress(self, examples: Sequence[bytes]) -> list[float]:
        """Answers `:regress` by `serve_examples`: a score for each."""
        found = self.signatures["serve_examples"]
        assert found.method_name == "tensorflow/serving/regress"
        assert list(found.inputs) == ["inputs"]
        assert list(found.outputs) == ["outputs"]
        scores = self.ask("serve_examples", inputs=examples)["outputs"]
        assert scores.dtype == np.float32
        assert scores.shape in {(len(examples),), (len(examples), 1)}
        return scores.ravel().tolist()


def _array(values: Any, dtype: int) -> np.ndarray:
    # For texts, NumPy's type is object, which keeps bytes unchanged.
    return np.array(values, tf.dtypes.as_dtype(dtype).as_numpy_dtype)


def example(**features: Any) -> bytes:
    """Returns a serialized tf.Example from texts, bytes and lists of ids."""
    made = tf.train.Example()
    for name, value in features.items():
        feature = made.features.feature[name]
        if isinstance(value, str | bytes):
            value = [value]
        if value and isinstance(value[0], str | bytes):
            texts = [x.encode() if isinstance(x, str) else x for x in value]
            feature.bytes_list.value.extend(texts)
        else:
            feature.int64_list.value.extend(value)
    return made.SerializeToString()
