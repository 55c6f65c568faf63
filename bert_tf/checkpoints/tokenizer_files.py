"""Writes a vocabulary of any kind as files of Hugging Face's transformers.

With them, AutoTokenizer returns our ids and arranges one or two texts as here.
Known differences:

- Text with the name of a special token, such as "[SEP]", becomes this token, as
  transformers looks for these names first. Here they never come from text.
- WordPiece: a capital sigma at the end of a word becomes a non-final small
  sigma, and private-use characters are left out.
- SentencePiece: the files can't express the rule that a token which ends in a
  digit and a comma is split again. Instead, such tokens are never used, as in
  transformers' own files. Of 20,000 lines of Wikipedia, none differs with 8,000
  tokens and 209 differ with 30,000, three by ties. If such tokens were used,
  243 and 926 would differ; if text were split between a digit and a comma, 472
  and 701.
- SentencePiece of XLM-R and CamemBERT: marks after a character that the model
  replaces, which the library drops, and several marks of one letter.
- Characters that are newer than the tables of the library `tokenizers`.
"""

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from bert_tf import extras, files, tokenization, vocab_files
from bert_tf.errors import InputError
from bert_tf.vocabularies import (
    Vocabulary,
    added_tokens,
    byte_pairs,
    fairseq_sentence_pieces,
    sentence_pieces,
    tokenizer_config,
    tokenizer_json,
    unigram_tokenizers,
    word_pieces,
)


@dataclasses.dataclass(frozen=True)
class TokenizerFiles:
    """The files of a tokenizer for transformers, besides its vocabulary.

    Attributes:
        tokenizer: The `tokenizers.Tokenizer` that tokenizer.json describes.
        special: Name of a use, such as `pad_token` -> its token.
        config: Other settings in tokenizer_config.json.
        tokenizer_class: The class that reads them and returns our ids.
        own_files: The kind's own files, if transformers would misread the
            tokens or ids of the vocabulary's.
    """

    tokenizer: Any
    special: Mapping[str, str]
    config: Mapping[str, Any]
    tokenizer_class: str
    own_files: Mapping[str, bytes] | None = None


def write(
    folder: str,
    vocabulary: Vocabulary,
    max_length: int,
    tokenizer_class: str | None = None,
    keeps_end: bool = False,
) -> bool:
    """Writes a vocabulary's own files and AutoTokenizer's.

    Args:
        folder: An existing folder.
        vocabulary: A vocabulary of any kind. If its kind has no writer, only
            its own files are written.
        max_length: Max tokens of a sequence.
        tokenizer_class: The class of transformers, by default the kind's.
        keeps_end: Whether long texts are truncated at their start.

    Returns:
        Whether AutoTokenizer can read the folder.

    Raises:
        InputError: The vocabulary lacks the tokens at the ends of sequences.
    """
    made = make(vocabulary, max_length)
    # Of a kind without a writer, no other file has what is added and set.
    own: Mapping[str, bytes] = (
        vocabulary.own_files if made else vocabulary.files
    )
    if made is not None and made.own_files is not None:
        own = made.own_files
    for name, data in own.items():
        files.write_bytes(os.path.join(folder, name), data)
    if made is None:
        return False
    text = made.tokenizer.to_str(pretty=True)
    files.write_text(os.path.join(folder, tokenizer_json.FILE), text)
    files.write_json(
        os.path.join(folder, tokenizer_config.SPECIAL), made.special
    )
    config = {
        **made.special,
        **made.config,
        "tokenizer_class": tokenizer_class or made.tokenizer_class,
        **({"truncation_side": "left"} if keeps_end else {}),
    }
    more = tokenizer_config.to_json(vocabulary.added, vocabulary.own_settings)
    config |= json.loads(more or b"{}")
    files.write_json(os.path.join(folder, tokenizer_config.FILE), config)
    return True


