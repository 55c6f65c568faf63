"""Sentence pieces in SavedModels, and models that no graph can split by."""

from bert_tf.errors import InputError
from bert_tf.text import graph_offsets
from bert_tf.vocabularies import sentence_pieces
from tests import saved_models
from tests.vocabularies import sentence_models

import pytest
import tensorflow as tf


@pytest.mark.slow
def test_saved_models(tmp_path):
    """A process that knows nothing of this package has the same pieces."""
    texts = ["The end", "", "in 1999, (thé) 漢字 ¨", "ΟΔΟΣ \u1100\u1161\u1161"]
    module = tf.Module()
    module.tokenizer = graph_offsets.of(sentence_models.vocabulary())

    def serve(text):
        pieces = module.tokenizer.tokenize_with_offsets(text)
        return {
            "ids": pieces.ids.to_tensor(-1),
            "starts": pieces.ids.with_values(pieces.starts).to_tensor(-1),
            "ends": pieces.ids.with_values(pieces.ends).to_tensor(-1),
        }

    signature = tf.function(
        serve, input_signature=[tf.TensorSpec([None], tf.string, name="text")]
    )
    path = tmp_path / "1"
    tf.saved_model.save(module, str(path), {"serving_default": signature})
    rows = saved_models.serve(path, text=texts)
    python = sentence_models.vocabulary().tokenizer()
    for row, text in enumerate(texts):
        tokens = python.tokenize_with_offsets(text)
        found = [
            [x for x in rows[name][row] if x >= 0]
            for name in ("ids", "starts", "ends")
        ]
        assert found == [
            python.convert_tokens_to_ids([x.piece for x in tokens]),
            [x.start for x in tokens],
            [x.end for x in tokens],
        ]


def test_models_with_characters_that_are_no_pieces():
    model = sentence_models.train(user_defined_symbols=("<ɮ>",))
    vocabulary = sentence_pieces.SentencePieces.parse(
        {"spiece.model": model}, True, "spiece.model"
    )
    with pytest.raises(InputError, match=r"Received: pieces with .*'ɮ'"):
        graph_offsets.of(vocabulary)
