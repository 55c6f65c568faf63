"""Vocabularies of all kinds but WordPiece, learned from text."""

import collections
import io
import json
import pydoc_data.topics
import re

from bert_tf.errors import InputError
from bert_tf.text import learning, learning_byte_pairs, learning_symbols
from bert_tf.text import learning_sentence_pieces as sentences
from bert_tf.vocabularies import sentence_pieces
from tests.vocabularies import sentence_models

import pytest
import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_TEXTS = ["b a c_1 a", "", "a\tb\u3000 [SEP]", "[SEP] z \ud800 \ud800"]


def test_counts_what_white_space_separates(monkeypatch):
    wanted = collections.Counter(" ".join(_TEXTS).split())
    assert learning_symbols.count(_TEXTS) == wanted
    monkeypatch.setattr(learning, "_MAX_STRINGS", 1)
    assert learning_symbols.count(_TEXTS) == wanted
    assert learning_symbols.count(_TEXTS, 5) == {
        "a": 3, "b": 2, "[SEP]": 2, "\ud800": 2
    }  # fmt: skip


def test_takes_the_most_frequent():
    counts = learning_symbols.count(_TEXTS)
    found = learning_symbols.learn(counts, 100, min_frequency=1)
    # Among equally frequent ones the first by name is kept.
    assert found.pieces == (*_SPECIAL, "a", "b", "c_1", "z")
    assert learning_symbols.learn(counts, 7).pieces == (*_SPECIAL, "a", "b")
    assert learning_symbols.learn(counts, 6).pieces == (*_SPECIAL, "a")
    six = learning_symbols.learn(counts, 6)
    total, unknown = learning_symbols.coverage(six, counts)
    assert (total, unknown) == (11, 8)


def test_what_was_forgotten_is_not_known(monkeypatch):
    """Many symbols of this text occur only once."""
    texts = [f"often id_{number} seldom_{number % 50}" for number in range(600)]
    monkeypatch.setattr(learning, "_MAX_STRINGS", 100)
    counts = learning_symbols.count(texts, 60)
    assert len(counts) <= 60
    assert counts.forgotten == 1800 - sum(counts.values())
    found = learning_symbols.learn(counts, 6)
    assert found.pieces == (*_SPECIAL, "often")
    assert learning_symbols.coverage(found, counts) == (1800, 1200)


_TOPICS = pydoc_data.topics.topics.values()
_LINES = [line for topic in _TOPICS for line in topic.splitlines()]


def test_words_are_the_librarys():
    rule = pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = [*_LINES, "  it's   é\u3000x ", "   ", "a \nb"]
    expected = collections.Counter(
        word for text in texts for word, _ in rule.pre_tokenize_str(text)
    )
    assert learning_byte_pairs.count_words(texts) == expected


def test_merges_are_the_librarys():
    size = 1000
    words = learning_byte_pairs.count_words(_LINES)
    vocabulary = learning_byte_pairs.learn(words, size)
    assert vocabulary.pieces[:4] == ("<s>", "<pad>", "</s>", "<unk>")
    assert vocabulary.pieces[-1] == "<mask>"
    assert len(vocabulary.pieces) == size
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = list(vocabulary.pieces[4:260])
    trainer = trainers.BpeTrainer(
        vocab_size=size - 5,
        min_frequency=2,
        special_tokens=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_LINES, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    assert [tuple(pair) for pair in merges] == list(vocabulary.merges)


def test_too_few_pairs():
    with pytest.raises(InputError, match="261 tokens at least"):
        learning_byte_pairs.learn({"a": 1}, 260)
    with pytest.raises(InputError, match="no words"):
        learning_byte_pairs.learn({}, 300)


@pytest.fixture(scope="module", name="words")
def _words():
    return sentences.count_words(sentence_models.lines(), do_lower_case=True)


def test_words():
    words = sentences.count_words(["The  thé\u2028end", "", "THE ¨x"], True)
    assert words == {"the": 3, "end": 1, "x": 1}
    words = sentences.count_words(["The the"], do_lower_case=False)
    assert words == {"The": 1, "the": 1}
    # The rarest are dropped from the counts.
    texts = ["a a a b b c", "a d", "b e"]
    assert sentences.count_words(texts, True, max_words=2) == {
        "a": 4,
        "b": 3,
    }


def test_a_vocabulary_of_alberts_layout(words):
    model = sentences.learn(words, 1200)
    vocabulary = sentence_pieces.SentencePieces.parse(
        {"spiece.model": model}, True, "learned"
    )
    assert vocabulary.pieces[:13] == (
        *("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
        *("(", ")", '"', "-", ".", "–", "£", "€"),
    )
    assert len(vocabulary.pieces) == 1200
    assert vocabulary.missing == ()
    assert vocabulary.tokenizer().tokenize("The end") == ["▁the", "▁end"]


@pytest.mark.slow
def test_equal_counts_give_equal_models(words):
    turned = dict(reversed(words.items()))
    assert sentences.learn(words, 1000) == sentences.learn(turned, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["$^", r"[^\w\s]"])
def test_counts_are_as_good_as_the_text(pattern):
    """From the text itself the trainer makes tokens that are no better.

    Its initial candidates differ, since it takes them from lines, not from
    counts; with so little text they matter more. Words apart from punctuation
    are few strings with high counts.
    """
    lines = [re.sub(pattern, r" \g<0> ", line) for line in _LINES]
    texts = [sentence_models.original_text(line, lower=True) for line in lines]
    words = sentences.count_words(lines[::2], do_lower_case=True)
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts[::2]),
        model_writer=model,
        vocab_size=1000,
        minloglevel=2,
        character_coverage=0.99995,
        **sentence_models.ALBERT,
    )

    def count(model, texts):
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        return sum(map(len, processor.encode(texts)))

    ours = sentences.learn(words, 1000)
    for some in (texts[::2], texts[1::2]):
        assert count(ours, some) < 1.01 * count(model.getvalue(), some)


def test_bad_arguments(words):
    with pytest.raises(InputError, match="holds no words"):
        sentences.learn({}, 100)
    with pytest.raises(InputError, match="Received: vocab_size=20") as error:
        sentences.learn(words, 20)
    assert "\n" not in str(error.value)
    model = sentences.learn({"the": 5, "end": 3}, 30000)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert len(pieces) < 100, "of a text of few words"
