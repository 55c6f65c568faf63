"""Flags for selecting the words to mask when records are created.

The names of ALBERT's script are accepted as aliases.
"""

from typing import Any

from bert_tf.errors import InputError
from bert_tf.flags import flag_sections
from bert_tf.pretraining_data import pretraining_sequences

from absl import flags

_MASKS = flag_sections.Section("Masks", only_with="!show")
_SETTINGS = pretraining_sequences.Settings

_MASKS.define(_SETTINGS, "max_predictions_per_seq")
_MASKS.define(_SETTINGS, "masking", default=None)
DO_WHOLE_WORD_MASK = _MASKS.boolean(
    "do_whole_word_mask", False, "The same as --masking=whole_word."
)
_MASKS.define(_SETTINGS, "ngram", default=None)
_MASKS.define(_SETTINGS, "favor_shorter_ngram")
DO_PERMUTATION = _MASKS.boolean(
    "do_permutation",
    False,
    "A flag of ALBERT's script that is not supported. Must be false.",
    rare=True,
)
# Flags that select what is masked together.
POLICIES = ("masking", "ngram", DO_WHOLE_WORD_MASK.name)
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
_MASKS.define(_SETTINGS, "dynamic_masking", "masked_lm_prob")
_MASKS.define(_SETTINGS, "mask_share", "random_share")


def policy() -> str:
    """Returns the masking policy."""
    if DO_PERMUTATION.value:
        raise InputError(
            "--do_permutation, by which ALBERT's script shuffles some of the "
            "tokens, is not in its paper and not here: leave it out, or give a "
            "larger --random_share. Received: do_permutation=true"
        )
    given, longest = flags.FLAGS.masking, flags.FLAGS.ngram
    if longest is not None:
        if given not in (None, "ngram"):
            raise InputError(
                "--ngram means --masking=ngram: leave one out. Received: "
                f"masking={given}, ngram={longest}"
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


def words() -> dict[str, Any]:
    """Returns the fields of a job that define words of several tokens."""
    word_list, segmenter = WORD_LIST.value or "", SEGMENTER.value or ""
    if word_list and segmenter:
        raise InputError(
            "Give either --word_list or --segmenter. Received: "
            f"word_list={word_list}, segmenter={segmenter}"
        )
    return {"word_list": word_list, "segmenter": segmenter}
