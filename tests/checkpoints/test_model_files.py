"""Config and vocabulary, passed or taken from a checkpoint."""

import dataclasses
import hashlib

from bert_tf import modeling
from bert_tf.checkpoints import formats, model_files, original
from bert_tf.contrib import awd_lstm, left_to_right
from bert_tf.storage import weight_files
from tests import interop_samples as samples

import pytest

_CONFIG = modeling.BertConfig(**samples.SMALL)


def _text(pieces):
    return "".join(f"{piece}\n" for piece in pieces)


def _sha256(vocab):
    return hashlib.sha256(vocab.contents["vocab.txt"]).hexdigest()


def test_brought_by_the_checkpoint(tf1):
    source = formats.open_checkpoint(tf1)
    assert model_files.find_config(None, source) == _CONFIG
    assert model_files.find_vocab(None, source) == source.vocab


def test_of_weights_that_have_none_beside_them(tmp_path, tf1):
    source = dataclasses.replace(formats.open_checkpoint(tf1), vocab=None)
    # No family is released with symbols: any family may have been trained on
    # them.
    path = tmp_path / "symbols.txt"
    path.write_text(_text(samples.VOCAB))
    assert model_files.find_vocab(str(path), source).kind == "symbols"


def _given(folder, config, name="config.json"):
    (folder / name).write_text(config.to_json())
    return str(folder / name)


def test_given_and_of_the_same_model(tmp_path, tf1):
    # Dropout is the run's choice, not the model's.
    given = dataclasses.replace(_CONFIG, hidden_dropout_prob=0.3)
    path = _given(tmp_path, given)
    source = formats.open_checkpoint(tf1)
    for known in (source, None):
        assert model_files.find_config(path, known) == given
    # Whatever rates its family has.
    of_family = awd_lstm.AwdLstmConfig(vocab_size=len(samples.VOCAB))
    source = dataclasses.replace(source, config=of_family)
    given = dataclasses.replace(of_family, embedding_dropout_prob=0.3)
    path = _given(tmp_path, given)
    assert model_files.find_config(path, source) == given
    # A multi-label model may be passed the base model's config.
    several = dataclasses.replace(_CONFIG, problem_type=modeling.MULTI_LABEL)
    source = dataclasses.replace(source, config=several)
    path = _given(tmp_path, _CONFIG)
    assert model_files.find_config(path, source) == several


def test_heads_tell_of_the_encoder_where_no_config_does(tmp_path, tf1, caplog):
    alone = dataclasses.replace(formats.open_checkpoint(tf1), config=None)
    ahead = left_to_right.LeftToRightConfig(**samples.SMALL)
    of_bert, of_ahead = (
        _given(tmp_path, x, f"{x.model_type}.json") for x in (_CONFIG, ahead)
    )
    assert model_files.find_config(of_bert, alone) == _CONFIG
    message = "has a head of masked words: model_type=left_to_right goes with"
    with pytest.raises(ValueError, match=message):
        model_files.find_config(of_ahead, alone, trains=True)
    model = samples.random_model("next_piece", ahead)
    source = samples.source(tmp_path / "next", model)
    next_pieces = dataclasses.replace(source, config=None)
    found = model_files.find_config(of_ahead, next_pieces)
    assert found == ahead
    with pytest.raises(ValueError, match="has a head of next pieces"):
        model_files.find_config(of_bert, next_pieces)
    # If training starts from it, the log reports this.
    caplog.set_level("INFO", logger="absl")
    found = model_files.find_config(of_bert, next_pieces, trains=True)
    assert found == _CONFIG
    assert "starts from one of model_type=left_to_right" in caplog.text


def test_a_run_goes_on_with_the_encoder_that_it_has(tmp_path):
    """Another encoder may start from its weights, but not in its folder."""
    ahead = left_to_right.LeftToRightConfig(**samples.SMALL)
    model = samples.random_model("next_piece", ahead)
    start = samples.source(tmp_path / "run", model)
    path = _given(tmp_path, _CONFIG)
    assert model_files.find_config(path, start, trains=True) == _CONFIG
    run = original.read_files(str(tmp_path / "run"))
    with pytest.raises(ValueError, match=r"encoder is bert there and left_to"):
        model_files.find_config(path, run, trains=True)


