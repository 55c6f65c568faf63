"""Flags for selecting the words to mask when records are created.

The names of ALBERT's script are accepted as aliases.
"""

from typing import Any

from bert_tf import options
from bert_tf.errors import InputError
from bert_tf.flags import flag_sections

from absl import flags

# More than anyone needs; much larger values would never finish.
_MOST_WORDS = 100

_MASKS = flag_sections.Section("Masks", only_with="!show")

MAX_PREDICTIONS_PER_SEQ = _MASKS.integer(
    "max_predictions_per_seq", 20, "Max number of masked tokens per sequence."
)
MASKING = _MASKS.choice(
    "masking",
    None,
    options.MASKING_POLICIES,
    "Unit of masking: token (default), whole_word, span (several consecutive "
    "words, as in SpanBERT) or ngram (one to three consecutive words, as in "
    "ALBERT).",
)
DO_WHOLE_WORD_MASK = _MASKS.boolean(
    "do_whole_word_mask", False, "The same as --masking=whole_word."
)
NGRAM = _MASKS.integer(
    "ngram",
    None,
    "Max number of words in an n-gram, by default 3. Implies --masking=ngram.",
    least=1,
    most=_MOST_WORDS,
)
FAVOR_SHORTER_NGRAM = _MASKS.boolean(
    "favor_shorter_ngram",
    True,
    "Whether n words are drawn with a share of 1/n; false turns the shares "
    "round, so that the longest n-grams are the likeliest.",
    only_with=("masking=ngram", "ngram"),
    rare=True,
)
DO_PERMUTATION = _MASKS.boolean(
    "do_permutation",
    False,
    "ALBERT's, which its paper does not have: false only.",
    rare=True,
)
_OF_WORDS = (
    "do_whole_word_mask",
    "masking=whole_word",
    "masking=span",
    "masking=ngram",
    "ngram",
)
WORD_LIST = _MASKS.input_path(
    "word_list",
    "For Chinese text: file of words of several characters, one per line, "
    "which --masking=whole_word, span and ngram mask as a whole.",
    only_with=_OF_WORDS,
)
SEGMENTER = _MASKS.string(
    "segmenter",
    None,
    "Function that splits a text into words, such as jieba:lcut. Replaces "
    "--word_list.",
    kind="MODULE:FUNCTION",
    only_with=_OF_WORDS,
)
DYNAMIC_MASKING = _MASKS.boolean(
    "dynamic_masking",
    False,
    "Leaves masking to run_pretraining.py, which draws new masks each time it "
    "reads a record. Use it with --dupe_factor=1.",
)
MASKED_LM_PROB = _MASKS.number(
    "masked_lm_prob", 0.15, "Share of the tokens to mask."
)
MASK_SHARE = _MASKS.number(
    "mask_share", 0.8, "Share of the masked tokens that become [MASK]."
)
RANDOM_SHARE = _MASKS.number(
    "random_share",
    0.1,
    "Share of the masked tokens that become a random token; the rest stay "
    "unchanged.",
)


def policy() -> str:
    """Returns the masking policy."""
    given = MASKING.value
    if NGRAM.value is not None:
        if given not in (None, "ngram"):
            raise InputError(
                "--ngram means --masking=ngram: leave one out. Received: "
                f"masking={given}, ngram={NGRAM.value}"
            )
        given = "ngram"
    whole_words = flags.FLAGS[DO_WHOLE_WORD_MASK.name]
    if given == "ngram":
        # In the original, this flag explicitly requests n-grams of tokens.
        if whole_words.present and not whole_words.value:
            raise InputError(
                "N-grams are of whole words: leave --do_whole_word_mask out. "
                "Received: do_whole_word_mask=false, masking=ngram"
            )
        return given
    if whole_words.value:
        if given not in (None, "whole_word"):
            raise InputError(
                "--do_whole_word_mask means --masking=whole_word: leave one "
                f"out. Received: masking={given}"
            )
        return "whole_word"
    return given or "token"


def settings() -> dict[str, Any]:
    """Returns the fields of the data creation settings that concern masks."""
    if DO_PERMUTATION.value:
        raise InputError(
            "--do_permutation, by which ALBERT's script shuffles some of the "
            "tokens, is not in its paper and not here: leave it out, or give a "
            "larger --random_share. Received: do_permutation=true"
        )
    longest = {} if NGRAM.value is None else {"ngram": NGRAM.value}
    return {
        "max_predictions_per_seq": MAX_PREDICTIONS_PER_SEQ.value,
        "masked_lm_prob": MASKED_LM_PROB.value,
        "masking": policy(),
        "favor_shorter_ngram": FAVOR_SHORTER_NGRAM.value,
        "dynamic_masking": DYNAMIC_MASKING.value,
        "mask_share": MASK_SHARE.value,
        "random_share": RANDOM_SHARE.value,
        **longest,
    }


def words() -> dict[str, Any]:
    """Returns the fields of a job that define words of several tokens."""
    word_list, segmenter = WORD_LIST.value or "", SEGMENTER.value or ""
    if word_list and segmenter:
        raise InputError(
            "Give either --word_list or --segmenter. Received: "
            f"word_list={word_list}, segmenter={segmenter}"
        )
    return {"word_list": word_list, "segmenter": segmenter}
