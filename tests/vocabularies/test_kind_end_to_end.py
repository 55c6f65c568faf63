"""A custom kind of vocabulary, from text to served answers.

Rows computed in Python are compared with a model's answers. They are laid
out by the template's own `row`, which no graph uses.
"""

import dataclasses

import bert_tf
from bert_tf import errors, modeling, vocabularies
from bert_tf.checkpoints import formats, tf1_files
from bert_tf.text import graph_offsets, text_graph
from tests import interop_samples as samples
from tests import reference, tiny_model
from tests.vocabularies import signs

import numpy as np
import pytest
import tensorflow as tf

VOCABULARY = signs.VOCABULARY
TEMPLATE = VOCABULARY.template
CONFIG = modeling.BertConfig(
    vocab_size=len(VOCABULARY.pieces),
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=24,
    type_vocab_size=4,
)
LENGTH = 16
LABELS = ("O", "X", "Y")
ROW = ("input_ids", "input_mask", "segment_ids")
# The last word of the first text is unknown.
TEXTS = ("a b zz", "c  d e", "f", "g h i j")
OTHERS = ("k l", "m", "n o p", "q")


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(vocabularies, "KINDS", {**vocabularies.KINDS})
    for module in (text_graph, graph_offsets):
        monkeypatch.setattr(module, "TOKENIZERS", {**module.TOKENIZERS})
        module.register(signs.Signs.kind, signs.GraphTokenizer)
    vocabularies.register(signs.Signs.kind, signs.ROW)


def ids(text):
    """Returns ids by Python's own split."""
    return [VOCABULARY.ids.get(word, 3) for word in text.split()]


def inputs(first, second=()):
    """Returns one row [1, S], without padding."""
    row, segments = TEMPLATE.row(first, second)
    values = row, [1] * len(row), segments
    return {name: tf.constant([x]) for name, x in zip(ROW, values, strict=True)}


def write(folder, head):
    """Writes a checkpoint with random weights; returns its folder and model."""
    made = samples.random_model(head, CONFIG)
    weights = {v.path: v.value for v in made.variables}
    folder.mkdir()
    tf1_files.write(str(folder / "bert_model.ckpt"), weights)
    (folder / "bert_config.json").write_text(CONFIG.to_json())
    (folder / "signs.txt").write_bytes(VOCABULARY.files["signs.txt"])
    if head in ("classification", "tagging"):
        (folder / "labels.txt").write_text("".join(f"{x}\n" for x in LABELS))
    return folder, made


def test_a_name_is_taken_once():
    vocabularies.register("signs", signs.ROW)
    other = dataclasses.replace(signs.ROW, endings=(".other",))
    with pytest.raises(errors.InputError, match="of this name already"):
        vocabularies.register("signs", other)
    with pytest.raises(errors.InputError, match=r"signs has signs.txt alr"):
        vocabularies.register("others", other)
    for module in (text_graph, graph_offsets):
        module.register("signs", signs.GraphTokenizer)
        with pytest.raises(errors.InputError, match="of this kind already"):
            module.register("signs", text_graph.BertTokenizer)


def test_a_checkpoint_carries_it(tmp_path):
    folder, _ = write(tmp_path / "model", "classification")
    source = formats.open_checkpoint(str(folder))
    assert source.vocab == vocabularies.Files("signs", VOCABULARY.files)
    formats.write(str(tmp_path / "copy"), "tf1", source)
    samples.assert_equal(str(folder), str(tmp_path / "copy"))
    again = formats.open_checkpoint(str(tmp_path / "copy"))
    assert again.vocab == source.vocab


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output_format", "file", "note"),
    [
        ("hf", "signs.txt", "transformers has no tokenizer of this vocab"),
        ("keras_hub", "", "KerasHub has no tokenizer of this vocabulary for"),
    ],
)
def test_other_libraries_are_said_to_have_none(
    tmp_path, output_format, file, note
):
    folder, made = write(tmp_path / "model", "encoder")
    source = formats.open_checkpoint(str(folder))
    path = tmp_path / "theirs"
    written = formats.write(str(path), output_format, source)
    (said,) = [x for x in written.notes if "tokenizer" in x]
    assert said.startswith(note)
    assert said.endswith("Received: kind=signs")
    assert not list(path.glob("tokenizer*.json"))
    again = formats.open_checkpoint(str(path))
    if file:
        assert (path / file).read_bytes() == VOCABULARY.files[file]
        assert again.vocab == source.vocab
    table = "bert/embeddings/word_embeddings"
    (expected,) = [v.value for v in made.variables if v.path == table]
    np.testing.assert_array_equal(again.read([table])[table], expected)


