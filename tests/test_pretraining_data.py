"""Tests of bert_tf/pretraining_data.py.

`_reference_*` are the original's functions, on strings and with its random
draws, as the reference for distributions.
"""

import collections
import dataclasses
import random

from bert_tf import pretraining_data, tokenization

import numpy as np
import pytest
from scipy import stats

# All statistical tests have fixed seeds: they cannot fail by chance, and what
# they accept is this improbable for a wrong distribution.
_SIGNIFICANCE = 1e-3

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
_WORDS = [f"w{i}" for i in range(300)]
_SUFFIXES = [f"##s{i}" for i in range(100)]
_PIECES = [*_SPECIAL, *_WORDS, *_SUFFIXES]
_VOCAB = {piece: index for index, piece in enumerate(_PIECES)}
_VOCABULARY = pretraining_data.Vocabulary.from_vocab(_VOCAB, "vocab.txt")


def make_documents(seed=0, documents=40, sentences=12, tokens=30):
    """Documents of sentences of pieces; every word has one to four pieces."""
    rng = random.Random(seed)

    def sentence():
        pieces: list[str] = []
        for _ in range(rng.randint(1, tokens)):
            first = not pieces or rng.random() < 0.6
            pieces.append(rng.choice(_WORDS if first else _SUFFIXES))
        return pieces

    return [
        [sentence() for _ in range(rng.randint(1, sentences))]
        for _ in range(documents)
    ]


def make_corpus(documents, vocab=None):
    """The documents, each ended by an empty line."""
    lines = [line for document in documents for line in [*document, []]]
    ids = [(vocab or _VOCAB)[piece] for line in lines for piece in line]
    return pretraining_data.build_corpus(
        [
            pretraining_data.TokenizedLines(
                np.array(ids, np.int32),
                np.array([len(line) for line in lines]),
                np.array([not line for line in lines]),
            )
        ]
    )


def make_instances(corpus, settings, seed=1, vocabulary=_VOCABULARY):
    rng = np.random.default_rng(seed)
    pairs = pretraining_data.create_pairs(corpus, settings, rng)
    instances = pretraining_data.create_instances(
        corpus, pairs, vocabulary, settings, rng
    )
    return pairs, instances


def restore(instances):
    """Puts the labels back in place of the masks: [B, S]."""
    ids = instances["input_ids"].copy()
    row, slot = np.nonzero(instances["masked_lm_weights"])
    positions = instances["masked_lm_positions"][row, slot]
    ids[row, positions] = instances["masked_lm_ids"][row, slot]
    return ids


def check_instances(corpus, pairs, instances, settings, vocabulary):
    """Compares every instance with the text that it was made of."""
    restored = restore(instances)
    for row, pair in enumerate(pairs):
        first, second = (
            corpus.tokens[slice(*pair[:2])],
            corpus.tokens[slice(*pair[2:4])],
        )
        text = [vocabulary.cls_id, *first, vocabulary.sep_id]
        text += [*second, vocabulary.sep_id]
        padding = [0] * (settings.max_seq_length - len(text))
        assert restored[row].tolist() == text + padding
        assert instances["input_mask"][row].tolist() == (
            [1] * len(text) + padding
        )
        assert instances["segment_ids"][row].tolist() == (
            [0] * (len(first) + 2) + [1] * (len(second) + 1) + padding
        )
        assert len(first) >= 1
        assert len(second) >= 1

        number = int(instances["masked_lm_weights"][row].sum())
        wanted = max(1, round(len(text) * settings.masked_lm_prob))
        wanted = min(wanted, settings.max_predictions_per_seq)
        assert number <= wanted
        assert number == wanted or settings.do_whole_word_mask
        weights = [1] * number
        weights += [0] * (settings.max_predictions_per_seq - number)
        assert instances["masked_lm_weights"][row].tolist() == weights
        positions = instances["masked_lm_positions"][row]
        assert (np.diff(positions[:number]) > 0).all()
        assert not positions[number:].any()
        assert not instances["masked_lm_ids"][row, number:].any()
        specials = {0, len(first) + 1, len(text) - 1}
        assert specials.isdisjoint(positions[:number])
    np.testing.assert_array_equal(
        instances["next_sentence_labels"][:, 0], pairs[:, 4]
    )


