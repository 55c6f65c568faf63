import dataclasses

from bert_tf import modeling, tokenization
from bert_tf.checkpoints import formats, names, restoring, vocabulary_change
from tests import interop_samples as samples

import numpy as np
import pytest

_CONFIG = modeling.BertConfig(**samples.SMALL)
_TABLE = "bert/embeddings/word_embeddings"
_BIAS = "cls/predictions/output_bias"


@pytest.fixture(scope="module", name="source")
def _source(tmp_path_factory):
    """Returns a masked-LM model with random weights, with its vocabulary."""
    folder = tmp_path_factory.mktemp("source")
    samples.write_tf1(folder, samples.random_model("pretraining", _CONFIG))
    return dataclasses.replace(
        formats.open_checkpoint(str(folder)),
        vocab=samples.vocab_files(samples.VOCAB),
    )


def test_new_pieces_are_means_of_what_they_were_split_into(source):
    # One replaces a token, the others are appended.
    new = [*samples.VOCAB[:-1], "cats", "asss", "☃", "##ss", "##so"]
    changed, counts = vocabulary_change.change_vocab(
        source, samples.vocab_files(new)
    )
    # "w24" is gone; neither "☃" nor "##o" can be spelt.
    assert counts == vocabulary_change.Counts(kept=39, new=5, unknown=2)
    assert changed.config == dataclasses.replace(_CONFIG, vocab_size=len(new))
    old = source.read([_TABLE, _BIAS])
    found = changed.read([_TABLE, _BIAS])
    tokenizer = tokenization.WordpieceTokenizer(
        {piece: i for i, piece in enumerate(samples.VOCAB)}
    )
    for name in (_TABLE, _BIAS):
        assert found[name].shape == changed.shapes[name]
        assert found[name].dtype == np.float32
        assert len(found[name]) == len(new)
        np.testing.assert_array_equal(found[name][:39], old[name][:39])
        for word in ("cats", "asss", "☃"):
            pieces = tokenizer.tokenize(word)
            rows = [samples.VOCAB.index(piece) for piece in pieces]
            expected = np.mean([old[name][row] for row in rows], axis=0)
            row = found[name][new.index(word)]
            np.testing.assert_allclose(row, expected, rtol=1e-6)
        inner = old[name][samples.VOCAB.index("##s")]
        np.testing.assert_allclose(found[name][new.index("##ss")], inner)
        unknown = old[name][samples.VOCAB.index("[UNK]")]
        np.testing.assert_array_equal(found[name][new.index("##so")], unknown)


def test_text_of_old_pieces_is_read_as_before(source, tmp_path):
    order = np.random.default_rng(0).permutation(len(samples.VOCAB))
    new = [*(samples.VOCAB[i] for i in order), "more"]
    changed, _ = vocabulary_change.change_vocab(
        source, samples.vocab_files(new)
    )
    formats.write(str(tmp_path / "new"), "tf1", changed)
    opened = formats.open_checkpoint(str(tmp_path / "new"))
    config = dataclasses.replace(_CONFIG, vocab_size=len(new))
    assert (opened.vocab, opened.config) == (samples.vocab_files(new), config)
    assert opened.shapes == names.shapes(config, "pretraining")
    words = ["[CLS]", "the", "cat", "sat", "on", "a", "mat", ".", "[SEP]"]
    outputs = []
    for checkpoint, vocab, size in (
        (source, samples.VOCAB, _CONFIG),
        (opened, new, config),
    ):
        model = samples.model("pretraining", size)
        restoring.restore_weights(model.variables, checkpoint)
        ids = np.array([[vocab.index(word) for word in words]])
        inputs = {"input_ids": ids, "input_mask": np.ones_like(ids)}
        inputs["segment_ids"] = np.zeros_like(ids)
        outputs.append(model.bert(inputs).sequence.numpy())
    np.testing.assert_allclose(outputs[1], outputs[0], atol=1e-6)
