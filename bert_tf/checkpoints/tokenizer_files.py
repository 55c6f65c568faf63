"""A vocabulary of any kind as the files of Hugging Face's transformers.

AutoTokenizer gives our ids with them, and lays out one text or two as we do.
Known to differ are:

- Text that has a special piece's name, such as "[SEP]": it gets that piece, as
  transformers looks for the names before all else. Ours are no text.
- Word pieces: a capital sigma at the end of a word becomes the small one that
  stands elsewhere, and private characters are left out.
- Sentence pieces: the rule of commas, that a piece which ends in a digit and a
  comma is cut anew, can't be said. Such pieces are never taken instead, as in
  transformers' own files. Of 20,000 lines of Wikipedia none differs with 8,000
  pieces and 209 differ with 30,000, three by ties. Were such pieces taken, they
  would be 243 and 926; were text cut between a digit and a comma, 472 and 701.
- Sentence pieces of XLM-R and CamemBERT: marks after a character that the model
  replaces, which the library drops, and several marks of one letter.
- Characters that are newer than the tables of the library `tokenizers`.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from bert_tf import extras, files, tokenization, vocab_files
from bert_tf.checkpoints import opened
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    Vocabulary,
    byte_pairs,
    fairseq_sentence_pieces,
    sentence_models,
    sentence_pieces,
    symbols,
    tokenizer_config,
    unigram_json,
    word_pieces,
)

TOKENIZER = "tokenizer.json"
_SPECIAL = "special_tokens_map.json"
_CONFIG = "tokenizer_config.json"


@dataclasses.dataclass(frozen=True)
class TokenizerFiles:
    """What transformers reads of a tokenizer beside the vocabulary.

    Attributes:
        tokenizer: The text of tokenizer.json.
        special: Name of a use -> the piece for it, such as `pad_token`.
        config: What else tokenizer_config.json says.
        tokenizer_class: The class that reads them and gives our ids.
        is_alone: Whether the kind's own files are left out, as transformers
            takes the ids in them for others.
    """

    tokenizer: str
    special: Mapping[str, str]
    config: Mapping[str, Any]
    tokenizer_class: str
    is_alone: bool = False


def write(
    folder: str,
    vocabulary: Vocabulary,
    max_length: int,
    tokenizer_class: str | None = None,
) -> bool:
    """Writes a vocabulary's own files and what AutoTokenizer looks for.

    Args:
        folder: Where to. It exists.
        vocabulary: Of any kind. Of one that is not in `WRITERS` only its own
            files are written.
        max_length: How many pieces a row has at most.
        tokenizer_class: The class of transformers, by default the kind's.

    Returns:
        Whether AutoTokenizer can read the folder.

    Raises:
        InputError: No word pieces stand for the ends of a row.
    """
    writer = WRITERS.get(vocabulary.kind)
    made = writer(vocabulary, max_length) if writer else None
    # Of a kind without a writer, no other file has what is added and set.
    own = vocabulary.own_files if made else vocabulary.files
    if made is not None and made.is_alone:
        own = {}
    for name, data in own.items():
        files.write_bytes(os.path.join(folder, name), data)
    if made is None:
        return False
    text = _with_added(made.tokenizer, vocabulary)
    files.write_text(os.path.join(folder, TOKENIZER), text)
    files.write_json(os.path.join(folder, _SPECIAL), made.special)
    config = {
        **made.special,
        **made.config,
        "tokenizer_class": tokenizer_class or made.tokenizer_class,
    }
    more = tokenizer_config.to_json(vocabulary.added, vocabulary.own_settings)
    config |= json.loads(more or b"{}")
    files.write_json(os.path.join(folder, _CONFIG), config)
    return True


def _with_added(tokenizer: str, vocabulary: Vocabulary) -> str:
    """Returns the text of a tokenizer.json with the added tokens."""
    if not vocabulary.added:
        return tokenizer
    made = _library()
    found = made.Tokenizer.from_str(tokenizer)
    for token in vocabulary.added:
        flags = dataclasses.asdict(token)
        del flags["id"]
        entry = made.AddedToken(flags.pop("content"), **flags)
        add = found.add_special_tokens if token.special else found.add_tokens
        add([entry])
    return found.to_str(pretty=True)


def _library() -> Any:
    extras.check("tokenizers", "huggingface", "Folders for transformers")
    # Of use here only, and slow to import.
    import tokenizers

    return tokenizers


# ---- Word pieces -------------------------------------------------------------


def _word_pieces(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles:
    made = _library()
    do_lower_case = vocabulary.settings["do_lower_case"]
    # With white space as in the file, where a piece has some.
    text = vocabulary.files[word_pieces.FILE].decode()
    ids = {piece: i for i, piece in enumerate(opened.lines(text))}
    cls, sep = vocab_files.CLS, vocab_files.SEP
    missing = [t for t in (cls, sep) if t not in ids]
    if missing:
        raise InputError(
            "A vocabulary must have the pieces [CLS] and [SEP], which every "
            "row begins and ends with; give another by --vocab_file. "
            f"Received: a vocabulary without {', '.join(missing)}"
        )
    tokenizer = made.Tokenizer(
        made.models.WordPiece(
            ids,
            unk_token=tokenization.UNKNOWN,
            max_input_chars_per_word=tokenization.MAX_CHARS_PER_WORD,
        )
    )
    settings = vocabulary.own_settings
    tokenizer.normalizer = made.normalizers.BertNormalizer(
        lowercase=do_lower_case,
        strip_accents=settings["strip_accents"],
        handle_chinese_chars=settings["tokenize_chinese_chars"],
    )
    tokenizer.pre_tokenizer = made.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = made.decoders.WordPiece()
    special = [t for t in tokenization.SPECIAL_TOKENS if t in ids]
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = made.processors.BertProcessing(
        (sep, ids[sep]), (cls, ids[cls])
    )
    return TokenizerFiles(
        tokenizer=tokenizer.to_str(pretty=True),
        special={f"{t[1:-1].lower()}_token": t for t in special},
        config={
            "do_lower_case": do_lower_case,
            "model_max_length": max_length,
            **settings,
        },
        tokenizer_class="BertTokenizer",
    )


# ---- Byte pairs --------------------------------------------------------------


def _byte_pairs(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles:
    # `WRITERS` goes by the kind.
    vocabulary = cast(byte_pairs.BytePairs, vocabulary)
    made = _library()
    special = vocabulary.special
    tokenizer = made.Tokenizer(
        made.models.BPE(dict(vocabulary.ids), list(vocabulary.merges))
    )
    tokenizer.pre_tokenizer = made.pre_tokenizers.ByteLevel(
        **vocabulary.own_settings
    )
    tokenizer.decoder = made.decoders.ByteLevel()
    tokenizer.add_special_tokens(list(byte_pairs.FIRST))
    has_mask = not vocabulary.missing
    if has_mask:
        # A hidden word's space belongs to it.
        mask = made.AddedToken(special.mask.text, lstrip=True, special=True)
        tokenizer.add_special_tokens([mask])
    tokenizer.post_processor = made.processors.RobertaProcessing(
        tuple(special.sep), tuple(special.cls), **vocabulary.own_settings
    )
    return TokenizerFiles(
        tokenizer=tokenizer.to_str(pretty=True),
        special={
            "bos_token": special.cls.text,
            "eos_token": special.sep.text,
            **_uses(vocabulary),
        },
        config={
            # The class would add a piece.
            **({} if has_mask else {"mask_token": None}),
            **vocabulary.own_settings,
            "errors": "replace",
            "model_max_length": max_length,
            "trim_offsets": True,
        },
        tokenizer_class="RobertaTokenizer",
    )


def _uses(vocabulary: Vocabulary) -> dict[str, str]:
    """Returns the special pieces by their use; a mask only if there is one."""
    special = vocabulary.special
    found = {
        "cls_token": special.cls,
        "mask_token": special.mask,
        "pad_token": special.pad,
        "sep_token": special.sep,
        "unk_token": special.unk,
    }
    # What fills up need not have its usual name.
    return {
        use: vocabulary.pieces[piece.id]
        for use, piece in found.items()
        if piece.id >= 0
    }


# ---- Sentence pieces ---------------------------------------------------------


def _sentence_pieces(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles:
    # `WRITERS` goes by the kind.
    vocabulary = cast(sentence_pieces.SentencePieces, vocabulary)
    made = _library()
    entries = list(vocabulary.proto.pieces)
    meta = {entries[0].UNKNOWN, entries[0].CONTROL}
    added = [i for i, entry in enumerate(entries) if entry.type in meta]
    # Without a casing the ids are fairseq's.
    casing = vocabulary.settings
    space = {
        "type": "Metaspace",
        "replacement": sentence_models.SPACE,
        "prepend_scheme": "always",
        "split": True,
    }
    words = [{"type": "WhitespaceSplit"}, space]
    found = {
        "version": "1.0",
        "added_tokens": [_added(i, entries[i].piece) for i in added],
        "normalizer": {"type": "Sequence", "normalizers": _steps(vocabulary)},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": words},
        "post_processor": _rows(vocabulary),
        "decoder": space,
        "model": {
            "type": "Unigram",
            "unk_id": vocabulary.special.unk.id,
            "vocab": [
                [entry.piece, _score(entry, vocabulary.cuts_numbers)]
                for entry in entries
            ],
            "byte_fallback": False,
        },
    }
    tokenizer = made.Tokenizer.from_str(json.dumps(found))
    return TokenizerFiles(
        tokenizer=tokenizer.to_str(pretty=True),
        special=_uses(vocabulary),
        config={
            **(casing | {"keep_accents": False} if casing else {}),
            "model_input_names": _inputs(vocabulary),
            "model_max_length": max_length,
        },
        # AlbertTokenizer would take its own steps instead of the file's.
        tokenizer_class="PreTrainedTokenizerFast",
        is_alone=not casing,
    )


def _score(entry: Any, cuts_numbers: bool) -> float:
    """Returns a score by which pieces that no text has are not found in it."""
    is_text = entry.type in (entry.NORMAL, entry.USER_DEFINED)
    is_cut = cuts_numbers and unigram_json.is_number(entry.piece)
    is_taken = is_text and not is_cut
    return entry.score - (0 if is_taken else unigram_json.PENALTY)


def _added(index: int, piece: str) -> dict[str, Any]:
    return {
        "id": index,
        "content": piece,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _steps(vocabulary: sentence_pieces.SentencePieces) -> list[dict[str, Any]]:
    rules = dict(sentence_models.rules(vocabulary.model))
    # Of the joined characters that our normalization leaves for the model all
    # are of NFC, most of them Hangul.
    composes = rules.get("\u1100\u1161") == "\uac00"
    charsmap = vocabulary.proto.normalizer_spec.precompiled_charsmap
    if not vocabulary.settings:
        return unigram_json.model_steps(charsmap, composes)
    return unigram_json.steps(vocabulary.do_lower_case, charsmap, composes)


def _inputs(vocabulary: Vocabulary) -> list[str]:
    first, second = vocabulary.template.segments
    segments = ["token_type_ids"] if first != second else []
    return ["input_ids", *segments, "attention_mask"]


def _rows(vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns the template of a row as the library has it."""
    template, pieces = vocabulary.template, vocabulary.pieces

    def special(ids: Sequence[int], text: int) -> list[dict[str, Any]]:
        number = template.segments[text]
        return [
            {"SpecialToken": {"id": pieces[x], "type_id": number}} for x in ids
        ]

    def text(name: str, text: int) -> dict[str, Any]:
        number = template.segments[text]
        return {"Sequence": {"id": name, "type_id": number}}

    first = [*special(template.before, 0), text("A", 0)]
    between = special(template.between, 0)
    used = {*template.before, *template.between, *template.after}
    return {
        "type": "TemplateProcessing",
        "single": [*first, *special(template.after, 0)],
        "pair": [
            *first,
            *between,
            text("B", 1),
            *special(template.after, 1),
        ],
        "special_tokens": {
            pieces[x]: {"id": pieces[x], "ids": [x], "tokens": [pieces[x]]}
            for x in sorted(used)
        },
    }


