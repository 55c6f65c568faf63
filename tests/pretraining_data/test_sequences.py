"""Documents become sequences of one or two segments."""

import collections
import itertools

from bert_tf import options
from bert_tf.pretraining_data import pretraining_sequences, segments
from bert_tf.records import masking
from bert_tf.vocabularies import word_pieces
from tests import pretraining_documents as documents
from tests.pretraining_data.segment_texts import (
    document_starts,
    make_text,
    random_lengths,
)

import numpy as np
import pytest

Settings = pretraining_sequences.Settings
_TEMPLATE = documents.VOCABULARY.template


def assert_same(left, right):
    for name in ("tokens", "word_starts", "starts", "middles", "labels"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


def make_sequences(seed=1, repetition=0, partner=None, corpus=None, **settings):
    if corpus is None:
        corpus = documents.make_corpus(documents.make_documents())
    settings = {"max_seq_length": 64, "max_predictions_per_seq": 9} | settings
    return pretraining_sequences.create_sequences(
        corpus, partner, Settings(**settings), _TEMPLATE, seed, repetition
    )


def pieces_of(sequences):
    """Returns the tokens of each sequence."""
    pieces = [documents.PIECES[token] for token in sequences.tokens]
    return [pieces[a:b] for a, b in itertools.pairwise(sequences.starts)]


class TestSettings:
    @pytest.mark.parametrize(
        "changes, message",
        [
            ({"max_seq_length": 4}, "at least 5. Received: max_seq_length=4"),
            (
                {"max_seq_length": 2, "objective": "none"},
                "at least 3. Received: max_seq_length=2",
            ),
            (
                {"max_seq_length": 16},
                "from 1 to 13: .*Received: max_predictions_per_seq=20",
            ),
            (
                {"max_seq_length": 16, "objective": "none"},
                "from 1 to 14: .*Received: max_predictions_per_seq=20",
            ),
            ({"max_predictions_per_seq": 0}, "from 1 to 125"),
            ({"masked_lm_prob": 1.5}, "Received: masked_lm_prob=1.5"),
            ({"short_seq_prob": -1}, "Received: short_seq_prob=-1"),
            ({"dupe_factor": 0}, "Received: dupe_factor=0"),
            (
                {"masking": "words"},
                "token, whole_word, span, ngram. .*='words'",
            ),
            ({"objective": "nps"}, "sop, two_segments, none, full.* .*='nps'"),
            ({"mask_share": 0.95}, "mask_share=0.95, random_share=0.1"),
            ({"mask_share": -0.1}, "Received: mask_share=-0.1"),
            ({"span_success": 0}, "Received: span_success=0"),
            ({"span_max_words": 0}, "Received: span_max_words=0"),
            ({"ngram": 0}, "Received: ngram=0"),
            ({"max_sequences_per_row": 0}, "max_sequences_per_row=0"),
        ],
    )
    def test_refuses(self, changes, message):
        with pytest.raises(ValueError, match=message):
            Settings(**changes).check_room(documents.VOCABULARY)


class TestVocabulary:
    @pytest.mark.parametrize("token", ["[CLS]", "[SEP]", "[MASK]"])
    def test_without_a_special_token(self, token):
        pieces = [piece for piece in documents.PIECES if piece != token]
        vocabulary = word_pieces.WordPiece(tuple(pieces), True)
        with pytest.raises(ValueError, match=rf"my_vocab.txt lacks \{token}"):
            pretraining_sequences.check_vocabulary(vocabulary, "my_vocab.txt")

    def test_masking(self):
        settings = Settings(64, 9, masking="span", mask_share=0.7)
        found = pretraining_sequences.masking_of(settings, documents.VOCABULARY)
        assert found == masking.Masking(
            "span", 0.15, 9, 0.7, 0.1, 0.2, 10, 405, 2, 3, 4, 3, True
        )


class TestCorpus:
    def test_append(self):
        whole = documents.make_documents(documents=7)
        first = documents.make_corpus(whole[:3])
        both = first.append(documents.make_corpus(whole[3:], first_key=3))
        assert len(both) == 7
        for name, array in vars(documents.make_corpus(whole)).items():
            np.testing.assert_array_equal(getattr(both, name), array)


class TestSequences:
    def test_take_and_concatenate(self):
        sequences = make_sequences()
        number = len(sequences)
        order = np.random.default_rng(0).permutation(number)
        parts = [sequences.take(order[:10]), sequences.take(order[10:])]
        together = pretraining_sequences.Sequences.concatenate(parts)
        np.testing.assert_array_equal(
            together.lengths(_TEMPLATE), sequences.lengths(_TEMPLATE)[order]
        )
        assert not np.array_equal(together.tokens, sequences.tokens)
        assert_same(together.take(np.argsort(order)), sequences)
        assert len(sequences.take(np.zeros(0, int))) == 0

    @pytest.mark.parametrize("objective", options.OBJECTIVES)
    def test_lengths(self, objective):
        sequences = make_sequences(objective=objective)
        lengths = sequences.lengths(_TEMPLATE)
        sizes = np.diff(sequences.starts)
        is_pair = sequences.middles < sizes
        if objective != "two_segments":
            assert set(is_pair) == {objective in ("nsp", "sop")}
        specials = 2 + is_pair
        np.testing.assert_array_equal(lengths, sizes + specials)
        assert lengths.max() == 64


class TestCreateSequences:
    def test_are_of_the_text(self):
        texts = [
            f" {' '.join(itertools.chain(*document))} "
            for document in documents.make_documents()
        ]
        for objective in ("nsp", "sop", "none"):
            sequences = make_sequences(objective=objective)
            for i, pieces in enumerate(pieces_of(sequences)):
                middle = sequences.middles[i]
                where = [
                    {n for n, text in enumerate(texts) if segment in text}
                    for segment in (
                        f" {' '.join(pieces[:middle])} ",
                        f" {' '.join(pieces[middle:])} ",
                    )
                    if segment.strip()
                ]
                assert all(where)
                assert len(where) == (1 if objective == "none" else 2)
                if objective == "sop" or not sequences.labels[i]:
                    assert set.intersection(*where)

    @pytest.mark.parametrize("short_seq_prob", [0, 0.5])
    @pytest.mark.parametrize("length", [3, 16, 64, 1000])
    def test_full_sentences_lose_and_double_nothing(
        self, length, short_seq_prob
    ):
        sequences = make_sequences(
            objective="full_sentences",
            max_seq_length=length,
            max_predictions_per_seq=1,
            short_seq_prob=short_seq_prob,
        )
        pieces = itertools.chain(*pieces_of(sequences))
        lines = itertools.chain(*documents.make_documents())
        text = list(itertools.chain(*lines))
        assert [piece for piece in pieces if piece != "[SEP]"] == text
        # The sizes do not include [CLS] and [SEP].
        sizes = np.diff(sequences.starts)
        np.testing.assert_array_equal(sequences.middles, sizes)
        np.testing.assert_array_equal(sequences.lengths(_TEMPLATE), sizes + 2)
        assert sizes.min() >= 1
        assert sizes.max() <= length - 2
        assert not sequences.labels.any()

    def test_full_sentences_have_separators_between_documents_alone(self):
        lines = [
            [" ".join(line) for line in document]
            for document in documents.make_documents()
        ]
        # All in one row, and in rows of 62 tokens.
        for length in (10_000, 64):
            sequences = make_sequences(
                objective="full_sentences",
                max_seq_length=length,
                short_seq_prob=0,
            )
            rows = [" ".join(pieces) for pieces in pieces_of(sequences)]
            texts = [" ".join(document) for document in lines]
            if length == 10_000:
                assert rows == [" [SEP] ".join(texts)]
                continue
            # In order, and no row has room for the sentence that follows.
            left = collections.deque(
                (number, line)
                for number, document in enumerate(lines)
                for line in document
            )
            for row in rows:
                number, expected = left.popleft()
                while left:
                    between = " " if left[0][0] == number else " [SEP] "
                    longer = expected + between + left[0][1]
                    if len(longer.split()) > 62:
                        break
                    number, expected = left.popleft()[0], longer
                assert row == expected
            assert not left
            assert sum("[SEP]" in row for row in rows) > 20

    def test_full_sentences_begin_a_word_after_a_separator(self):
        corpus = documents.make_corpus([[["w1"]], [["##s1", "##s2"], ["w2"]]])
        sequences = make_sequences(corpus=corpus, objective="full_sentences")
        assert pieces_of(sequences) == [["w1", "[SEP]", "##s1", "##s2", "w2"]]
        starts = sequences.word_starts.tolist()
        assert starts == [True, False, True, False, True]

    def test_same_seed_same_sequences(self):
        assert_same(make_sequences(), make_sequences())
        for other in (make_sequences(seed=2), make_sequences(repetition=1)):
            assert not np.array_equal(other.tokens, make_sequences().tokens)

    def test_partner_gives_second_segments_only(self):
        text = [[["w299"] * 20] * 5] * 40
        partner = documents.make_corpus(text, first_key=100)
        sequences = make_sequences(partner=partner)
        is_first, is_second = [], []
        for pieces, middle in zip(
            pieces_of(sequences), sequences.middles, strict=True
        ):
            is_first.append(set(pieces[:middle]) == {"w299"})
            is_second.append(set(pieces[middle:]) == {"w299"})
        assert np.mean(is_first) < 0.01
        is_random = sequences.labels == 1
        assert np.mean(np.array(is_second)[~is_random]) < 0.01
        # Drawn from 39 other documents and 40 of the partner.
        documents.assert_share(np.sum(is_second), is_random.sum(), 40 / 79)

    @pytest.mark.parametrize("objective", options.OBJECTIVES)
    def test_of_no_documents_are_none(self, objective):
        nothing = documents.make_corpus([])
        for partner in (None, nothing):
            sequences = make_sequences(
                corpus=nothing, partner=partner, objective=objective
            )
            assert len(sequences) == len(sequences.tokens) == 0

    def test_one_document_is_refused_for_next_sentences_alone(self):
        corpus = documents.make_corpus(documents.make_documents(documents=1))
        message = "must hold at least two. Received: documents=1"
        with pytest.raises(ValueError, match=message):
            make_sequences(corpus=corpus)
        for objective in ("sop", "none", "full_sentences"):
            assert len(make_sequences(corpus=corpus, objective=objective))


# ---- Two segments, as ELECTRA's ---------------------------------------------


_MOST = 61


def _reference(lengths, chances, short_seq_prob):
    """First and second segments as lists of (document, token).

    The steps are those of ExampleBuilder in google-research/electra,
    build_pretraining_dataset.py, but that sequences are reached without special
    tokens, and that a segment's sentences stay together.
    """
    draws = {
        name: chances.of_sentences(getattr(segments, name)).tolist()
        for name in ("TARGET", "IS_SHORT", "CHOICE", "CUT")
    }
    number, found = 0, []
    for document, sizes in enumerate(lengths):
        sentences, token = [], 0
        for size in sizes:
            tokens = [(document, token + i) for i in range(size)]
            sentences.append((number, tokens))
            number, token = number + 1, token + size
        current: list[tuple[int, list]] = []
        total, target = 0, 0
        for place, (index, tokens) in enumerate(sentences):
            if not current:
                target = _MOST
                if draws["IS_SHORT"][index] < short_seq_prob:
                    target = 5 + int(draws["TARGET"][index] * (_MOST - 4))
            current.append((index, tokens))
            total += len(tokens)
            if total >= target or place == len(sentences) - 1:
                found.append(_pair(current, target, draws))
                current, total = [], 0
    return found


def _pair(current, target, draws):
    half = target // 2
    if draws["CHOICE"][current[0][0]] < 0.1:
        half = 100_000
    first: list[tuple[int, int]] = []
    second: list[tuple[int, int]] = []
    for index, tokens in current:
        fits = len(first) + len(tokens) < half and not second
        by_chance = not second and len(first) < half
        by_chance = by_chance and draws["CUT"][index] < 0.5
        if not first or fits or by_chance:
            first = first + tokens
        else:
            second = second + tokens
    first = first[:_MOST]
    return first, second[: _MOST - len(first)]


@pytest.mark.parametrize("short_seq_prob", [0, 0.05, 1])
def test_segments_are_electras(short_seq_prob):
    lengths = [*random_lengths(), [200, 3], [1], [30, 31], [70]]
    text = make_text(lengths)
    found = pretraining_sequences.two_segments(
        text, _MOST, short_seq_prob, 1, 2
    )
    chances = segments.Chances(text, 1, 2)
    expected = _reference(lengths, chances, short_seq_prob)
    begins = document_starts(text)
    assert len(found.starts) == len(expected)
    for starts, ends, pair in zip(
        found.starts, found.ends, expected, strict=True
    ):
        for start, end, tokens in zip(starts, ends, pair, strict=True):
            wanted = [begins[document] + token for document, token in tokens]
            assert list(range(start, end)) == wanted
    assert not found.labels.any()


def test_a_tenth_has_one_segment():
    text = make_text([[1] * 200_000])
    found = pretraining_sequences.two_segments(text, _MOST, 0, 1, 0)
    single = (found.ends - found.starts)[:, 1] == 0
    documents.assert_share(single[:-1].sum(), len(single) - 1, 0.1)
