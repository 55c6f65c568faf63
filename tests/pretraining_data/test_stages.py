"""The stages of data creation, each tested separately."""

import collections
import dataclasses

from bert_tf import tokenization
from bert_tf.pretraining_data import (
    corpus,
    creation_output,
    pretraining_sequences,
    stages,
)
from bert_tf.vocabularies import word_pieces

import numpy as np
import pytest
import scipy.stats

_PIECES = [*tokenization.SPECIAL_TOKENS, *"abcde", "##k", "."]
_VOCABULARY = word_pieces.WordPiece(tuple(_PIECES), True)
_TOKENIZER = _VOCABULARY.bulk_tokenizer()
_SETTINGS = pretraining_sequences.Settings(
    max_seq_length=32, max_predictions_per_seq=5, dupe_factor=3
)


class TestTokenizeDocuments:
    def test_leaves_out_what_has_no_words(self):
        documents = [
            corpus.Document(7, [], 0),
            corpus.Document(9, ["ak b", "\u200b", "c"], 10),
            corpus.Document(3, ["\u200b"], 3, 1),
            corpus.Document(4, ["x."], 2),
        ]
        got = stages.tokenize_documents(documents, _TOKENIZER, _VOCABULARY)
        pieces = [_PIECES[i] for i in got.tokens]
        assert pieces == ["a", "##k", "b", "c", "[UNK]", "."]
        assert got.word_starts.tolist() == [True, False, True, True, True, True]
        assert got.sentences.tolist() == [0, 3, 4, 6]
        assert got.documents.tolist() == [0, 2, 3]
        assert got.keys.tolist() == [9, 4]
        settings = dataclasses.replace(
            _SETTINGS, objective="none", short_seq_prob=0
        )
        counts = stages.count_documents(
            documents, got, _VOCABULARY, settings, seed=1
        )
        assert counts == {
            "documents": 2,
            "empty_documents": 2,
            "sentences": 3,
            "tokens": 6,
            "unused_tokens_once": 0,
            "tokens_beyond_length": 0,
            "chinese_characters": 0,
            "unknown_tokens": 1,
            "replaced_lines": 1,
            "bytes": 15,
            "sequences_once": 2,
            "sequence_tokens_once": 4 + 2 + 2 + 2,
        }

    @pytest.mark.parametrize(
        ("objective", "unused"),
        # The pair with the long sentence has 5 tokens; with next sentences, 2
        # of them are from the other document.
        [
            *(("nsp", 17), ("sop", 15), ("two_segments", 15)),
            *(("none", 0), ("full_sentences", 0)),
        ],
    )
    def test_counts_tokens_in_no_sequence(self, objective, unused):
        documents = [
            corpus.Document(7, ["a " * 20], 40),
            corpus.Document(9, ["b c", "d e"], 6),
        ]
        settings = dataclasses.replace(
            _SETTINGS, objective=objective, max_seq_length=8, short_seq_prob=0
        )
        got = stages.tokenize_documents(documents, _TOKENIZER, _VOCABULARY)
        counts = stages.count_documents(
            documents, got, _VOCABULARY, settings, seed=1
        )
        assert counts["tokens"] == 24
        assert counts["unused_tokens_once"] == unused
        most = settings.max_tokens(_VOCABULARY.template)
        assert counts["tokens_beyond_length"] == 20 - most
        files = ["x"]
        written = {
            **counts,
            "real_tokens": 9,
            "padding_tokens": 1,
            "rows": 1,
            "instances": 1,
            "random_next": 0,
        }
        result = creation_output.Result(files, [1], written)
        said = " ".join(result.summary("lines"))
        assert (f"{unused / 24:.1%} of the tokens are in no" in said) == (
            unused > 0
        )
        assert ("--input_format=documents splits" in said) == (unused > 0)
        said = " ".join(result.summary("jsonl"))
        assert ("Check that --language matches" in said) == (unused > 0)

    @pytest.mark.parametrize(
        ("text", "masking", "has_words", "is_warned"),
        [
            ("北京大学", "whole_word", False, True),
            ("北京大学", "ngram", False, True),
            ("北京大学", "whole_word", True, False),
            ("北京大学", "token", False, False),
            ("a b c d e 京", "whole_word", False, False),
        ],
    )
    def test_warns_of_chinese_words_that_are_not_known(
        self, text, masking, has_words, is_warned, caplog
    ):
        documents = [corpus.Document(key, [text, text], 9) for key in range(2)]
        settings = dataclasses.replace(_SETTINGS, masking=masking)
        vocabulary = word_pieces.WordPiece((*_PIECES, *"北京大"), True)
        got = stages.tokenize_documents(
            documents, vocabulary.bulk_tokenizer(), vocabulary
        )
        counts = stages.count_documents(
            documents, got, vocabulary, settings, seed=1
        )
        stages.check(counts, settings, stages.Layout(1, 1), has_words)
        assert ("pass --word_list or --segmenter" in caplog.text) == is_warned

    def test_a_sentence_begins_a_word(self):
        class SpaceBefore(word_pieces.WordPiece):
            """Like byte pairs, whose words begin with the space before them."""

            @property
            def continues(self):
                return np.ones(len(self.pieces), bool)

        documents = [
            corpus.Document(7, ["ak b", "\u200b", "c d."], 10),
            corpus.Document(9, ["e"], 1),
        ]
        vocabulary = SpaceBefore(tuple(_PIECES), True)
        got = stages.tokenize_documents(documents, _TOKENIZER, vocabulary)
        pieces = [_PIECES[i] for i in got.tokens]
        assert pieces == ["a", "##k", "b", "c", "d", ".", "e"]
        assert np.flatnonzero(got.word_starts).tolist() == [0, 3, 6]

    def test_nothing(self):
        got = stages.tokenize_documents([], _TOKENIZER, _VOCABULARY)
        assert len(got.tokens) == len(got.keys) == 0
        assert got.documents.tolist() == got.sentences.tolist() == [0]


