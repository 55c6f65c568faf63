"""The tokenizer as a Keras layer, for tf.data and models that take texts.

Shapes:
- B: texts     S: sequence length
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import vocabularies
from bert_tf.api import arguments, model_paths
from bert_tf.checkpoints import casing, hub, huggingface_tokenizer, model_files
from bert_tf.errors import InputError
from bert_tf.storage import weight_files
from bert_tf.text import long_documents, text_graph
from bert_tf.vocabularies import added_tokens

import keras
import numpy as np
import tensorflow as tf


@keras.saving.register_keras_serializable("bert_tf")
class Tokenizer(keras.layers.Layer):
    """Turns texts into model inputs, with the same ids as the scripts.

    In a data set, of rows or of batches (which is faster):

        tokenizer = bert_tf.Tokenizer("vocab.txt", do_lower_case=True)
        dataset = dataset.batch(32).map(lambda x, y: (tokenizer(x), y))

    In a model that takes texts, and that is saved with its vocabulary:

        texts = keras.Input([], dtype="string")
        outputs = classifier(tokenizer(texts))
        model = keras.Model(texts, outputs)

    Attributes:
        vocabulary: The tokens, in the order of their ids.
        files: The vocabulary's files, as saved next to weights.
        do_lower_case: Whether texts are lower-cased and lose their accents, if
            the vocabulary leaves it open.
        max_seq_length: Max tokens of a sequence.
        pad_to_max: Whether all sequences have this length.
        masks: Whether [MASK] in a text is the mask token.
    """

    def __init__(
        self,
        vocabulary: str | os.PathLike[str] | Sequence[str] | Mapping[str, Any],
        do_lower_case: bool | None = None,
        max_seq_length: int = 128,
        pad_to_max: bool = True,
        masks: bool = False,
        **kwargs: Any,
    ):
        """Reads the vocabulary.

        Args:
            vocabulary: The path of a vocab.txt, a vocab.json next to its
                merges.txt, a *.model, a symbols.txt or a tokenizer.json; of a
                checkpoint or of a run; the name of a model on the Hub; or
                a list of WordPiece tokens.
            do_lower_case: As in training; by default as in the checkpoint, else
                true.
            max_seq_length: Longer texts are truncated.
            pad_to_max: Whether sequences are padded to `max_seq_length`; if
                not, to the longest of their batch.
            masks: Whether [MASK] in a text (RoBERTa's <mask>) is the token to
                be predicted; if not, it is text as in the original.
            **kwargs: Arguments of a Keras layer, such as its name.

        Raises:
            InputError: There is no vocabulary, its casing differs, or it lacks
                the mask token that `masks` needs.
        """
        super().__init__(**kwargs)
        found = find_vocabulary(vocabulary, do_lower_case)
        is_whole = isinstance(max_seq_length, int)
        if not is_whole or isinstance(max_seq_length, bool):
            raise InputError(
                "max_seq_length must be a whole number. "
                f"Received: max_seq_length={max_seq_length!r}"
            )
        self.vocabulary = found.pieces
        self.files = vocabularies.Files(found.kind, found.files)
        self.do_lower_case = found.settings.get("do_lower_case", False)
        self.max_seq_length = max_seq_length
        self.pad_to_max = bool(pad_to_max)
        self.masks = bool(masks)
        if self.masks:
            found = _with_mask(found)
        # Texts are no work for XLA.
        self.supports_jit = False
        # Outside of a graph that may be under way: its tables are constants.
        with tf.init_scope():
            self._tokenizer = text_graph.make_tokenizer(found)
        self._check_length()
        self.built = True

    def _check_length(self) -> None:
        special = self._tokenizer.vocabulary.special
        if self.max_seq_length < 3:
            raise InputError(
                f"max_seq_length must be at least 3: {special.cls.text}, one "
                f"token and {special.sep.text}. "
                f"Received: max_seq_length={self.max_seq_length}"
            )

    def __call__(self, text_a, text_b=None, **kwargs):
        """Takes lists of texts too, which Keras takes for no inputs."""
        first = _texts(text_a, "text_a")
        _documents(kwargs.get("long_documents", "head"))  # may raise
        if text_b is None:
            return super().__call__(first, **kwargs)
        second = _texts(text_b, "text_b")
        shapes = [tf.TensorShape(x.shape) for x in (first, second)]
        if not shapes[0].is_compatible_with(shapes[1]):
            raise InputError(
                "text_b must have as many texts as text_a. Received: "
                f"text_a of shape {shapes[0]}, text_b of {shapes[1]}"
            )
        return super().__call__(first, second, **kwargs)

    def call(self, text_a, text_b=None, long_documents="head"):
        """Returns input_ids, input_mask and segment_ids, int32 [B, S].

        Args:
            text_a: string [B], or one text, which gives rows [S].
            text_b: As many second texts; "" stands for none.
            long_documents: The part that is kept of a single text that is too
                long: "head", "tail" or "head_tail".
        """
        first = self._tokenizer.tokenize(tf.reshape(text_a, [-1]))
        second = None
        if text_b is not None:
            second = self._tokenizer.tokenize(tf.reshape(text_b, [-1]))
        else:
            template = self._tokenizer.vocabulary.template
            room = self.max_seq_length - template.special(1)
            first, _ = _documents(long_documents).cut(first, room)
        rows = self._tokenizer.pack(
            first, second, self.max_seq_length, self.pad_to_max
        )
        if text_a.shape.rank == 0:
            return {name: ids[0] for name, ids in rows.items()}
        return rows

    def compute_output_spec(self, text_a, text_b=None, long_documents="head"):
        """Returns what `call` does of symbolic texts."""
        length = self.max_seq_length if self.pad_to_max else None
        shape = (*text_a.shape, length)
        return {
            name: keras.KerasTensor(shape, "int32")
            for name in ("input_ids", "input_mask", "segment_ids")
        }

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` makes the same layer of."""
        plain = vocabularies.listed(self.files, self.vocabulary)
        return super().get_config() | {
            "vocabulary": plain or self.files.to_config(),
            "do_lower_case": self.do_lower_case,
            "max_seq_length": self.max_seq_length,
            "pad_to_max": self.pad_to_max,
            "masks": self.masks,
        }


def _documents(method: str) -> long_documents.LongDocuments:
    documents = long_documents.LongDocuments(method)
    if documents.in_windows:
        raise InputError(
            "A Keras model reads a sequence of each text. For a run with "
            "--long_documents=windows use bert_tf.load or the scripts, or read "
            "only the start by model.tokenizer(texts). "
            f"Received: long_documents={method}"
        )
    return documents


def _with_mask(vocabulary: vocabularies.Vocabulary) -> vocabularies.Vocabulary:
    """Returns a vocabulary that finds the mask token in texts."""
    mask = vocabulary.special.mask
    if mask.id < 0:
        raise InputError(
            "masks=True needs a vocabulary with a mask token. Leave it out, or "
            f"pass another vocabulary. Received: one without {mask.text}"
        )
    token = added_tokens.AddedToken(
        mask.text, mask.id, lstrip=bool(vocabulary.before_words), special=True
    )
    return dataclasses.replace(vocabulary, added=(*vocabulary.added, token))


def _texts(value: Any, name: str) -> tf.Tensor | keras.KerasTensor:
    """Returns texts as a tensor, [B] or []; InputError if they are none."""
    texts = value
    if not isinstance(value, keras.KerasTensor):
        check_texts(value, name)
        try:
            texts = tf.convert_to_tensor(value)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"Expected {name} to be a text or a list of texts. Received: "
                f"{name}={value!r}"[:400]
            ) from error
        # An empty list is one of numbers to TensorFlow.
        if texts.shape == [0]:
            texts = tf.zeros([0], tf.string)
    dtype = tf.as_dtype(texts.dtype).name
    if dtype != "string" or len(texts.shape) > 1:
        raise InputError(
            f"Expected {name} to be a text or texts, string [B]. Received: "
            f"{dtype} of shape {tuple(texts.shape)}. Of a model's, "
            "keras.Input([], dtype='string') has a text a row."
        )
    return texts