# ---- The original's algorithm -----------------------------------------------


def _reference_pairs(all_documents, index, settings, rng):
    document = all_documents[index]
    max_num_tokens = settings.max_seq_length - 3
    target = max_num_tokens
    if rng.random() < settings.short_seq_prob:
        target = rng.randint(2, max_num_tokens)
    pairs, chunk, length, i = [], [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        length += len(document[i])
        if i == len(document) - 1 or length >= target:
            a_end = 1
            if len(chunk) >= 2:
                a_end = rng.randint(1, len(chunk) - 1)
            tokens_a = [token for line in chunk[:a_end] for token in line]
            tokens_b = []
            is_random_next = len(chunk) == 1 or rng.random() < 0.5
            if is_random_next:
                target_b = target - len(tokens_a)
                for _ in range(10):
                    other = rng.randint(0, len(all_documents) - 1)
                    if other != index:
                        break
                lines = all_documents[other]
                for line in lines[rng.randint(0, len(lines) - 1) :]:
                    tokens_b.extend(line)
                    if len(tokens_b) >= target_b:
                        break
                i -= len(chunk) - a_end
            else:
                tokens_b = [t for line in chunk[a_end:] for t in line]
            _reference_truncate(tokens_a, tokens_b, max_num_tokens, rng)
            pairs.append((tokens_a, tokens_b, is_random_next))
            chunk, length = [], 0
        i += 1
    return pairs


def _reference_truncate(tokens_a, tokens_b, max_num_tokens, rng):
    while len(tokens_a) + len(tokens_b) > max_num_tokens:
        longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def _reference_positions(tokens, settings, rng):
    """Where the original would mask `tokens`."""
    candidates: list[list[int]] = []
    for i, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        whole = settings.do_whole_word_mask
        if whole and candidates and token.startswith("##"):
            candidates[-1].append(i)
        else:
            candidates.append([i])
    rng.shuffle(candidates)
    number = max(1, round(len(tokens) * settings.masked_lm_prob))
    number = min(settings.max_predictions_per_seq, number)
    masked: list[int] = []
    for indexes in candidates:
        if len(masked) >= number:
            break
        if len(masked) + len(indexes) <= number:
            masked += indexes
    return sorted(masked)


def assert_same_distribution(ours, reference):
    """Two samples of small integers, by the chi-square test."""
    # About 20 cells of equal size, by the quantiles of both.
    edges = np.unique(
        np.quantile(np.concatenate([ours, reference]), np.linspace(0, 1, 21))
    )
    edges[-1] += 1
    table = [np.histogram(x, edges)[0] for x in (ours, reference)]
    assert stats.chi2_contingency(table).pvalue > _SIGNIFICANCE


# ---- Lines and documents ----------------------------------------------------


class TestReadLines:
    def test_strips_and_ends_documents(self, tmp_path):
        (tmp_path / "a").write_bytes("one \r\n\n\u3000\n Zwölf\n".encode())
        (tmp_path / "b").write_bytes(b"last line without its end")
        files = [str(tmp_path / "a"), str(tmp_path / "b")]
        (lines,) = pretraining_data.read_lines(files)
        assert lines.texts == [
            "one", "", "", "Zwölf", "", "last line without its end", "",
        ]  # fmt: skip
        assert lines.size == sum((tmp_path / f).stat().st_size for f in "ab")

    def test_batches(self, tmp_path):
        (tmp_path / "a").write_text("x\n" * 10)
        batches = pretraining_data.read_lines([str(tmp_path / "a")], 4)
        assert [len(batch.texts) for batch in batches] == [4, 4, 3]

    def test_names_the_line_that_is_no_utf8(self, tmp_path):
        (tmp_path / "a").write_bytes(b"good\nbad \xe9t\xe9\n")
        message = r"a, line 2: .* must be UTF-8.*Received: byte=0xe9"
        with pytest.raises(ValueError, match=message):
            list(pretraining_data.read_lines([str(tmp_path / "a")]))


class TestBuildCorpus:
    def test_keeps_sentences_and_documents(self):
        lines = [[], [5, 6], [7], [], [], [8], [], [9, 9, 9], []]
        # An empty line that ends no document, as one of control characters.
        ends = [not line for line in lines[:-2]] + [False, True]
        lines[-2:-2] = [[]]
        ends[-2:-2] = [False]
        batches = [
            pretraining_data.TokenizedLines(
                np.array([x for line in lines[part] for x in line]),
                np.array([len(line) for line in lines[part]]),
                np.array(ends[part]),
            )
            for part in (slice(0, 3), slice(3, 8), slice(8, None))
        ]
        corpus = pretraining_data.build_corpus(batches)
        assert corpus.tokens.tolist() == [5, 6, 7, 8, 9, 9, 9]
        assert corpus.tokens.dtype == np.int32
        assert list(corpus.sentences) == [0, 2, 3, 4, 7]
        assert list(corpus.documents) == [0, 2, 3, 4]
        assert corpus.num_documents == 3
        vocabulary = dataclasses.replace(_VOCABULARY, unk_id=9)
        assert corpus.statistics(vocabulary) == {
            "documents": 3,
            "sentences": 4,
            "tokens": 7,
            "unknown_tokens": 3,
        }

    def test_nothing(self):
        corpus = pretraining_data.build_corpus([])
        assert corpus.num_documents == 0


# ---- Pairs ------------------------------------------------------------------


class TestPairs:
    @pytest.mark.parametrize("short_seq_prob", [0, 0.1, 1])
    def test_distributions_are_the_originals(self, short_seq_prob):
        settings = pretraining_data.Settings(
            64, 10, short_seq_prob=short_seq_prob, dupe_factor=60
        )
        documents = make_documents()
        corpus = make_corpus(documents)
        ours = pretraining_data.create_pairs(
            corpus, settings, np.random.default_rng(3)
        )
        rng = random.Random(4)
        reference = [
            (len(a), len(b), is_random_next)
            for _ in range(settings.dupe_factor)
            for index in range(len(documents))
            for a, b, is_random_next in _reference_pairs(
                documents, index, settings, rng
            )
        ]
        first, second, label = np.array(reference).T
        ours_first = ours[:, 1] - ours[:, 0]
        ours_second = ours[:, 3] - ours[:, 2]
        assert len(ours) == pytest.approx(len(first), rel=0.02)
        assert_same_distribution(ours_first, first)
        assert_same_distribution(ours_second, second)
        assert_same_distribution(ours_first + ours_second, first + second)
        for value in (0, 1):
            assert_same_distribution(
                ours_first[ours[:, 4] == value], first[label == value]
            )
        table = [np.bincount(ours[:, 4]), np.bincount(label)]
        assert stats.chi2_contingency(table).pvalue > _SIGNIFICANCE

    def test_random_next_is_even_where_there_is_a_choice(self):
        # Pairs of sentences that always fill a sequence.
        documents = [[["w1"] * 30] * 40] * 20
        settings = pretraining_data.Settings(
            64, 10, short_seq_prob=0, dupe_factor=20
        )
        pairs = pretraining_data.create_pairs(
            make_corpus(documents), settings, np.random.default_rng(5)
        )
        # Each document ends in one sentence alone if its last pair but one
        # was random; such a pair is random without a choice.
        corpus_starts = np.arange(20 * 40).reshape(20, 40) * 30
        alone = np.isin(pairs[:, 0], corpus_starts[:, -1])
        random_next = pairs[~alone, 4]
        test = stats.binomtest(int(random_next.sum()), len(random_next), 0.5)
        assert test.pvalue > _SIGNIFICANCE
        assert pairs[alone, 4].all()

    def test_random_next_is_of_another_document(self):
        documents = make_documents(documents=3)
        corpus = make_corpus(documents)
        pairs = pretraining_data.create_pairs(
            corpus, pretraining_data.Settings(64, 10), np.random.default_rng(0)
        )
        ends = [corpus.sentences[i] for i in corpus.documents[1:]]
        first = np.searchsorted(ends, pairs[:, 0], side="right")
        second = np.searchsorted(ends, pairs[:, 2], side="right")
        np.testing.assert_array_equal(first != second, pairs[:, 4] == 1)
        # Each of the two others is taken.
        assert set(zip(first, second, strict=True)) == {
            (a, b) for a in range(3) for b in range(3)
        }

    def test_a_document_is_used_up_in_order(self):
        corpus = make_corpus(make_documents())
        # So long that nothing is cut off.
        settings = pretraining_data.Settings(4096, 20, short_seq_prob=1)
        rng = np.random.default_rng(0)
        for document in range(corpus.num_documents):
            first, last = corpus.documents[document : document + 2]
            position = corpus.sentences[first]
            for pair in pretraining_data.pairs_of_document(
                corpus, document, settings, rng
            ):
                assert pair.first_start == position
                position = pair.first_end
                assert pair.first_end in corpus.sentences
                if not pair.is_random_next:
                    assert pair.second_start == pair.first_end
                    position = pair.second_end
            assert position == corpus.sentences[last]

    def test_one_document_is_refused(self):
        corpus = make_corpus(make_documents(documents=1))
        message = "at least two, separated by blank lines. Rec.*documents=1"
        with pytest.raises(ValueError, match=message):
            pretraining_data.create_pairs(
                corpus, pretraining_data.Settings(), np.random.default_rng(0)
            )


class TestTruncate:
    def test_lengths_are_those_of_one_token_at_a_time(self):
        rng = np.random.default_rng(0)
        for a in range(1, 25):
            for b in range(1, 25):
                for max_tokens in range(2, 30):
                    tokens_a, tokens_b = [0] * a, [0] * b
                    _reference_truncate(
                        tokens_a, tokens_b, max_tokens, random.Random(0)
                    )
                    pair = pretraining_data.truncate(
                        pretraining_data.Pair(100, 100 + a, 7, 7 + b, False),
                        max_tokens,
                        rng,
                    )
                    assert pair.first_end - pair.first_start == len(tokens_a)
                    assert pair.second_end - pair.second_start == len(tokens_b)
                    assert 100 <= pair.first_start < pair.first_end <= 100 + a
                    assert 7 <= pair.second_start < pair.second_end <= 7 + b

    def test_front_and_back_are_even(self):
        rng = np.random.default_rng(0)
        pair = pretraining_data.Pair(0, 4, 10, 30, True)
        fronts = [
            pretraining_data.truncate(pair, 14, rng).second_start - 10
            for _ in range(5000)
        ]
        expected = stats.binom.pmf(range(11), 10, 0.5) * 5000
        observed = np.bincount(fronts, minlength=11)
        assert stats.chisquare(observed, expected).pvalue > _SIGNIFICANCE


# ---- Masked instances -------------------------------------------------------


class TestCreateInstances:
    @pytest.mark.parametrize("whole_word", [False, True])
    def test_are_made_of_the_text(self, whole_word):
        settings = pretraining_data.Settings(
            48, 6, do_whole_word_mask=whole_word
        )
        corpus = make_corpus(make_documents())
        pairs, instances = make_instances(corpus, settings)
        assert len(pairs) > 1000
        check_instances(corpus, pairs, instances, settings, _VOCABULARY)

    @pytest.mark.parametrize("whole_word", [False, True])
    def test_real_text(self, shared_data, whole_word):
        tokenizer = tokenization.FullTokenizer(
            shared_data / "vocab" / "bert_cased.txt", do_lower_case=False
        )
        vocabulary = pretraining_data.Vocabulary.from_vocab(
            tokenizer.vocab, "bert_cased.txt"
        )
        path = shared_data / "corpus" / "enwiki_AA.txt"
        with path.open(encoding="utf-8") as file:
            text = file.read(300_000)
        documents = [
            [tokenizer.tokenize(line) for line in article.split(". ") if line]
            for article in text.split("</doc>")
        ]
        corpus = make_corpus(documents, tokenizer.vocab)
        settings = pretraining_data.Settings(
            do_whole_word_mask=whole_word, dupe_factor=2
        )
        pairs, instances = make_instances(
            corpus, settings, vocabulary=vocabulary
        )
        check_instances(corpus, pairs, instances, settings, vocabulary)

    def test_same_seed_same_instances(self):
        corpus = make_corpus(make_documents())
        settings = pretraining_data.Settings(48, 6, dupe_factor=2)
        (pairs, one), (_, two) = (
            make_instances(corpus, settings) for _ in range(2)
        )
        other_pairs, _ = make_instances(corpus, settings, seed=2)
        for name, array in one.items():
            np.testing.assert_array_equal(array, two[name])
        assert not np.array_equal(pairs, other_pairs)

    def test_masks_are_80_10_10(self):
        corpus = make_corpus(make_documents())
        settings = pretraining_data.Settings(64, 9, dupe_factor=40)
        _, instances = make_instances(corpus, settings)
        row, slot = np.nonzero(instances["masked_lm_weights"])
        labels = instances["masked_lm_ids"][row, slot]
        shown = instances["input_ids"][
            row, instances["masked_lm_positions"][row, slot]
        ]
        kinds = np.where(
            shown == _VOCABULARY.mask_id, 0, np.where(shown == labels, 1, 2)
        )
        # A random piece may be [MASK] or the piece itself.
        lucky = 0.1 / _VOCABULARY.size
        share = np.array([0.8 + lucky, 0.1 + lucky, 0.1 - 2 * lucky])
        expected = share * len(kinds)
        observed = np.bincount(kinds)
        assert len(kinds) > 20_000
        assert stats.chisquare(observed, expected).pvalue > _SIGNIFICANCE
        # Random pieces are of the whole vocabulary, each as often.
        drawn = np.bincount(shown[kinds == 2], minlength=_VOCABULARY.size)
        drawn = np.delete(drawn, _VOCABULARY.mask_id)
        assert stats.chisquare(drawn).pvalue > _SIGNIFICANCE

    def test_every_place_is_masked_as_often(self):
        corpus = make_corpus([[["w1"] * 30] * 40] * 20)
        settings = pretraining_data.Settings(63, 20, short_seq_prob=0)
        pairs, instances = make_instances(corpus, settings)
        full = pairs[:, 1] - pairs[:, 0] == 30
        full &= pairs[:, 3] - pairs[:, 2] == 30
        weights = instances["masked_lm_weights"][full] > 0
        positions = instances["masked_lm_positions"][full][weights]
        # 9 of 60 tokens: 15 % of 63.
        assert len(positions) == 9 * full.sum()
        counts = np.bincount(positions, minlength=63)
        assert counts[[0, 31, 62]].tolist() == [0, 0, 0]
        counts = np.delete(counts, [0, 31, 62])
        assert stats.chisquare(counts).pvalue > _SIGNIFICANCE

    def test_statistics(self):
        corpus = make_corpus(make_documents())
        settings = pretraining_data.Settings(48, 6)
        pairs, instances = make_instances(corpus, settings)
        counts = pretraining_data.statistics(instances, _VOCABULARY)
        lengths = pairs[:, 1] - pairs[:, 0] + pairs[:, 3] - pairs[:, 2] + 3
        assert counts["instances"] == len(pairs)
        assert counts["random_next"] == pairs[:, 4].sum()
        assert counts["real_tokens"] == lengths.sum()
        assert counts["padding_tokens"] == (48 - lengths).sum()
        predictions = instances["masked_lm_weights"].sum()
        assert counts["predictions"] == predictions
        changed = (restore(instances) != instances["input_ids"]).sum()
        unchanged = counts["predictions_unchanged"]
        assert unchanged == predictions - changed
        masked = (instances["input_ids"] == _VOCABULARY.mask_id).sum()
        assert counts["predictions_masked"] == masked


class TestWholeWords:
    def test_are_masked_whole(self):
        corpus = make_corpus(make_documents())
        settings = pretraining_data.Settings(64, 9, do_whole_word_mask=True)
        pairs, instances = make_instances(corpus, settings)
        restored = restore(instances)
        split = 0
        for row in range(len(pairs)):
            number = int(instances["masked_lm_weights"][row].sum())
            chosen = set(instances["masked_lm_positions"][row, :number])
            for position in range(1, settings.max_seq_length):
                piece = _PIECES[restored[row, position]]
                before = _PIECES[restored[row, position - 1]]
                if piece.startswith("##") and before not in _SPECIAL:
                    assert (position in chosen) == (position - 1 in chosen)
                    split += position in chosen
        assert split > 1000

    def test_distribution_is_the_originals(self):
        settings = pretraining_data.Settings(64, 9, do_whole_word_mask=True)
        documents = make_documents()
        pairs, instances = make_instances(make_corpus(documents), settings)
        restored = restore(instances)
        rng = random.Random(1)
        ours, reference = [], []
        pieces_ours: collections.Counter[bool] = collections.Counter()
        pieces_reference: collections.Counter[bool] = collections.Counter()
        for row in range(len(pairs)):
            number = int(instances["masked_lm_weights"][row].sum())
            length = int(instances["input_mask"][row].sum())
            tokens = [_PIECES[i] for i in restored[row, :length]]
            positions = instances["masked_lm_positions"][row, :number]
            expected = _reference_positions(tokens, settings, rng)
            ours.append(number)
            reference.append(len(expected))
            pieces_ours.update(tokens[i].startswith("##") for i in positions)
            pieces_reference.update(
                tokens[i].startswith("##") for i in expected
            )
        assert_same_distribution(np.array(ours), np.array(reference))
        table = [
            [pieces[key] for key in (False, True)]
            for pieces in (pieces_ours, pieces_reference)
        ]
        assert stats.chi2_contingency(table).pvalue > _SIGNIFICANCE

    def test_do_not_reach_over_a_separator(self):
        # Both segments begin inside of a word, as after truncation.
        corpus = make_corpus([[["##s0", "w0"], ["##s1", "w1"]]])
        pairs = np.array([[0, 2, 2, 4, 0]] * 400)
        settings = pretraining_data.Settings(
            8, 2, masked_lm_prob=0.1, do_whole_word_mask=True
        )
        instances = pretraining_data.create_instances(
            corpus, pairs, _VOCABULARY, settings, np.random.default_rng(0)
        )
        # One token of seven each; joined to a word, two would not fit.
        assert (instances["masked_lm_weights"] == [1, 0]).all()
        counts = np.bincount(instances["masked_lm_positions"][:, 0])
        assert counts[[0, 3]].tolist() == [0, 0]
        observed = counts[[1, 2, 4, 5]]
        assert stats.chisquare(observed).pvalue > _SIGNIFICANCE

    def test_a_word_that_does_not_fit_is_passed_over(self):
        is_text = np.ones((500, 6), bool)
        starts = np.array([[True, False, False, True, True, False]] * 500)
        chosen = pretraining_data.choose(
            is_text, starts, np.full(500, 2), np.random.default_rng(0)
        )
        # Words of 3, 1 and 2 tokens; 2 wanted: the word of 3 never fits.
        found = {tuple(row) for row in chosen.astype(int)}
        assert found == {(0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 1, 1)}


# ---- Bad input --------------------------------------------------------------


class TestSettings:
    @pytest.mark.parametrize(
        "changes, message",
        [
            ({"max_seq_length": 4}, "at least 5. Received: max_seq_length=4"),
            (
                {"max_seq_length": 16},
                "from 1 to 13: .*Received: max_predictions_per_seq=20",
            ),
            ({"max_predictions_per_seq": 0}, "from 1 to 125"),
            ({"masked_lm_prob": 1.5}, "Received: masked_lm_prob=1.5"),
            ({"short_seq_prob": -1}, "Received: short_seq_prob=-1"),
            ({"dupe_factor": 0}, "Received: dupe_factor=0"),
        ],
    )
    def test_refuses(self, changes, message):
        with pytest.raises(ValueError, match=message):
            pretraining_data.Settings(**changes)


@pytest.mark.parametrize("token", ["[CLS]", "[SEP]", "[MASK]"])
def test_vocabulary_without_a_special_token(token):
    vocab = {piece: i for i, piece in enumerate(_PIECES) if piece != token}
    message = rf"my_vocab.txt lacks \{token}"
    with pytest.raises(ValueError, match=message):
        pretraining_data.Vocabulary.from_vocab(vocab, "my_vocab.txt")
