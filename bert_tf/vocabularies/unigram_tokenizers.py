"""SentencePiece vocabularies as tokenizers of the library `tokenizers`.

`make` follows the rules of our tokenizer. `forms` also has the rules of
transformers, whose tokens differ for a few texts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from bert_tf.vocabularies import sentence_models, unigram_json
from bert_tf.vocabularies.sentence_pieces import SentencePieces


def make(vocabulary: SentencePieces) -> Any:
    """Returns the tokenizer with the rules of a vocabulary.

    It has no special tokens around texts, and no added tokens.
    """
    # Imported where it is used, because it is slow to import.
    import tokenizers

    entries = vocabulary.proto.pieces[: len(vocabulary.own_pieces)]
    meta = {entries[0].UNKNOWN, entries[0].CONTROL}
    scores = [(x.piece, _score(x, vocabulary.cuts_numbers)) for x in entries]
    unknown = vocabulary.special.unk.id
    made = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, unknown))
    made.normalizer = _normalizer(vocabulary)
    made.pre_tokenizer = _words()
    made.decoder = tokenizers.decoders.Metaspace(**_SPACE)
    made.add_special_tokens([x.piece for x in entries if x.type in meta])
    return made


# Tolerance of scores, which some files store in single precision.
_ROUNDING = 1e-3
_SPACE: dict[str, Any] = {
    "replacement": sentence_models.SPACE,
    "prepend_scheme": "always",
    "split": True,
}


def _words() -> Any:
    from tokenizers import pre_tokenizers

    spaces = pre_tokenizers.Metaspace(**_SPACE)
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), spaces])


def _score(entry: Any, cuts_numbers: bool) -> float:
    """Returns a token's score, lowered if text must never contain the token."""
    is_text = entry.type in (entry.NORMAL, entry.USER_DEFINED)
    is_cut = cuts_numbers and unigram_json.is_number(entry.piece)
    is_taken = is_text and not is_cut
    return entry.score - (0 if is_taken else unigram_json.PENALTY)


def _normalizer(vocabulary: SentencePieces) -> Any:
    import tokenizers

    # All joined characters that our normalization leaves for the model, most of
    # them Hangul, are composed as in NFC.
    composes = vocabulary.composes
    charsmap = vocabulary.proto.normalizer_spec.precompiled_charsmap
    if vocabulary.settings:
        steps = unigram_json.QUOTE_STEPS if vocabulary.quotes else []
        lower = vocabulary.do_lower_case
        steps = steps + unigram_json.steps(lower, charsmap, composes)
    else:
        steps = unigram_json.model_steps(charsmap, composes)
    # The library reads steps only as part of a tokenizer.
    found = {
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["", 0.0]]},
    }
    return tokenizers.Tokenizer.from_str(json.dumps(found)).normalizer


# ---- Forms of other files ----------------------------------------------------


def has_forms(vocabulary: Any) -> TypeGuard[SentencePieces]:
    """Whether `forms` knows this kind of vocabulary."""
    return isinstance(vocabulary, SentencePieces)


def has_scores(
    found: Mapping[str, Any], vocabulary: SentencePieces, ids: Iterable[int]
) -> bool:
    """Whether a tokenizer.json has the scores of a vocabulary for some tokens.

    Tokens that no text must contain may have a lower score.
    """
    model, entries = found["model"], vocabulary.proto.pieces
    unknown = vocabulary.special.unk.id
    lower = (
        entries[x].score - model["vocab"][x][1]
        for x in {*ids} - {unknown}
        if x < len(model["vocab"])
    )
    return model.get("unk_id") == unknown and all(
        min(abs(x), abs(x - unigram_json.PENALTY)) < _ROUNDING for x in lower
    )


def forms(vocabulary: SentencePieces, model: Any) -> Iterator[Any]:
    """Yields the tokenizers that folders may have for a vocabulary.

    The last one is ours. The others come from versions of transformers, which
    treat spaces at the end of a text differently. `model` is the model of the
    library.
    """
    from tokenizers import Regex, Tokenizer, normalizers

    steps: list[Any] = []
    if vocabulary.settings:
        steps += [normalizers.Replace(x, '"') for x in ("``", "''")]
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
        steps += [normalizers.Lowercase()] * vocabulary.do_lower_case
    charsmap = vocabulary.proto.normalizer_spec.precompiled_charsmap
    if charsmap:
        steps.append(normalizers.Precompiled(charsmap))
    spaces = Regex(" {2,}")
    strip = normalizers.Strip(left=False, right=True)
    words = _words()
    for rules, split in (
        (steps, words),
        ([*steps, strip, normalizers.Replace(spaces, "▁")], words[1]),
        ([*steps, normalizers.Replace(spaces, " ")], words[1]),
        ([_normalizer(vocabulary)], words),
    ):
        made = Tokenizer(model)
        made.normalizer = normalizers.Sequence(rules)
        made.pre_tokenizer = split
        yield made
