"""Writes a feature extractor as a SavedModel: raw text in, vectors out.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/vectors/1")
    model(tf.constant(["what a film"]))["vectors"]

Shapes:
- B: texts     S: sequence length     K: layers     D: values of a vector
"""

import functools
from collections.abc import Sequence

from bert_tf import export, features, modeling, text_ops

import tensorflow as tf

_TEXTS = tf.TensorSpec([None], tf.string)  # [B]


class _ExtractorModule(tf.Module):
    """Tokenizer and model in one."""

    def __init__(
        self,
        model: modeling.Bert,
        tokenizer: text_ops.BertTokenizer,
        max_seq_length: int,
        choice: features.Choice,
        unit: str,
        normalize: bool,
    ):
        super().__init__()
        self.tokenizer = tokenizer
        self.weights = [variable.value for variable in model.variables]
        none = export.no_text()

        def serve(text_a, text_b=none):
            text_a, text_b = export.as_pairs(text_a, text_b)
            inputs = tokenizer.pack(
                tokenizer.tokenize(text_a),
                tokenizer.tokenize(text_b),
                max_seq_length,
                pad_to_max=False,
            )
            found = choice.select(model(inputs))
            mask = inputs["input_mask"]
            vectors = features.pool(found, mask, unit)  # [B, S or 1, K, D]
            if normalize:
                vectors = features.unit_length(vectors)
            if unit != "token":
                return {"vectors": vectors[:, 0]}
            vectors *= tf.cast(mask, vectors.dtype)[..., None, None]
            return {
                "vectors": vectors,
                "input_ids": inputs["input_ids"],
                "input_mask": mask,
            }

        function = functools.partial(tf.function, autograph=False)
        self.serve = function(serve, input_signature=[_TEXTS, _TEXTS])
        # What the loaded model does when it is called.
        self.__call__ = self.serve


def extractor(
    model: modeling.Bert,
    vocab: Sequence[str],
    do_lower_case: bool,
    max_seq_length: int,
    choice: features.Choice,
    unit: str,
    normalize: bool = False,
) -> export.Export:
    """Returns the model as one that takes raw text.

    The signature `serving_default` takes `text_a` and, for pairs, `text_b`
    (string [B]; "" stands for none, [""] for none of all). It returns
    `vectors`: of texts [B, K, D]; of tokens [B, S, K, D], 0 for padding, and
    then `input_ids` and `input_mask` [B, S] too.

    Args:
        model: With its weights.
        vocab: Its pieces, each at the place of its id.
        do_lower_case: Whether it was trained on lower-cased text.
        max_seq_length: What is longer is cut.
        choice: Which layers.
        unit: "token", "cls" or "mean".
        normalize: Whether each vector is to have the length 1, so that dot
            products are cosines.

    Raises:
        ValueError: if the arguments do not fit.
    """
    config = model.config
    export.check_fits(config, vocab, max_seq_length)
    choice.check(config.num_hidden_layers)
    if unit not in ("token", "cls", "mean"):
        raise ValueError(
            "A SavedModel gives vectors of a token, or one of a text: cls or "
            f"mean. Received: unit={unit}"
        )
    description = {
        "head": "encoder",
        "do_lower_case": do_lower_case,
        "max_seq_length": max_seq_length,
        "features": list(choice.names),
        "unit": unit,
        "normalize": normalize,
    }
    module = _ExtractorModule(
        model,
        text_ops.BertTokenizer(vocab, do_lower_case),
        max_seq_length,
        choice,
        unit,
        normalize,
    )
    return export.Export(
        module,
        {"serving_default": module.serve},
        export.asset_texts(config, vocab, None, description),
    )
