"""Creates pre-training records from any amount of text, in three phases.

1. Tokenize: the text is read in chunks of about 16 MB, and their documents are
   converted to token ids.
2. Sequences: each chunk is split into sequences, `dupe_factor` times. Every
   sequence draws a random 64-bit key.
3. Shards: sorting by key is the global shuffle. A shard has the sequences with
   keys in a range, from all chunks, masked and encoded.

The functions here are pure, so it does not matter which process calls them, or
when: `local` calls them on one machine, `beam` on a cluster.
"""

import collections
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bert_tf import characters, vocabularies
from bert_tf.errors import InputError
from bert_tf.pretraining_data import (
    corpus,
    pretraining_rows,
    pretraining_sequences,
    word_lists,
)
from bert_tf.records import wire_format

import numpy as np
from absl import logging

if TYPE_CHECKING:
    from bert_tf.pretraining_data import creation_job

# Purposes of random generators, the first number of their seed.
_FOR_PARTNER, _FOR_KEYS, _FOR_SHARD = range(3)

# Number of sequences that are packed or encoded at a time.
_SEQUENCES = 2048
# Max tokens of the sequences in memory at a time (phase 3).
_SLICE_TOKENS = 1 << 23
# Min sequences per shard, so that in practice no shard is empty.
_FEWEST = 16

# Share of Chinese characters among the tokens that makes a text Chinese.
_MUCH = 0.3

# Prefix of counts of sequences by length. A max number of tokens follows.
LENGTH = "length_"
_LENGTHS = 16

# A chunk of the corpus: the number of its unit, and its number in the unit.
Chunk = tuple[int, int]


