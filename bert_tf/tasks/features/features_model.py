"""Exports a feature extractor as a SavedModel: raw text in, vectors out.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/vectors/1")
    model(tf.constant(["what a film"]))["vectors"]

Shapes: B texts, S sequence length, K layers, D values per vector.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

from bert_tf import modeling, vocabularies
from bert_tf.errors import InputError
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.tasks.features import feature_layers
from bert_tf.text import graph_rows, text_graph

import tensorflow as tf

# Maps token ids to vectors: the inputs and outputs of `serve_ids`.
_Extract = Callable[[Mapping[str, tf.Tensor]], dict[str, tf.Tensor]]


class Reads(TypedDict):
    """Encoder outputs to read: arguments of `make_inference_model`."""

    every_layer: bool
    reads_all: bool


def reads(choice: feature_layers.Choice, unit: str) -> Reads:
    """Returns which encoder outputs are read.

    For [CLS] vectors of the last layer, no other position is computed.
    """
    is_last = choice.reads_last_only
    return {
        "every_layer": not is_last,
        "reads_all": not is_last or unit != "cls",
    }


def _extract(
    served: inference.Encoder,
    choice: feature_layers.Choice,
    unit: str,
    normalize: bool,
) -> _Extract:
    reads_all = reads(choice, unit)["reads_all"]

    def extract(inputs):
        firsts = tf.zeros_like(inputs["input_ids"][:, :1])  # [B, 1]
        positions = None if reads_all else firsts
        found = choice.select(served(inputs, positions=positions))
        mask = inputs["input_mask"]
        vectors = feature_layers.pool(found, mask, unit)  # [B, S or 1, K, D]
        if normalize:
            vectors = feature_layers.unit_length(vectors)
        if unit != "token":
            return {"vectors": vectors[:, 0]}
        vectors *= feature_layers.of_vectors(mask, vectors)
        return {
            "vectors": vectors,
            "input_ids": inputs["input_ids"],
            "input_mask": mask,
        }

    return extract


class _ExtractorModule(tf.Module):
    def __init__(
        self,
        extract: _Extract,
        weights: Sequence[tf.Variable],
        config: modeling.BertConfig,
        tokenizer: graph_rows.Tokenizer,
        max_seq_length: int,
    ):
        super().__init__()
        self.tokenizer = tokenizer
        self.weights = weights
        function = functools.partial(tf.function, autograph=False)
        texts, ids = serving_inputs.TEXTS, serving_inputs.IDS
        none = serving_inputs.no_text()

        def extract_pairs(first, second):
            ids_1, ids_2 = tokenizer.tokenize_columns(first, second)
            inputs = tokenizer.pack(
                ids_1, ids_2, max_seq_length, pad_to_max=False
            )
            return extract(inputs)

        # Also a function in the graph, so that signatures share it.
        extract_pairs = function(extract_pairs, [texts, texts])

        def serve(text_a, text_b=none):
            return extract_pairs(*serving_inputs.as_pairs(text_a, text_b))

        def serve_text(text):
            (text,) = serving_inputs.shaped(text)
            return extract_pairs(text, tf.fill(tf.shape(text), ""))

        def serve_pairs(text, text_b):
            return extract_pairs(*serving_inputs.as_many(text, text_b))

        def serve_ids(input_ids, input_mask, segment_ids):
            return extract(
                serving_inputs.as_batch(
                    input_ids, input_mask, segment_ids, config
                )
            )

        self.serve = function(serve, [texts, texts])
        self.serve_text = function(serve_text, [texts])
        self.serve_pairs = function(serve_pairs, [texts, texts])
        self.serve_ids = function(serve_ids, [ids, ids, ids])
        # Makes the loaded model callable.
        self.__call__ = self.serve


def extractor(
    model: modeling.Bert,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
    choice: feature_layers.Choice,
    unit: str,
    normalize: bool = False,
) -> saved_model.Export:
    """Returns an export of the model that takes raw text.

    The signatures are `serve_text` (`text`), `serve_pairs` (`text` and an equal
    number of `text_b`, "" for no second text), `serving_default` (`text_a` and
    `text_b`, by default [""] for no second texts; each string [B]) and
    `serve_ids` (`input_ids`, `input_mask`, `segment_ids`; each int32 [B, S]).
    All return `vectors` (float32): for texts [B, K, D]; for tokens [B, S, K,
    D], 0 for padding, with `input_ids` and `input_mask` (int32 [B, S]).

    `unit` is "token", "cls" or "mean". With `normalize`, each vector has length
    1. Raises InputError for invalid arguments.
    """
    config = model.config
    saved_model.check_fits(config, vocabulary, max_seq_length)
    config.check_gives_sequence("a feature extractor")
    choice.check(config.num_blocks)
    if unit not in ("token", "cls", "mean"):
        raise InputError(
            "A SavedModel gives vectors of a token, or one of a text: cls or "
            f"mean. Received: unit={unit}"
        )
    feature_layers.check_unit(unit, vocabulary)
    description = {
        "head": "encoder",
        **vocabulary.settings,
        "max_seq_length": max_seq_length,
        "features": list(choice.names),
        "unit": unit,
        "normalize": normalize,
    }
    served = inference.make_inference_model(model, **reads(choice, unit))
    return make_export(
        _extract(served, choice, unit, normalize),
        served.variables,
        config,
        vocabulary,
        description,
    )


def make_export(
    extract: _Extract,
    weights: Sequence[tf.Variable],
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    description: Mapping[str, Any],
) -> saved_model.Export:
    """Returns an export around a function that maps ids to vectors.

    It has the signatures of `extractor` and takes raw text; `description` is
    also the same. `weights` are the variables that `extract` reads.
    """
    module = _ExtractorModule(
        extract,
        weights,
        config,
        text_graph.make_tokenizer(vocabulary),
        description["max_seq_length"],
    )
    return saved_model.Export(
        module,
        {
            "serving_default": module.serve,
            "serve_text": module.serve_text,
            "serve_pairs": module.serve_pairs,
            "serve_ids": module.serve_ids,
        },
        saved_model.contents(config, vocabulary, None, description),
    )
