"""SentencePiece in XLNet: nearly ALBERT's rules, with a different layout.

A sequence ends with `<cls>`. As in the original, `` and '' in texts become a
quotation mark, and a number that is cut off its comma gets no space inside a
word. The file has the same name as ALBERT's and is recognized by `<cls>`.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.storage import input_files
from bert_tf.vocabularies import (
    sentence_models,
    sentence_pieces,
    sentence_tokenizers,
    tokenizer_json,
    unigram_json,
)

from etils import epath

FILE = sentence_pieces.FILE
CLS, SEP, MASK = "<cls>", "<sep>", "<mask>"
PAD, UNKNOWN = sentence_pieces.PAD, sentence_pieces.UNKNOWN
# The first tokens, in the order of their ids.
FIRST = (UNKNOWN, "<s>", "</s>", CLS, SEP, PAD, MASK)
_OWNER = unigram_json.NO_ACCENTS._replace(name="an XLNet")
CLS_SEGMENT = 2
_START = 64  # Bytes of a model that contain its first four tokens.


def fits(contents: Mapping[str, bytes]) -> bool:
    """Whether `<cls>` is among the first tokens, unlike in ALBERT's models."""
    return CLS.encode() in contents[FILE][:_START]


def owns(found: Mapping[str, Any]) -> bool:
    """Whether the model of a tokenizer.json begins with XLNet's tokens."""
    vocab = found["model"].get("vocab")
    first = vocab[: len(FIRST)] if isinstance(vocab, list) else []
    return [x[0] if isinstance(x, list) and x else x for x in first] == [*FIRST]


def check(found: Mapping[str, Any], name: str) -> None:
    """Raises InputError if a tokenizer.json splits text differently."""
    unigram_json.check(found, name, _OWNER)


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads a model file unchanged, or builds a model from a tokenizer.json."""
    del say
    found = tokenizer_json.read(path)
    if found is not None:
        return {FILE: unigram_json.read(found, str(path), _OWNER)}
    return {FILE: input_files.read(path, "vocab_file")}


class XlnetSentencePieces(sentence_pieces.SentencePieces):
    """The tokens of a unigram SentencePiece model, in XLNet's layout."""

    kind: ClassVar[str] = "xlnet_sentence_pieces"
    # The mark with an accent has two characters. Normalization removes accents.
    quotes: ClassVar[tuple[str, str] | None] = ("``|''", '"\u0301')

    @classmethod
    def check_special(cls, pieces: Sequence[str], name: str) -> None:
        """Raises InputError unless the tokens begin as in an XLNet."""
        first = tuple(pieces[: len(FIRST)])
        if first != FIRST:
            raise InputError(
                f"{name}: the tokens of an XLNet must begin with "
                f"{' '.join(FIRST)}. Give the spiece.model of an XLNet. "
                f"Received: {len(pieces)} tokens, the first {list(first)}"
            )

    @property
    def tokenizer_kind(self) -> str:
        """ALBERT's, which the class attributes configure."""
        return sentence_pieces.SentencePieces.kind

    @functools.cached_property
    def special(self) -> vocabularies.Special:
        """The special tokens, which represent no text."""
        return vocabularies.Special(
            *(
                vocabularies.SpecialToken(x, FIRST.index(x))
                for x in (PAD, UNKNOWN, CLS, SEP, MASK)
            )
        )

    @functools.cached_property
    def template(self) -> vocabularies.Template:
        """`first <sep> <cls>`, or `first <sep> second <sep> <cls>`.

        `pooled` is 0 because <cls> has no fixed position, and the encoder finds
        it by itself. Only SQuAD 2.0 reads `pooled`: a question without an
        answer has it at the first token, for which the joint head takes <cls>.
        """
        sep, cls = self.special.sep.id, self.special.cls.id
        return vocabularies.Template(
            before=(),
            between=(sep,),
            after=(sep, cls),
            segments=(0, 1),
            pooled=0,
            last_segment=CLS_SEGMENT,
        )

    def parts_of_number(
        self, piece: str, parts: list[sentence_tokenizers.CutPiece]
    ) -> list[sentence_tokenizers.CutPiece]:
        """Leaves out the space before a number inside a word."""
        space = sentence_models.SPACE
        first, *others = parts
        text = self.pieces[first.id]
        if piece.startswith(space):
            return parts
        if text == space:
            return others
        unknown = self.special.unk.id
        number = self.ids.get(text.removeprefix(space), unknown)
        return [first._replace(id=number), *others]

    @property
    def spellings(self) -> list[vocabularies.Spelling]:
        """Without the space mark, which begins a word."""
        kinds = zip(super().spellings, self.proto.pieces, strict=True)
        return [
            spelling
            if entry.type in (entry.NORMAL, entry.USER_DEFINED)
            else vocabularies.Spelling(entry.piece, None)
            for spelling, entry in kinds
        ]


vocabularies.register(
    XlnetSentencePieces.kind,
    vocabularies.Kind(
        files=(FILE,),
        endings=(".model", ".spm"),
        open=open_file,
        read=XlnetSentencePieces.parse,
        tokenizer="Unigram",
        owns=owns,
        fits=fits,
        difference=sentence_pieces.difference,
        append=sentence_pieces.append,
        check=check,
    ),
)
