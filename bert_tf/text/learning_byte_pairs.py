"""Learns a byte-level BPE vocabulary, as RoBERTa has it, from text.

The `tokenizers` library finds the words and merges the most frequent pair of
tokens again and again.
"""

import re
from collections.abc import Iterable, Mapping

from bert_tf.errors import InputError
from bert_tf.text import learning
from bert_tf.vocabularies import byte_pair_files, byte_pairs, tokenizer_json

_RESERVED = (*byte_pairs.FIRST, byte_pairs.MASK)
# Strings between spaces, each with the space before it.
_STRINGS = re.compile(" +(?= [^ ])| ?[^ ]+| +")


def count_words(
    texts: Iterable[str], max_words: int = learning.MAX_WORDS
) -> learning.Counts:
    """Counts the words of lines or paragraphs, in the spelling of tokens.

    Beyond `max_words` distinct words, the rarest are dropped, starting with
    those seen once.
    """
    rule = byte_pairs.library().pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = learning.Counts()
    for strings in learning.count_strings(texts, _STRINGS.findall):
        for string, count in strings.items():
            valid = string.encode("utf-8", "ignore").decode()
            for word, _ in rule.pre_tokenize_str(valid):
                words[word] += count
        words = learning.without_rarest(words, max_words)
    return words


def check_room(vocab_size: int) -> None:
    """Raises InputError if `vocab_size` has no room for all bytes."""
    least = len(_RESERVED) + len(byte_pair_files.BYTES)
    if vocab_size < least:
        raise InputError(
            f"Byte pairs have {least} tokens at least: {len(_RESERVED)} "
            "special ones and the bytes. Make `vocab_size` larger. "
            f"Received: vocab_size={vocab_size}"
        )


def learn(
    words: Mapping[str, int], vocab_size: int, min_frequency: int = 2
) -> byte_pairs.BytePairs:
    """Learns up to `vocab_size` tokens, with the special tokens of RoBERTa.

    Adjacent tokens that occur together `min_frequency` times are merged. Equal
    arguments give equal vocabularies. Raises InputError if there are no words.
    """
    check_room(vocab_size)
    if not words:
        raise InputError("The text holds no words")
    made = byte_pairs.library()
    tokenizer = made.Tokenizer(made.models.BPE())
    tokenizer.pre_tokenizer = made.pre_tokenizers.WhitespaceSplit()
    trainer = made.trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=min_frequency,
        # Equally frequent pairs are merged in the order of their ids, which is
        # this order.
        special_tokens=[*byte_pairs.FIRST, *byte_pair_files.BYTES],
        show_progress=False,
    )
    tokenizer.train_from_iterator(learning.copies(words), trainer)
    ids = tokenizer.get_vocab()
    pieces = sorted(ids, key=lambda piece: ids[piece])
    # The library only exposes the merges in the saved model.
    merges = tokenizer_json.merges(tokenizer.to_str())
    return byte_pairs.BytePairs((*pieces, byte_pairs.MASK), merges)