class TestPartner:
    def test_is_any_other_piece(self):
        pieces = [(0, 0), (0, 1), (2, 0), (5, 0)]
        drawn = collections.Counter(
            stages.partner((0, 1), pieces, seed, repetition)
            for seed in range(300)
            for repetition in range(3)
        )
        assert drawn.keys() == {(0, 0), (2, 0), (5, 0)}
        assert scipy.stats.chisquare(list(drawn.values())).pvalue > 1e-4
        assert stages.partner((0, 0), [(0, 0)], 1, 0) is None


class TestLayout:
    @pytest.mark.parametrize(
        "shards, slices", [(1, 1), (3, 1), (7, 5), (1, 64)]
    )
    def test_borders_are_equal_shares_of_the_keys(self, shards, slices):
        rng = np.random.default_rng(0)
        keys = rng.integers(2**64, size=5000, dtype=np.uint64)
        ends = np.array([0, 2**64 - 1], np.uint64)
        keys = np.sort(np.concatenate([keys, ends]))
        number = shards * slices
        borders = stages.Layout(shards, slices).borders(keys)
        assert len(borders) == number + 1
        assert borders[0] == 0
        assert borders[-1] == len(keys)
        for index in range(number):
            for key in keys[borders[index] : borders[index + 1]].tolist():
                assert (key >> 32) * number // 2**32 == index
        assert stages.Layout(2, 2).borders(keys[:0]).tolist() == [0] * 5

    def test_slices_and_shards_are_of_bounded_size(self):
        settings = pretraining_sequences.Settings(dupe_factor=10)
        for tokens, slices in ((1000, 1), (10 * 2**23, 100), (2**33, 10240)):
            counts = {"sequence_tokens_once": tokens}
            layout = stages.layout(counts, settings, 1, 0)
            assert layout == stages.Layout(1, slices)
        # Wikipedia and books, in shards of 100 MB.
        counts = {"sequences_once": 36 * 10**6}
        counts["sequence_tokens_once"] = 4 * 10**9
        layout = stages.layout(counts, settings, None, 100 * 10**6)
        assert layout == stages.Layout(3067, 2)