def check_texts(texts: Any, name: str) -> None:
    """Raises InputError that names the first element without a text."""
    if not isinstance(texts, list | tuple | np.ndarray):
        return
    for i, text in enumerate(texts):
        if text is None or isinstance(text, float):
            raise InputError(
                f"{name}[{i}]: expected a text; replace missing values, as "
                f"with pandas' fillna(''). Received: {name}[{i}]={text!r}"
            )


@arguments.in_words_of_python()
def find_vocabulary(
    given: Any, do_lower_case: bool | None
) -> vocabularies.Vocabulary:
    """Returns a vocabulary that a model can read with; InputError of none."""
    files, lower, name, path = _find_files(given, do_lower_case)
    if not isinstance(lower, bool):
        raise InputError(
            "do_lower_case must be True or False. "
            f"Received: do_lower_case={lower!r}"
        )
    vocabulary = vocabularies.read(files, lower, name)
    if path:
        casing.of_foreign(files, lower, name, path)
    else:
        vocabulary.check(name)
    return vocabulary


def _find_files(
    given: Any, do_lower_case: bool | None
) -> tuple[vocabularies.Files, bool, str, str]:
    """Returns the files, whether texts are lower-cased, and a name for both.

    And the path of another library's model that says so; "" of none.
    """
    lower = True if do_lower_case is None else do_lower_case
    if isinstance(given, list | tuple):
        if not given or not all(isinstance(x, str) for x in given):
            raise InputError(
                "The vocabulary must be a path, or a list of word pieces. "
                f"Received: vocabulary={given!r}"[:400]
            )
        return vocabularies.of_list(given), lower, _PLAIN, ""
    if isinstance(given, Mapping) and given.keys() == _CONFIG_KEYS:
        return vocabularies.Files.from_config(given), lower, _PLAIN, ""
    if not isinstance(given, str | os.PathLike) or not os.fspath(given):
        raise InputError(
            "The vocabulary must be the path of a vocab.txt or of a "
            "checkpoint, or a list of word pieces. "
            f"Received: vocabulary={given!r}"[:400]
        )
    path = os.fsdecode(given)
    is_file = not tf.io.gfile.isdir(path) and tf.io.gfile.exists(path)
    is_vocabulary = is_file and not weight_files.is_weights(path)
    if path.endswith(".txt") or is_vocabulary:
        return vocabularies.open_files(path), lower, path, ""
    files, said, is_foreign = _of_model(path)
    name = f"The vocabulary of {path}"
    if do_lower_case is None:
        return files, said, name, path if is_foreign else ""
    return files, do_lower_case, name, ""