def test_vocabulary(tmp_path, tf1):
    brought = [*samples.VOCAB[:-1], "[unused0]"]
    source = dataclasses.replace(
        formats.open_checkpoint(tf1), vocab=samples.vocab_files(brought)
    )
    path = tmp_path / "vocab.txt"
    # A custom word at an unused position.
    given = [*brought[:-1], "mine"]
    path.write_text(_text(given))
    found = model_files.find_vocab(str(path), source)
    assert found == samples.vocab_files(given)


def test_settings_of_a_vocabulary_are_compared_by_their_meaning(tmp_path, tf1):
    vocab = samples.vocab_files(samples.VOCAB)
    source = dataclasses.replace(
        formats.open_checkpoint(tf1), vocab=vocab, do_lower_case=True
    )
    path = tmp_path / "vocab.txt"
    path.write_text(_text(samples.VOCAB))
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text('{"strip_accents": true}')
    model_files.find_vocab(str(path), source)
    settings.write_text('{"strip_accents": false}')
    with pytest.raises(ValueError, match="its settings are"):
        model_files.find_vocab(str(path), source)


@pytest.mark.slow
@pytest.mark.parametrize("output_format", weight_files.FORMATS)
def test_vocabulary_beside_a_checkpoint_from_windows(
    tmp_path, tf1, caplog, output_format
):
    folder = tmp_path / "there"
    formats.write(str(folder), output_format, formats.open_checkpoint(tf1))
    (path,) = folder.rglob("vocab*.txt")
    path.write_bytes(_text(samples.VOCAB).replace("\n", "\r\n").encode())
    caplog.set_level("INFO", "absl")
    for _ in range(2):
        source = formats.open_checkpoint(str(folder))
        assert source.vocab == samples.vocab_files(samples.VOCAB)
    (said,) = (x for x in caplog.messages if "is read with" in x)
    assert said == f"{path} is read with the line ends made LF."


def test_what_is_wrong_with_a_vocabulary_names_it(tmp_path, tf1):
    source = formats.open_checkpoint(tf1)
    pieces = [*samples.VOCAB[:-1], "cat"]
    path = tmp_path / "vocab.txt"
    path.write_text(_text(pieces))
    with pytest.raises(ValueError, match=f"^{path}, line 40: .* on line 7\\."):
        model_files.find_vocab(str(path), None)
    source = dataclasses.replace(source, vocab=samples.vocab_files(pieces))
    name = f"The vocabulary of {source.path}"
    with pytest.raises(ValueError, match=f"^{name}, line 40: .* on line 7"):
        model_files.find_vocab(None, source)
    # The message's suggestion works on a copy of the vocabulary.
    given = [*pieces[:6], "[unused-7]", *pieces[7:]]
    path.write_text(_text(given))
    found = model_files.find_vocab(str(path), source)
    assert found == samples.vocab_files(given)


def test_vocabulary_of_records(tmp_path, tf1, caplog):
    find = model_files.find_records_vocab
    brought = samples.vocab_files([*samples.VOCAB[:-1], "[unused0]"])
    source = dataclasses.replace(formats.open_checkpoint(tf1), vocab=brought)
    assert find(None, source, _sha256(brought)) == brought
    # An extended vocabulary must be passed, to be compared.
    path = tmp_path / "vocab.txt"
    extended = [*samples.VOCAB[:-1], "mine"]
    path.write_text(_text(extended))
    given = samples.vocab_files(extended)
    assert not caplog.records
    assert find(None, source, _sha256(given)) is None
    assert "made with a vocabulary other than that of" in caplog.text
    assert find(str(path), source, _sha256(given)) == given
    assert find(str(path), None, None) == given
    with pytest.raises(ValueError, match=r"not made with the vocabulary"):
        find(str(path), source, _sha256(brought))
    others = ["mine", *samples.VOCAB[1:]]
    path.write_text(_text(others))
    with pytest.raises(ValueError, match="line 1 is 'mine'"):
        find(str(path), source, _sha256(samples.vocab_files(others)))
    # The same file that create_pretraining_data.py read.
    windows = tmp_path / "windows.txt"
    windows.write_bytes(
        b"\xef\xbb\xbf" + _text(extended).replace("\n", "\r\n").encode()
    )
    assert find(str(windows), source, _sha256(given)) == given
    # The original's records have no manifest.
    assert find(None, source, None) is None
    assert find(None, None, _sha256(given)) is None
