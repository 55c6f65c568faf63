"""Symbols and byte pairs in the graph: kinds of tokens and white space."""

from bert_tf import vocabularies
from bert_tf.text import graph_offsets, graph_symbols, text_graph
from bert_tf.vocabularies import byte_pairs, symbols
from tests.vocabularies import byte_pair_samples, test_symbols

VOCABULARY = test_symbols.VOCABULARY


def test_white_space_is_pythons():
    spaces = [chr(x) for x in range(0x110000) if chr(x).isspace()]
    assert len(spaces) > 20
    tokenizer = graph_symbols.SymbolTokenizer(VOCABULARY)
    ids = tokenizer.tokenize([f"v_1{space}V_1" for space in spaces]).to_list()
    assert ids == [[5, 6]] * len(spaces)


def test_byte_pairs_have_their_tokenizer(tmp_path):
    path = byte_pair_samples.write(tmp_path)
    vocabulary = vocabularies.open(path, do_lower_case=False)
    assert isinstance(vocabulary, byte_pairs.BytePairs)
    tokenizer = text_graph.make_tokenizer(vocabulary)
    first, second = tokenizer.tokenize(["a b"]), tokenizer.tokenize(["c"])
    rows = tokenizer.pack(first, second, 10, pad_to_max=True)
    a, b, c = (vocabulary.ids[x] for x in ("a", "Ġb", "c"))
    assert rows["input_ids"].numpy().tolist() == [
        [0, a, b, 2, 2, c, 2, 1, 1, 1]
    ]
    assert rows["input_mask"].numpy().tolist() == [[1] * 7 + [0] * 3]
    assert not rows["segment_ids"].numpy().any()


def test_symbols_have_their_tokenizers(tmp_path):
    path = tmp_path / "symbols.txt"
    path.write_bytes(VOCABULARY.files["symbols.txt"])
    vocabulary = vocabularies.open(path, do_lower_case=False)
    assert isinstance(vocabulary, symbols.Symbols)
    tokenizer = text_graph.make_tokenizer(vocabulary)
    first, second = tokenizer.tokenize(["v_1 z"]), tokenizer.tokenize(["V_1"])
    rows = tokenizer.pack(first, second, 8, pad_to_max=True)
    assert rows["input_ids"].numpy().tolist() == [[2, 5, 1, 3, 6, 3, 0, 0]]
    assert rows["segment_ids"].numpy().tolist() == [[0, 0, 0, 0, 1, 1, 0, 0]]
    pieces = graph_offsets.make_tokenizer(vocabulary).tokenize_with_offsets(
        [" z v_1"]
    )
    assert pieces.ids.to_list() == [[1, 5]]
    assert pieces.starts.numpy().tolist() == [1, 3]
    nothing = graph_symbols.SymbolTokenizer(
        symbols.Symbols(test_symbols.SPECIAL)
    )
    assert nothing.tokenize(["[PAD] a"]).to_list() == [[1, 1]]
