"""Byte pairs that are learned from text."""

import collections
import json
import pydoc_data.topics

from bert_tf.errors import InputError
from bert_tf.text import learning_byte_pairs

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

_TOPICS = pydoc_data.topics.topics.values()
_TEXTS = [line for topic in _TOPICS for line in topic.splitlines()]


def test_words_are_the_librarys():
    rule = pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = [*_TEXTS, "  it's   é\u3000x ", "   ", "a \nb"]
    expected = collections.Counter(
        word for text in texts for word, _ in rule.pre_tokenize_str(text)
    )
    assert learning_byte_pairs.count_words(texts) == expected


def test_merges_are_the_librarys():
    size = 1000
    words = learning_byte_pairs.count_words(_TEXTS)
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
    tokenizer.train_from_iterator(_TEXTS, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    assert [tuple(pair) for pair in merges] == list(vocabulary.merges)


def test_bad_values():
    with pytest.raises(InputError, match="261 pieces at least"):
        learning_byte_pairs.learn({"a": 1}, 260)
    with pytest.raises(InputError, match="no words"):
        learning_byte_pairs.learn({}, 300)
