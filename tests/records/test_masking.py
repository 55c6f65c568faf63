import collections
import dataclasses
import random

from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.records import masking
from tests import pretraining_documents as documents

import numpy as np
import pytest
from scipy import stats

assert_share = documents.assert_share
V = documents.VOCABULARY
CLS, SEP = V.special.cls.id, V.special.sep.id


def make_settings(policy="token", predictions=9, **changes):
    settings = pretraining_sequences.Settings(
        64, predictions, masking=policy, **changes
    )
    return pretraining_sequences.masking_of(settings, V)


def make_rows(number=4000, S=64, seed=0, one_piece_words=False):
    """[CLS] first [SEP] second [SEP] and padding, of random lengths."""
    rng = np.random.default_rng(seed)
    pieces = 5 + len(documents.WORDS) if one_piece_words else len(V.pieces)
    ids = rng.integers(5, pieces, (number, S))
    end = rng.integers(S // 2, S, number)[:, np.newaxis]
    middle = rng.integers(2, end - 1)
    place = np.arange(S)
    ids[:, 0] = CLS
    ids[(place == middle) | (place == end)] = SEP
    ids[place > end] = 0
    begins = (place == 1) | (place == middle + 1)
    is_text = ~np.isin(ids, [0, CLS, SEP])
    return {
        "input_ids": ids,
        "input_mask": (place <= end).astype(np.int32),
        "word_starts": is_text & (begins | ~V.continues[ids]),
    }


def mask(rows, settings, seed=1):
    rng = np.random.default_rng(seed)
    B, S = rows["input_ids"].shape
    draws = masking.draw(rng, B, S, settings)
    return masking.mask(rows, settings, draws)


def chosen_of(rows, masked):
    chosen = np.zeros(rows["input_ids"].shape, bool)
    row, slot = np.nonzero(masked["masked_lm_weights"])
    chosen[row, masked["masked_lm_positions"][row, slot]] = True
    return chosen


def choose(rows, settings):
    return chosen_of(rows, mask(rows, settings))


def text_of(rows):
    return ~np.isin(rows["input_ids"], [0, CLS, SEP])


def wanted(rows, settings):
    lengths = rows["input_mask"].sum(axis=1)
    counts = np.rint(lengths * settings.masked_lm_prob)
    return np.clip(counts, 1, settings.max_predictions_per_seq)


def assert_whole_words(rows, chosen):
    row, place = np.nonzero(text_of(rows) & ~rows["word_starts"])
    np.testing.assert_array_equal(chosen[row, place], chosen[row, place - 1])
    assert chosen[row, place].sum() > 1000


class TestAllPolicies:
    @pytest.mark.parametrize("policy", masking.POLICIES)
    def test_is_made_of_the_text(self, policy):
        rows, settings = make_rows(), make_settings(policy)
        masked = mask(rows, settings)
        np.testing.assert_array_equal(
            documents.restore(masked), rows["input_ids"]
        )
        chosen = chosen_of(rows, masked)
        counts = chosen.sum(axis=1)
        assert (counts <= wanted(rows, settings)).all()
        assert (counts >= 1).all()
        assert not (chosen & ~text_of(rows)).any()
        # Real predictions first, in order; zeros after them.
        slots = np.arange(9) < counts[:, np.newaxis]
        np.testing.assert_array_equal(masked["masked_lm_weights"], slots)
        assert not masked["masked_lm_positions"][~slots].any()
        assert not masked["masked_lm_ids"][~slots].any()
        steps = np.diff(masked["masked_lm_positions"], axis=1)
        assert (steps[slots[:, 1:]] > 0).all()
        assert {x.dtype.name for x in masked.values()} == {"int32", "float32"}

    @pytest.mark.parametrize("policy", masking.POLICIES)
    @pytest.mark.parametrize(
        "share, random_share", [(0.8, 0.1), (0.5, 0.3), (1, 0), (0, 0)]
    )
    def test_shares(self, policy, share, random_share):
        settings = make_settings(
            policy, mask_share=share, random_share=random_share
        )
        rows = make_rows(3000)
        masked = mask(rows, settings)
        chosen = chosen_of(rows, masked)
        if policy == "span":  # one draw for a whole span: check its start
            chosen[:, 1:] &= ~chosen[:, :-1].copy()
        shown = masked["input_ids"][chosen]
        labels = rows["input_ids"][chosen]
        total, lucky = len(labels), random_share / len(V.pieces)
        assert total > 3000
        # A random token may be [MASK] or the token itself.
        is_mask = (shown == V.special.mask.id).sum()
        assert_share(is_mask, total, share + lucky)
        kept = (shown == labels).sum()
        assert_share(kept, total, 1 - share - random_share + lucky)
        if random_share:
            # Random tokens are uniform over the whole vocabulary.
            drawn = shown[(shown != labels) & (shown != V.special.mask.id)]
            counts = np.bincount(drawn, minlength=len(V.pieces))
            counts = np.delete(counts, V.special.mask.id)
            pvalue = stats.chisquare(counts).pvalue
            assert pvalue > documents.SIGNIFICANCE

    @pytest.mark.parametrize(
        ("policy", "numbers"),
        [("token", 20), ("whole_word", 20), ("span", 28), ("ngram", 28)],
    )
    def test_numbers_of_a_row(self, policy, numbers):
        """10 or 20 + 2 * 4, rounded up to a multiple of 4.

        With other numbers, masks of the same seed would be others.
        """
        settings = make_settings(policy, 4)
        assert masking.numbers_of_row(10, settings) == numbers

    @pytest.mark.parametrize("policy", masking.POLICIES)
    def test_a_row_does_not_depend_on_the_others(self, policy):
        rows, settings = make_rows(20), make_settings(policy)
        # In a batch of another number of sequences, too.
        rows["sequence_ids"] = rows["input_mask"].copy()
        rows["sequence_ids"][13:] *= 5
        whole = mask(rows, settings)
        rng = np.random.default_rng(1)
        numbers = masking.numbers_of_row(64, settings)
        assert numbers % 4 == 0
        rng.integers(2**64, size=7 * numbers, dtype=np.uint64)
        part = masking.mask(
            {name: x[7:12] for name, x in rows.items()},
            settings,
            masking.draw(rng, 5, 64, settings),
        )
        for name, array in whole.items():
            np.testing.assert_array_equal(array[7:12], part[name])

    @pytest.mark.parametrize("policy", masking.POLICIES)
    def test_sequences_of_a_row_have_their_own_predictions(self, policy):
        # Rows of two sequences, each [CLS] text [SEP], and padding.
        rows = make_rows(2000, one_piece_words=True)
        ids = rows["input_ids"]
        middle = np.argmax(ids == SEP, axis=1)
        ids[np.arange(2000), middle + 1] = CLS
        rows["word_starts"] = text_of(rows)
        second = np.arange(64) > middle[:, np.newaxis]
        second &= rows["input_mask"] > 0
        rows["sequence_ids"] = rows["input_mask"] + second
        chosen = choose(rows, make_settings(policy, predictions=20))
        for sequence in (1, 2):
            inside = rows["sequence_ids"] == sequence
            lengths = inside.sum(axis=1)
            text = (inside & rows["word_starts"]).sum(axis=1)
            np.testing.assert_array_equal(
                (chosen & inside).sum(axis=1),
                np.minimum(np.maximum(1, np.rint(lengths * 0.15)), text),
            )


class TestTokens:
    @pytest.mark.parametrize("prob, predictions", [(0.4, 60), (0, 5), (1, 9)])
    def test_ratio(self, prob, predictions):
        rows = make_rows(50)
        settings = make_settings(predictions=predictions, masked_lm_prob=prob)
        chosen = choose(rows, settings).sum(axis=1)
        expected = np.rint(prob * rows["input_mask"].sum(axis=1))
        np.testing.assert_array_equal(chosen, np.clip(expected, 1, predictions))

    def test_every_place_is_as_likely(self):
        # Sampling without replacement within a row: the sum of squares is
        # smaller than chi-square's by the factor (n - counted) / (n - 1).
        rows = make_rows().items()
        rows = {name: x[:1].repeat(20_000, 0) for name, x in rows}
        chosen = choose(rows, make_settings())
        is_text = text_of(rows)[0]
        assert not chosen[:, ~is_text].any()
        counts = chosen[:, is_text].sum(axis=0)
        n, k = is_text.sum(), chosen[0].sum()
        statistic = ((counts - counts.mean()) ** 2).sum() / counts.mean()
        statistic *= (n - 1) / (n - k)
        assert stats.chi2.sf(statistic, n - 1) > documents.SIGNIFICANCE
        assert stats.chi2.cdf(statistic, n - 1) > documents.SIGNIFICANCE


class TestWholeWords:
    def test_are_masked_whole(self):
        rows = make_rows()
        assert_whole_words(rows, choose(rows, make_settings("whole_word")))

    def test_distribution_is_the_originals(self):
        rows = make_rows()
        chosen = choose(rows, make_settings("whole_word"))
        settings = pretraining_sequences.Settings(64, 9, masking="whole_word")
        rng = random.Random(1)
        ours, reference = [], []
        pieces: tuple[collections.Counter[bool], ...]
        pieces = (collections.Counter(), collections.Counter())
        lengths = rows["input_mask"].sum(axis=1)
        each = zip(rows["input_ids"], lengths, chosen, strict=True)
        for ids, length, own in each:
            tokens = [documents.PIECES[i] for i in ids[:length]]
            # The original joins a token to the word before a [SEP]; we don't.
            for i in range(1, length):
                if tokens[i - 1] in ("[CLS]", "[SEP]"):
                    tokens[i] = tokens[i].removeprefix("##")
            expected = documents.reference_positions(tokens, settings, rng)
            ours.append(own.sum())
            reference.append(len(expected))
            pieces[0].update(tokens[i][0] == "#" for i in np.flatnonzero(own))
            pieces[1].update(tokens[i][0] == "#" for i in expected)
        documents.assert_same_distribution(np.array(ours), np.array(reference))
        table = [[x[key] for key in (False, True)] for x in pieces]
        pvalue = stats.chi2_contingency(table).pvalue
        assert pvalue > documents.SIGNIFICANCE

    def test_a_word_that_does_not_fit_is_passed_over(self):
        # Words of 3, 1 and 2 tokens; 2 wanted: the word of 3 never fits.
        first, later = 5, len(V.pieces) - 1
        ids = [CLS, first, later, later, first, first, later, SEP]
        rows = {"input_ids": np.array([ids] * 500)}
        rows["input_mask"] = np.ones_like(rows["input_ids"])
        rows["word_starts"] = rows["input_ids"] == first
        settings = make_settings("whole_word", masked_lm_prob=0.25)
        found = {tuple(x) for x in choose(rows, settings).astype(int)}
        assert found == {(0, 0, 0, 0, 1, 0, 0, 0), (0, 0, 0, 0, 0, 1, 1, 0)}


def reference_spans(starts, is_text, number, rng):
    """SpanBERT's choice (Joshi et al., 2020), with whole words to the end."""
    lengths = list(range(1, 11))
    shares = [0.2 * 0.8 ** (n - 1) for n in lengths]
    words: list[list[int]] = []  # [] between segments
    for place, (begins, text) in enumerate(zip(starts, is_text, strict=True)):
        if begins:
            words.append([place])
        elif text:
            words[-1].append(place)
        else:
            words.append([])
    masked: set[int] = set()
    anchors = [i for i, word in enumerate(words) if word]
    rng.shuffle(anchors)
    for anchor in anchors:
        if len(masked) >= number:
            break
        if words[anchor][0] in masked:
            continue
        (length,) = rng.choices(lengths, shares)
        for word in words[anchor : anchor + length]:
            if not word or len(masked | set(word)) > number:
                break
            masked |= set(word)
    return masked


def run_lengths(chosen):
    """The row of each run of chosen tokens, where it begins, its length."""
    padded = np.pad(chosen.astype(np.int8), ((0, 0), (1, 1)))
    steps = np.diff(padded, axis=1)
    row, begin = np.nonzero(steps == 1)
    return row, begin, np.nonzero(steps == -1)[1] - begin


class TestSpans:
    @pytest.mark.parametrize("longest, success", [(10, 0.2), (4, 0.5)])
    def test_lengths_are_geometric(self, longest, success):
        settings = make_settings(
            "span", span_max_words=longest, span_success=success
        )
        rng = np.random.default_rng(0)
        draws = rng.integers(2**64, size=100_000, dtype=np.uint64)
        lengths = masking.span_lengths(draws, settings)
        share = stats.geom.pmf(np.arange(1, longest + 1), success)
        expected = 100_000 * share / share.sum()
        observed = np.bincount(lengths, minlength=longest + 1)[1:]
        pvalue = stats.chisquare(observed, expected).pvalue
        assert pvalue > documents.SIGNIFICANCE
        if longest == 10:
            assert lengths.mean() == pytest.approx(3.8, abs=0.02)  # paper

    def test_begin_where_drawn_and_are_so_long(self):
        number, S = 5000, 32
        is_text = np.ones((number, S), bool)
        is_text[:, [0, -1]] = False
        rng = np.random.default_rng(0)
        size = (2, number, S)
        order, lengths = rng.integers(2**64, size=size, dtype=np.uint64)
        order[:, 1] = 0  # the first word comes first
        settings = make_settings("span", masked_lm_prob=10 / S, predictions=10)
        sequences = np.ones((number, S), int)
        chosen = masking.choose(
            is_text, is_text, sequences, settings, order, lengths
        )
        np.testing.assert_array_equal(chosen.sum(axis=1), 10)
        first = masking.span_lengths(lengths[:, 1], settings)
        run = chosen[:, 1:11].cumprod(axis=1).sum(axis=1)
        assert (run >= first).all()
        assert (run == first).mean() > 0.5

    def test_distribution_is_spanberts(self):
        rows = make_rows(3000)
        settings = make_settings("span", predictions=20, masked_lm_prob=0.2)
        chosen = choose(rows, settings)
        expected = np.zeros_like(chosen)
        rng = random.Random(2)
        is_text, numbers = text_of(rows), wanted(rows, settings)
        for i, starts in enumerate(rows["word_starts"]):
            places = reference_spans(starts, is_text[i], numbers[i], rng)
            expected[i, list(places)] = True
        ours, reference = run_lengths(chosen), run_lengths(expected)
        documents.assert_same_distribution(ours[2], reference[2])
        documents.assert_same_distribution(
            chosen.sum(axis=1), expected.sum(axis=1)
        )
        test = stats.ttest_ind(np.bincount(ours[0]), np.bincount(reference[0]))
        assert test.pvalue > documents.SIGNIFICANCE

    def test_the_same_becomes_of_a_whole_span(self):
        rows = make_rows()
        assert_whole_words(rows, choose(rows, make_settings("span")))
        rows = make_rows(one_piece_words=True)
        settings = make_settings("span", mask_share=0.6, random_share=0.2)
        masked = mask(rows, settings)
        runs = run_lengths(chosen_of(rows, masked))
        assert runs[2].mean() > 2.5
        for row, begin, length in zip(*runs, strict=True):
            span = slice(begin, begin + length)
            shown = masked["input_ids"][row, span]
            kept = shown == rows["input_ids"][row, span]
            is_mask = shown == V.special.mask.id
            # All kept, all masked, or random but for a lucky draw.
            assert kept.all() or is_mask.all() or (kept | is_mask).mean() < 0.6


class TestOfManifest:
    def test_of_any_version(self):
        settings = make_settings("span")
        values = dataclasses.asdict(settings)
        assert masking.Masking.of_manifest(values, "x") == settings
        # Before there were n-grams.
        for name in ("ngram", "favor_shorter_ngram"):
            del values[name]
        assert masking.Masking.of_manifest(values, "x") == settings

    @pytest.mark.parametrize("change", ["policy", "mask_id", {"other": 1}])
    def test_is_not_known(self, change):
        values = dataclasses.asdict(make_settings())
        if isinstance(change, str):
            del values[change]
        else:
            values |= change
        with pytest.raises(ValueError, match="x does not say how words are"):
            masking.Masking.of_manifest(values, "x")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("policy", "words"),
            ("mask_id", 99_999),
            ("mask_id", "x"),
            ("cls_id", -1),
            ("vocab_size", "30522"),
            ("masked_lm_prob", float("inf")),
            ("mask_share", float("nan")),
            ("max_predictions_per_seq", 0),
            ("favor_shorter_ngram", 1),
        ],
    )
    def test_is_damaged(self, name, value):
        values = dataclasses.asdict(make_settings()) | {name: value}
        with pytest.raises(ValueError, match=f"x is damaged.*{name}="):
            masking.Masking.of_manifest(values, "x")


def test_wanted_rounds_as_the_original():
    lengths = np.arange(1, 150)
    expected = [min(20, max(1, round(x * 0.15))) for x in lengths.tolist()]
    found = masking.wanted(lengths, make_settings(predictions=20))
    assert found.tolist() == expected