_PLAIN = "The vocabulary"
# Of `vocabularies.Files.to_config`.
_CONFIG_KEYS = {"kind", "contents"}


def _has_no_weights(path: str) -> bool:
    """Whether this is a folder with files of a tokenizer at most."""
    if not tf.io.gfile.isdir(path):
        return False
    here = [name.rstrip("/") for name in tf.io.gfile.listdir(path)]
    # Also weights of a part of a model, or of an export.
    endings = (".h5", ".safetensors", ".bin", "checkpoint", ".pb")
    return not weight_files.has_weights(here) and not any(
        name.endswith(endings) or name == "best" for name in here
    )


def _of_model(path: str) -> tuple[vocabularies.Files, bool, bool]:
    """Returns a model's vocabulary, its casing, and if others trained it."""
    if model_paths.is_export(path):
        vocabulary = model_paths.vocabulary(
            model_paths.export_files(path), path
        )
        files = vocabularies.Files(vocabulary.kind, vocabulary.files)
        return files, vocabulary.settings.get("do_lower_case", True), False
    folder = hub.locate(path, with_weights=False)
    if hub.is_name(path) or _has_no_weights(folder):
        brought = huggingface_tokenizer.read_vocab(folder)
        lower = huggingface_tokenizer.lower_cases(folder)
        if brought is not None:
            return brought, True if lower is None else lower, True
    found = model_paths.find(path)
    kept = vocabularies.path_in(found.folder) if found.folder else None
    files = model_files.find_vocab(kept, found.source)
    lower = found.source.do_lower_case
    if "do_lower_case" in found.texts:
        text = found.texts["do_lower_case"]
        lower = arguments.read("do_lower_case", text)
    lower = True if lower is None else lower
    return files, lower, found.source.is_foreign