# ---- Symbols -----------------------------------------------------------------


def _symbols(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles:
    made = _library()
    special = vocabulary.special
    tokenizer = made.Tokenizer(
        made.models.WordLevel(dict(vocabulary.ids), special.unk.text)
    )
    tokenizer.pre_tokenizer = made.pre_tokenizers.Split(
        made.Regex(symbols.SPACES), "removed"
    )
    tokenizer.add_special_tokens(list(_uses(vocabulary).values()))
    tokenizer.post_processor = made.processors.BertProcessing(
        (special.sep.text, special.sep.id), (special.cls.text, special.cls.id)
    )
    return TokenizerFiles(
        tokenizer=tokenizer.to_str(pretty=True),
        special=_uses(vocabulary),
        config={
            "model_input_names": _inputs(vocabulary),
            "model_max_length": max_length,
        },
        tokenizer_class="PreTrainedTokenizerFast",
    )


# The kind of a vocabulary -> what makes its files.
WRITERS: dict[str, Callable[[Vocabulary, int], TokenizerFiles]] = {
    word_pieces.WordPiece.kind: _word_pieces,
    byte_pairs.BytePairs.kind: _byte_pairs,
    fairseq_sentence_pieces.FairseqSentencePieces.kind: _sentence_pieces,
    sentence_pieces.SentencePieces.kind: _sentence_pieces,
    symbols.Symbols.kind: _symbols,
}