def ask(folder, asked, **said):
    """Returns the answers of a loaded checkpoint."""
    with tiny_model.untraced():
        return bert_tf.load(folder, max_seq_length=LENGTH, **said)(asked)


@pytest.mark.slow
def test_pairs(tmp_path):
    """From an export, which has its vocabulary."""
    folder, made = write(tmp_path / "model", "classification")
    pairs = list(zip(TEXTS, OTHERS, strict=True))
    loaded = bert_tf.load(folder, max_seq_length=LENGTH, pairs=True)
    bert_tf.export(loaded, tmp_path / "export")
    file = tmp_path / "export" / "assets" / "signs.txt"
    assert file.read_bytes() == VOCABULARY.files["signs.txt"]
    answers = bert_tf.load(tmp_path / "export")(pairs)
    found = [list(x["probabilities"].values()) for x in answers]
    logits = [made(inputs(ids(a), ids(b)))[0].numpy() for a, b in pairs]
    expected = np.exp(reference.log_softmax(np.array(logits)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.exhaustive
def test_labels_of_words(tmp_path):
    folder, made = write(tmp_path / "model", "tagging")
    texts = [*TEXTS, "k l m n o p", "q r s t u", "v", "w x", "y z z y"]
    answers = ask(folder, texts, scheme="none")
    kinds = set()
    for text, answer in zip(texts, answers, strict=True):
        best = made(inputs(ids(text)))[0].numpy().argmax(-1)
        front = len(TEMPLATE.before)
        labels = [LABELS[x] for x in best[front:][: len(text.split())]]
        expected = list(zip(labels, text.split(), strict=True))
        kinds |= set(labels)
        found = [(x["type"], x["text"]) for x in answer["entities"]]
        assert found == expected, text
    assert len(kinds) > 1, "the test would see no difference"


@pytest.mark.slow
def test_answers_to_questions(tmp_path):
    folder, made = write(tmp_path / "model", "span")
    asked = list(zip(OTHERS, TEXTS, strict=True))
    answers = ask(folder, asked, max_query_length=4)
    for (question, context), answer in zip(asked, answers, strict=True):
        logits = made(inputs(ids(question), ids(context)))
        starts, ends = (x[0].numpy() for x in logits)
        front = TEMPLATE.second(len(ids(question)))
        words = context.split()
        scores = {
            (i, j): starts[front + i] + ends[front + j]
            for i in range(len(words))
            for j in range(i, len(words))
        }
        first, last = max(scores, key=scores.__getitem__)
        assert answer["answer"].split() == words[first : last + 1]


@pytest.mark.slow
def test_masked_words(tmp_path):
    folder, made = write(tmp_path / "model", "masked_lm")
    texts = ["a [MASK] c", "[MASK] zz d"]
    answers = ask(folder, texts, head="masked_lm", top_k=3)
    mask = VOCABULARY.special.mask.id
    for text, answer in zip(texts, answers, strict=True):
        words = text.split()
        row = [mask if x == "[MASK]" else ids(x)[0] for x in words]
        place = len(TEMPLATE.before) + words.index("[MASK]")
        asked = inputs(row) | {"masked_lm_positions": tf.constant([[place]])}
        best = made(asked)[0, 0].numpy().argsort()[::-1][:3]
        (found,) = answer["masks"]
        pieces = [x["piece"] for x in found]
        assert pieces == [VOCABULARY.pieces[x] for x in best]
