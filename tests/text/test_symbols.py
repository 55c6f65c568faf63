"""Symbols in the graph equal those in Python, with their places."""

from bert_tf import vocabularies
from bert_tf.text import graph as text_graph
from bert_tf.text import graph_offsets
from bert_tf.text import symbols as graph_symbols
from bert_tf.vocabularies import symbols
from tests import sample_texts, saved_models
from tests.vocabularies import test_symbols

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

VOCABULARY = test_symbols.VOCABULARY
TOKENIZER = graph_symbols.SymbolTokenizer(VOCABULARY)
_TEXTS = [tf.TensorSpec([None], tf.string)]
_tokenize = tf.function(TOKENIZER.tokenize, _TEXTS)
_tokenize_with_offsets = tf.function(TOKENIZER.tokenize_with_offsets, _TEXTS)


def check(texts):
    """Compares ids and places with those of Python."""
    reference = VOCABULARY.tokenizer()
    found = _tokenize(tf.constant(texts, tf.string)).to_list()
    pieces = _tokenize_with_offsets(tf.constant(texts, tf.string))
    assert pieces.ids.to_list() == found
    starts = pieces.ids.with_values(pieces.starts).to_list()
    ends = pieces.ids.with_values(pieces.ends).to_list()
    for number, text in enumerate(texts):
        tokens = reference.tokenize_with_offsets(text)
        ids = reference.convert_tokens_to_ids([x.piece for x in tokens])
        assert found[number] == ids, repr(text)
        assert starts[number] == [x.start for x in tokens], repr(text)
        assert ends[number] == [x.end for x in tokens], repr(text)


def test_texts():
    check(test_symbols.texts())
    check([])
    check(["", ""])
    for text in test_symbols.texts()[:20]:
        check([text])


def test_characters():
    chars = sample_texts.characters(every=False)[::7]
    check([f"v_1{char}v_1 {char} é{char}" for char in chars])
    check(sample_texts.random_texts(3, 300))


def test_white_space_is_pythons():
    spaces = [chr(x) for x in range(0x110000) if chr(x).isspace()]
    assert len(spaces) > 20
    ids = _tokenize([f"v_1{space}V_1" for space in spaces]).to_list()
    assert ids == [[5, 6]] * len(spaces)


@pytest.mark.parametrize(
    "data",
    [b"v_1 \xff x", b"v_\xff1 \xc3\xa9\xc3", b"\xed\xa0\x80v_1", b"\xff"],
)
def test_invalid_bytes_are_left_out(data):
    reference = VOCABULARY.tokenizer()
    ids = reference.convert_tokens_to_ids(reference.tokenize(data))
    assert _tokenize([data]).to_list() == [ids]
    pieces = _tokenize_with_offsets([data])
    tokens = reference.tokenize_with_offsets(data)
    assert pieces.starts.numpy().tolist() == [x.start for x in tokens]
    assert pieces.ends.numpy().tolist() == [x.end for x in tokens]


def test_the_kind_has_its_tokenizers(tmp_path):
    path = tmp_path / "symbols.txt"
    path.write_bytes(VOCABULARY.files["symbols.txt"])
    vocabulary = vocabularies.open(path, do_lower_case=False)
    assert isinstance(vocabulary, symbols.Symbols)
    tokenizer = text_graph.of(vocabulary)
    first, second = tokenizer.tokenize(["v_1 z"]), tokenizer.tokenize(["V_1"])
    rows = tokenizer.pack(first, second, 8, pad_to_max=True)
    assert rows["input_ids"].numpy().tolist() == [[2, 5, 1, 3, 6, 3, 0, 0]]
    assert rows["segment_ids"].numpy().tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]
    pieces = graph_offsets.of(vocabulary).tokenize_with_offsets([" z v_1"])
    assert pieces.ids.to_list() == [[1, 5]]
    assert pieces.starts.numpy().tolist() == [1, 3]
    nothing = graph_symbols.SymbolTokenizer(
        symbols.Symbols(test_symbols.SPECIAL)
    )
    assert nothing.tokenize(["[PAD] a"]).to_list() == [[1, 1]]


class Module(tf.Module):
    """Text in, ids out."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = graph_symbols.SymbolTokenizer(VOCABULARY)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def ids(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Splits texts."""
        return {"ids": self.tokenizer.tokenize(text).to_tensor(-1)}


@pytest.mark.slow
def test_saved(tmp_path):
    path, module = tmp_path / "model", Module()
    signatures = {"serving_default": module.ids}
    tf.saved_model.save(module, str(path), signatures)
    texts = ["v_1 zz  é", "", "[x]"]
    asked = {"": saved_models.Asked(path, {"text": texts})}
    # Nothing but TensorFlow's own.
    found = saved_models.serve_all_elsewhere(tmp_path, asked, ())[""]
    assert found["ids"] == [[5, 1, 9], [-1] * 3, [12, -1, -1]]
    saved = saved_model_pb2.SavedModel.FromString(
        (path / "saved_model.pb").read_bytes()
    )
    (graph,) = saved.meta_graphs
    library = graph.graph_def.library.function
    ops = {node.op for function in library for node in function.node_def}
    assert "StringSplitV2" in ops
    assert not [x for x in ops if "Wordpiece" in x]
