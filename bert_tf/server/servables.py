"""A version of a model in memory: loaded, warmed up, run in batches."""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Iterator, Mapping

from bert_tf.errors import InputError
from bert_tf.exporting import warmup
from bert_tf.server import batching, descriptions, refusals, signature_defs
from bert_tf.storage import file_systems

# Imported to register the tokenizer's op.
from bert_tf.text import text_graph  # noqa: F401  (registers the tokenizer's op)

import numpy as np
import tensorflow as tf

_LOG = logging.getLogger("bert_tf.server")
# Lengths of warm-up requests, in words or ids; then the length in a batch.
_LENGTHS = (8, 32, 128, 384)
_LENGTH_OF_BATCH = 32

Inputs = Mapping[str, np.ndarray]


class Servable:
    """One version of a model."""

    def __init__(
        self,
        path: str,
        version: int,
        limits: batching.Limits,
        on_batch: Callable[[int], None] = lambda rows: None,
    ):
        """Loads a SavedModel and warms it up.

        Args:
            path: Folder of the SavedModel.
            version: Version number.
            limits: Limits of batches and of the queue.
            on_batch: Called with the number of rows of each batch.

        Raises:
            InputError: It can't be loaded.
        """
        self.path = path
        self.version = version
        self.max_rows = limits.max_queued_rows  # of a request
        self.users = 0  # Requests that are using it.
        self.signatures = signature_defs.read(path)
        self.description = descriptions.read(path)
        try:
            # The loaded object must be kept, as it owns the weights.
            with file_systems.not_as_glob(path, [path]) as links:
                self._loaded = tf.saved_model.load(links, tags=["serve"])
        except (MemoryError, tf.errors.ResourceExhaustedError):
            raise
        # A damaged graph raises errors of any type.
        except Exception as error:
            raise InputError(
                f"The SavedModel {path} is damaged, or not all there: "
                f"{refusals.line(error)} Export it again, or copy the whole "
                "folder again."
            ) from error
        self._warm_up(limits.max_batch_size)
        self._batcher = batching.Batcher(self.run, limits, on_batch)
        _freeze()

    @property
    def waiting(self) -> int:
        """Number of waiting and running requests."""
        return self._batcher.waiting

    def run(
        self, signature: signature_defs.Signature, inputs: Inputs
    ) -> dict[str, np.ndarray]:
        """Runs a signature; inputs with a default may be omitted."""
        inputs = {**signature.defaults, **inputs}
        outputs = self._loaded.signatures[signature.name](
            **{
                name: tf.constant(x, signature.inputs[name].dtype)
                for name, x in inputs.items()
            }
        )
        return {name: x.numpy() for name, x in outputs.items()}

    async def answer(
        self, signature: signature_defs.Signature, inputs: Inputs
    ) -> dict[str, np.ndarray]:
        """Runs a signature, batched with other requests."""
        return await asyncio.wrap_future(
            self._batcher.submit(signature, inputs)
        )

    def close(self, seconds: float | None = None) -> None:
        """Answers waiting requests, up to a timeout; releases the model.

        With a timeout, the server ends, and its memory is not searched.
        """
        self._batcher.close(seconds)
        self._loaded = None
        if seconds is None:
            gc.unfreeze()
            _freeze()

    # ---- Warm-up ------------------------------------------------------------

    def _warm_up(self, batch_size: int) -> None:
        """Runs requests, so that the first client does not wait longer."""
        requests = self._recorded() or self._made_up(batch_size)
        for signature, inputs in requests:
            try:
                self.run(signature, inputs)
            except tf.errors.InvalidArgumentError as error:
                # For example, rows may be longer than the model supports.
                _LOG.debug("Warm-up: %s", refusals.line(error))

    def _recorded(self) -> list[tuple[signature_defs.Signature, Inputs]]:
        """Returns the warm-up requests in the SavedModel, if any."""
        path = os.path.join(self.path, warmup.FILE)
        if not tf.io.gfile.exists(path):
            return []
        try:
            requests = warmup.read(self.path)
        except ImportError:
            _LOG.info(
                "Warm-up with generated texts: tensorflow-serving-api, which "
                "reads %s, is not installed.",
                path,
            )
            return []
        return [
            (self.signatures.find(x.signature or None), x.inputs)
            for x in requests
        ]

    def _made_up(
        self, batch_size: int
    ) -> Iterator[tuple[signature_defs.Signature, Inputs]]:
        """Yields texts, or ids, of several lengths, alone and in a batch."""
        # Models of other programs do not specify the length.
        longest = self.description.max_seq_length or _LENGTHS[-1]
        for signature in self.signatures.by_name.values():
            if not signature.has_rows:
                continue
            sizes = [(1, length) for length in _LENGTHS]
            for rows, length in (*sizes, (batch_size, _LENGTH_OF_BATCH)):
                inputs = {
                    name: _some(name, info, rows, min(length, longest))
                    for name, info in signature.inputs.items()
                }
                yield signature, inputs


def _freeze() -> None:
    """Excludes all objects from further searches for garbage.

    A search among the objects of TensorFlow and of a model takes up to a
    second, during which no request is answered.
    """
    gc.collect()
    gc.freeze()


def _some(
    name: str, info: signature_defs.Tensor, rows: int, length: int
) -> np.ndarray:
    """Returns a dummy value for an input with `rows` rows."""
    sizes = [x or length for x in (info.shape or ())[1:]]
    if info.dtype != tf.string:
        # RoBERTa has segment 0 only.
        value = int(name != "segment_ids")
        return np.full([rows, *sizes], value, info.dtype.as_numpy_dtype)
    text = f"[MASK] {'the ' * length}".encode()
    return np.full([rows, *(2 for _ in sizes)], text, object)