def make(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles | None:
    """Returns the files of a vocabulary, None if no writer is for its kind.

    For the arguments and errors see `write`.
    """
    writer = find_writer(vocabulary)
    if writer is None:
        return None
    made = writer(vocabulary, max_length)
    add_tokens(made.tokenizer, vocabulary.added)
    return made


def add_tokens(tokenizer: Any, tokens: added_tokens.Tokens) -> None:
    """Adds the added tokens of a vocabulary to a tokenizer of the library."""
    made = _library()
    for token in tokens:
        flags = dataclasses.asdict(token)
        del flags["id"]
        entry = made.AddedToken(flags.pop("content"), **flags)
        add = (
            tokenizer.add_special_tokens
            if token.special
            else tokenizer.add_tokens
        )
        add([entry])


def _library() -> Any:
    extras.check("tokenizers", "huggingface", "Folders for transformers")
    # Of use here only, and slow to import.
    import tokenizers

    return tokenizers


# ---- WordPiece ---------------------------------------------------------------


def _word_pieces(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles:
    made = _library()
    do_lower_case = vocabulary.settings["do_lower_case"]
    vocabulary = cast(word_pieces.WordPiece, vocabulary)
    # The library reads white space around a token as part of it. Tokens of
    # white space alone, such as U+2028, stay.
    lines = vocab_files.lines(vocabulary.own_files[word_pieces.FILE])
    alone = ("", vocab_files.SUFFIX_INDICATOR)
    stripped = [x if x.strip() in alone else x.strip() for x in lines]
    own = stripped[: len(vocabulary.own_pieces)]
    ids = {piece: i for i, piece in enumerate(own)}
    cls, sep = vocab_files.CLS, vocab_files.SEP
    missing = [t for t in (cls, sep) if t not in ids]
    if missing:
        raise InputError(
            "A vocabulary must have the tokens [CLS] and [SEP], which every "
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
        tokenizer=tokenizer,
        special={
            # The class would add tokens. Padding is masked, and a word would be
            # found in texts before they are split.
            "pad_token": own[0] if own[0] in special else special[0],
            **{f"{t[1:-1].lower()}_token": t for t in special},
        },
        config={
            **({} if vocab_files.MASK in ids else {"mask_token": None}),
            "do_lower_case": do_lower_case,
            "model_max_length": max_length,
            **settings,
        },
        tokenizer_class="BertTokenizer",
        own_files={word_pieces.FILE: vocab_files.vocab_text(stripped).encode()},
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
        tokenizer=tokenizer,
        special={
            "bos_token": special.cls.text,
            "eos_token": special.sep.text,
            **_uses(vocabulary),
        },
        config={
            # The class would add a token.
            **({} if has_mask else {"mask_token": None}),
            **vocabulary.own_settings,
            "errors": "replace",
            "model_max_length": max_length,
            "trim_offsets": True,
        },
        tokenizer_class="RobertaTokenizer",
    )


def _uses(vocabulary: Vocabulary) -> dict[str, str]:
    """Returns the special tokens by their use; a mask only if there is one."""
    special = vocabulary.special
    found = {
        "cls_token": special.cls,
        "mask_token": special.mask,
        "pad_token": special.pad,
        "sep_token": special.sep,
        "unk_token": special.unk,
    }
    # The padding token may have an unusual name.
    return {
        use: vocabulary.pieces[piece.id]
        for use, piece in found.items()
        if piece.id >= 0
    }


# ---- SentencePiece -----------------------------------------------------------


def _sentence_pieces(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles:
    # `WRITERS` goes by the kind.
    vocabulary = cast(sentence_pieces.SentencePieces, vocabulary)
    tokenizer = unigram_tokenizers.make(vocabulary)
    tokenizer.post_processor = _rows(vocabulary)
    # Without a casing the ids are fairseq's.
    casing = vocabulary.settings
    return TokenizerFiles(
        tokenizer=tokenizer,
        special=_uses(vocabulary),
        config={
            **(casing | {"keep_accents": False} if casing else {}),
            "model_input_names": _inputs(vocabulary),
            "model_max_length": max_length,
            # Models that read the last token need it at the end.
            **({} if vocabulary.template.before else {"padding_side": "left"}),
        },
        # AlbertTokenizer would take its own steps instead of the file's.
        tokenizer_class="PreTrainedTokenizerFast",
        own_files=None if casing else {},
    )


def _inputs(vocabulary: Vocabulary) -> list[str]:
    first, second = vocabulary.template.segments
    segments = ["token_type_ids"] if first != second else []
    return ["input_ids", *segments, "attention_mask"]


def _rows(vocabulary: Vocabulary) -> Any:
    """Returns the template of a sequence as the library has it."""
    template, pieces = vocabulary.template, vocabulary.pieces
    first, second = template.segments

    def special(ids: Iterable[tuple[int, int]]) -> list[str]:
        return [f"{pieces[x]}:{segment}" for x, segment in ids]

    begin = special((x, first) for x in template.before)
    begin.append(f"$A:{first}")
    used = {*template.before, *template.between, *template.after}
    return _library().processors.TemplateProcessing(
        single=[*begin, *special(template.ending(first))],
        pair=[
            *begin,
            *special((x, first) for x in template.between),
            f"$B:{second}",
            *special(template.ending(second)),
        ],
        special_tokens=[(pieces[x], x) for x in sorted(used)],
    )


# ---- Other kinds -------------------------------------------------------------


def _by_library(vocabulary: Vocabulary, max_length: int) -> TokenizerFiles:
    tokenizer = vocabulary.library_tokenizer(_library())
    template, pieces = vocabulary.template, vocabulary.pieces
    ids = {*template.before, *template.between, *template.after}
    special = {*_uses(vocabulary).values(), *(pieces[x] for x in ids)}
    tokenizer.add_special_tokens(sorted(special, key=pieces.index))
    if ids:
        tokenizer.post_processor = _rows(vocabulary)
    return TokenizerFiles(
        tokenizer=tokenizer,
        special=_uses(vocabulary),
        config={
            "model_input_names": _inputs(vocabulary),
            "model_max_length": max_length,
        },
        tokenizer_class="PreTrainedTokenizerFast",
    )


Writer = Callable[[Vocabulary, int], TokenizerFiles]
# The kind of a vocabulary -> its writer.
WRITERS: dict[str, Writer] = {
    word_pieces.WordPiece.kind: _word_pieces,
    byte_pairs.BytePairs.kind: _byte_pairs,
    fairseq_sentence_pieces.FairseqSentencePieces.kind: _sentence_pieces,
    sentence_pieces.SentencePieces.kind: _sentence_pieces,
}


def find_writer(vocabulary: Vocabulary) -> Writer | None:
    """Returns the writer for a kind of vocabulary, or None."""
    kind = type(vocabulary)
    has_own = kind.library_tokenizer is not Vocabulary.library_tokenizer
    own = _by_library if has_own else None
    return WRITERS.get(vocabulary.tokenizer_kind, own)