def _generator(*seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---- Phase 1 ----------------------------------------------------------------


def tokenize_documents(
    documents: Sequence[corpus.Document],
    tokenizer: vocabularies.BulkTokenizer,
    vocabulary: vocabularies.Vocabulary,
    words: word_lists.WordList | word_lists.Segmenter | None = None,
) -> pretraining_sequences.Corpus:
    """Tokenizes the documents of a chunk; skips sentences without words.

    `words` joins tokens to words of several tokens.
    """
    texts = [
        # The space before a word belongs to its first token.
        vocabulary.before_words + text if number and text else text
        for document in documents
        for number, text in enumerate(document.sentences)
    ]
    tokens, lengths = tokenizer.tokenize(texts)
    word_starts = ~vocabulary.goes_on[tokens]
    # If tokens include the space before a word, the first of a text has none.
    starts = pretraining_sequences.borders(lengths)[:-1]
    word_starts[starts[lengths > 0]] = True
    if words is not None:
        word_starts = word_lists.join(
            words, texts, tokens, lengths, word_starts
        )
    before = pretraining_sequences.borders(
        lengths > 0
    )  # sentences with words before each
    sizes = np.array([len(doc.sentences) for doc in documents], np.int64)
    ends = pretraining_sequences.borders(sizes)
    sentences = np.diff(before[ends])  # of each document
    filled = sentences > 0
    keys = np.array([document.key for document in documents], np.uint64)
    return pretraining_sequences.Corpus(
        tokens=tokens,
        word_starts=word_starts,
        sentences=pretraining_sequences.borders(lengths[lengths > 0]),
        documents=pretraining_sequences.borders(sentences[filled]),
        keys=keys[filled],
    )


def count_documents(
    documents: Sequence[corpus.Document],
    tokenized: pretraining_sequences.Corpus,
    vocabulary: vocabularies.Vocabulary,
    settings: pretraining_sequences.Settings,
    seed: int,
) -> dict[str, int]:
    """Counts the contents of a chunk, and the sequences of one repetition."""
    filled = len(tokenized.keys)
    tokens = len(tokenized.tokens)
    most = settings.max_tokens(vocabulary.template)
    beyond = np.maximum(np.diff(tokenized.sentences) - most, 0)
    masks_words = vocabulary.has_fixed_words and settings.masking != "token"
    # The chunk is its own partner, because it may be the only one.
    sequences = pretraining_sequences.create_sequences(
        tokenized, tokenized, settings, vocabulary.template, seed, repetition=0
    )
    return {
        "documents": filled,
        "empty_documents": len(documents) - filled,
        "sentences": len(tokenized.sentences) - 1,
        "tokens": tokens,
        "unused_tokens_once": max(
            0, tokens - sequences.own_tokens(settings.objective)
        ),
        "tokens_beyond_length": int(beyond.sum()),
        "chinese_characters": _count_chinese(documents) if masks_words else 0,
        "unknown_tokens": int(
            np.count_nonzero(tokenized.tokens == vocabulary.special.unk.id)
        ),
        "replaced_lines": sum(document.replaced for document in documents),
        "bytes": sum(document.size for document in documents),
        "sequences_once": len(sequences),
        "sequence_tokens_once": int(
            sequences.lengths(vocabulary.template).sum()
        ),
    }


def _count_chinese(documents: Sequence[corpus.Document]) -> int:
    return sum(
        characters.count_cjk(sentence)
        for document in documents
        for sentence in document.sentences
    )


# ---- Phase 2 ----------------------------------------------------------------


def partner(
    piece: Chunk, pieces: Sequence[Chunk], seed: int, repetition: int
) -> Chunk | None:
    """Draws the chunk that random second segments come from, or None.

    It is not `piece` itself. `pieces` are all chunks with documents.
    """
    others = [other for other in pieces if other != piece]
    if not others:
        return None
    rng = _generator(_FOR_PARTNER, seed, *piece, repetition)
    return others[rng.integers(len(others))]


def sequences_of_piece(
    job: "creation_job.Job",
    piece: Chunk,
    documents: pretraining_sequences.Corpus,
    others: pretraining_sequences.Corpus | None,
    repetition: int,
) -> tuple[np.ndarray, pretraining_sequences.Sequences]:
    """Splits a chunk into sequences, each with a random key.

    `others` are the documents of its partner, if it has one.

    Returns:
        Keys [r] uint64 in ascending order, and their sequences.
    """
    how = job.settings, job.vocabulary.template, job.seed, repetition
    sequences = pretraining_sequences.create_sequences(documents, others, *how)
    rng = _generator(_FOR_KEYS, job.seed, *piece, repetition)
    keys = rng.integers(2**64, size=len(sequences.labels), dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    return keys[order], sequences.take(order)


# ---- Phase 3 ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Layout:
    """How keys are divided into shards, and a shard into slices.

    Only one slice of a shard is in memory at a time.
    """

    shards: int
    slices: int

    def borders(self, keys: np.ndarray) -> np.ndarray:
        """Returns the start of each slice in sorted keys, and the end."""
        number = self.shards * self.slices
        # A slice is an equal share of all keys, by their upper 32 bits.
        slices = (keys >> np.uint64(32)) * np.uint64(number) >> np.uint64(32)
        return np.searchsorted(slices, np.arange(number + 1, dtype=np.uint64))


def layout(
    counts: Mapping[str, int],
    settings: pretraining_sequences.Settings,
    shards: int | None,
    shard_bytes: int,
) -> Layout:
    """Divides the keys so that memory is bounded.

    The number of shards is `shards`, or if None, it follows from `shard_bytes`
    and the size that phase 1 predicts.
    """
    if shards is None:
        total = _expected_rows(counts, settings) * _record_bytes(settings)
        shards = max(1, round(total / shard_bytes))
    tokens = counts["sequence_tokens_once"] * settings.dupe_factor
    return Layout(shards, max(1, math.ceil(tokens / shards / _SLICE_TOKENS)))


def expected_sequences(
    counts: Mapping[str, int], settings: pretraining_sequences.Settings
) -> int:
    """Estimates the number of sequences."""
    return counts["sequences_once"] * settings.dupe_factor


def _expected_rows(
    counts: Mapping[str, int], settings: pretraining_sequences.Settings
) -> float:
    if not settings.pack:
        return expected_sequences(counts, settings)
    tokens = counts["sequence_tokens_once"] * settings.dupe_factor
    return tokens / settings.max_seq_length


def _record_bytes(settings: pretraining_sequences.Settings) -> int:
    """Estimates the size of a record: most ids take two bytes, others one."""
    S, P = settings.max_seq_length, settings.max_predictions_per_seq
    # The ids, the mask, the segments, and the names of the features.
    size = 4 * S + 200
    size += S if settings.dynamic_masking else 7 * P
    if settings.pack:
        size += 2 * S + 7 * settings.max_sequences_per_row
    return size


def check(
    counts: Mapping[str, int],
    settings: pretraining_sequences.Settings,
    layout: Layout,
    has_words: bool = True,
) -> None:
    """Raises InputError if phase 1 found too little text for the settings.

    Warns about Chinese text unless `has_words` (a word list, or a segmenter).
    """
    if not counts["documents"]:
        raise InputError(
            "The text holds no words. Is it in --input_format? "
            f"Received: {counts['empty_documents']} documents without words"
        )
    if settings.objective == "nsp" and counts["documents"] < 2:
        raise InputError(
            "The next-sentence task takes half of its second segments from "
            "another document, so the text must hold at least two. Is it in "
            "--input_format (with `lines` a blank line ends a document)? "
            "Or use --objective=sop or --objective=none. "
            f"Received: documents={counts['documents']}"
        )
    expected = expected_sequences(counts, settings)
    if not expected:
        raise InputError(
            f"The text gives no sequences for --objective={settings.objective}:"
            " its documents are too short. Is it in --input_format? Or use "
            "--objective=none. "
            f"Received: {counts['documents']:,} documents, "
            f"{counts['tokens']:,} tokens"
        )
    if layout.shards > 1 and expected < _FEWEST * layout.shards:
        raise InputError(
            f"The text gives about {expected:,} sequences, too few for so "
            f"many files: each must get {_FEWEST}. Give fewer files "
            "(--num_shards, --output_file) or larger ones (--shard_size_mb). "
            f"Received: {layout.shards} files"
        )
    if counts["unknown_tokens"] == counts["tokens"]:
        raise InputError(
            "All words of the text are [UNK]: its language, or its casing, is "
            "not that of the vocabulary. Give another --vocab_file. "
            f"Received: {counts['tokens']:,} words"
        )
    is_chinese = counts["chinese_characters"] > _MUCH * counts["tokens"]
    if is_chinese and not has_words:
        logging.warning(
            "Each Chinese character counts as a word: pass --word_list or "
            "--segmenter (jieba:lcut) for words of several characters.",
        )


def shard_records(
    job: "creation_job.Job",
    shard: int,
    slices: Iterable[tuple[np.ndarray, pretraining_sequences.Sequences]],
) -> Iterator[tuple[list[bytes], collections.Counter[str]]]:
    """Masks and encodes a shard, a batch at a time.

    A slice has the sequences of all chunks and repetitions in order, and their
    keys.

    Yields:
        Serialized records and their counts.
    """
    vocabulary, settings = job.vocabulary, job.settings
    rng = _generator(_FOR_SHARD, job.seed, shard)
    for keys, sequences in slices:
        order = np.argsort(keys, kind="stable")
        for start in range(0, len(order), _SEQUENCES):
            batch = sequences.take(order[start : start + _SEQUENCES])
            features = pretraining_rows.features(
                batch, vocabulary, settings, rng
            )
            counts = pretraining_rows.statistics(features, vocabulary)
            lengths = batch.lengths(vocabulary.template)
            counts.update(_count_lengths(lengths, settings.max_seq_length))
            yield wire_format.encode(features), counts


def _count_lengths(lengths: np.ndarray, longest: int) -> dict[str, int]:
    width = math.ceil(longest / _LENGTHS)
    numbers = np.bincount(-(-lengths // width))
    return {
        f"{LENGTH}{min(i * width, longest)}": int(number)
        for i, number in enumerate(numbers)
        if number
    }
