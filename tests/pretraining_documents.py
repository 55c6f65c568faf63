"""Random documents, and the original's algorithm to create instances.

The `reference_*` functions are the original's, for strings and with its random
draws.
"""

import random

from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.vocabularies import word_pieces

import numpy as np
from scipy import stats

# All statistical tests have fixed seeds, so they cannot fail by chance. Results
# that are less probable than this under the right distribution are rejected.
SIGNIFICANCE = 1e-3

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{i}" for i in range(300)]
SUFFIXES = [f"##s{i}" for i in range(100)]
PIECES = [*SPECIAL, *WORDS, *SUFFIXES]
VOCAB = {piece: index for index, piece in enumerate(PIECES)}
VOCABULARY = word_pieces.WordPiece(tuple(PIECES), True)


def make_documents(seed=0, documents=40, sentences=12, tokens=30):
    """Returns documents of sentences of words with one to four tokens each."""
    rng = random.Random(seed)

    def sentence():
        pieces: list[str] = []
        for _ in range(rng.randint(1, tokens)):
            first = not pieces or rng.random() < 0.6
            pieces.append(rng.choice(WORDS if first else SUFFIXES))
        return pieces

    return [
        [sentence() for _ in range(rng.randint(1, sentences))]
        for _ in range(documents)
    ]


def make_corpus(documents, vocab=None, first_key=0):
    """Returns the same documents as arrays."""
    sentences = [line for document in documents for line in document]
    pieces = [piece for line in sentences for piece in line]
    return pretraining_sequences.Corpus(
        np.array([(vocab or VOCAB)[piece] for piece in pieces], np.int32),
        np.array([not piece.startswith("##") for piece in pieces], bool),
        pretraining_sequences.borders([len(line) for line in sentences]),
        pretraining_sequences.borders(
            [len(document) for document in documents]
        ),
        np.arange(first_key, first_key + len(documents), dtype=np.uint64),
    )


def reference_pairs(all_documents, index, settings, rng):
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
            reference_truncate(tokens_a, tokens_b, max_num_tokens, rng)
            pairs.append((tokens_a, tokens_b, is_random_next))
            chunk, length = [], 0
        i += 1
    return pairs


def reference_truncate(tokens_a, tokens_b, max_num_tokens, rng):
    while len(tokens_a) + len(tokens_b) > max_num_tokens:
        longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def reference_positions(tokens, settings, rng):
    """Returns the positions of `tokens` that the original would mask."""
    candidates: list[list[int]] = []
    for i, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        whole = settings.masking == "whole_word"
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
    """Compares two samples of small integers with the chi-square test."""
    # About 20 cells of equal size, from the quantiles of both samples.
    edges = np.unique(
        np.quantile(np.concatenate([ours, reference]), np.linspace(0, 1, 21))
    )
    edges[-1] += 1
    table = [np.histogram(x, edges)[0] for x in (ours, reference)]
    assert stats.chi2_contingency(table).pvalue > SIGNIFICANCE


def assert_share(count, total, share):
    """Checks `count` of `total` with the exact binomial test."""
    test = stats.binomtest(int(count), int(total), share)
    assert test.pvalue > SIGNIFICANCE, (count, total, share)


def restore(features):
    """Replaces the masks by their labels: [R, S]."""
    ids = features["input_ids"].copy()
    row, slot = np.nonzero(features["masked_lm_weights"])
    positions = features["masked_lm_positions"][row, slot]
    ids[row, positions] = features["masked_lm_ids"][row, slot]
    return ids
