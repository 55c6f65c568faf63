"""The characters of an ELMo, as a vocabulary: word_characters.txt.

A token is a byte of a word in UTF-8, or the mark `<w>`, which begins each word.
So there is one id for each token, as the package expects, and a sequence spells
all words. The encoder joins the tokens of each word; see elmo.py.

Released weights have the same ids: the bytes, 0 to 255, and five marks. In
batches of bilm-tf they are larger by 1.

Words are separated by white space, which is Python's. Nothing is normalized.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Self

from bert_tf import tokenization, vocabularies
from bert_tf.errors import InputError
from bert_tf.vocabularies import vocabulary

import numpy as np
from etils import epath

FILE = "word_characters.txt"
# The ids after the bytes: marks around a sentence and a word, and padding.
START, STOP, WORD, END, PAD = range(256, 261)
TOKENS = (
    *(chr(i) if 32 < i < 127 else f"<0x{i:02X}>" for i in range(START)),
    *("<S>", "</S>", "<w>", "</w>", "<pad>"),
)
CONTENTS = {FILE: "".join(f"{token}\n" for token in TOKENS).encode()}
_IDS = {token: i for i, token in enumerate(TOKENS)}
_WORD = re.compile(r"\S+")


class Tokenizer:
    """Spells the words of texts: the reference of other tokenizers."""

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of a text."""
        return [token.text for token in self.tokenize_with_offsets(text)]

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the tokens; each has the offsets of its character.

        A mark has the offsets of the first character of its word.
        """
        tokens, text = [], tokenization.convert_to_unicode(text)
        for word in _WORD.finditer(text):
            for i, char in enumerate(word.group(), word.start()):
                ids = [WORD] * (i == word.start())
                ids += char.encode("utf-8", "ignore")
                tokens += [tokenization.Token(TOKENS[x], i, i + 1) for x in ids]
        return tokens

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens."""
        return [_IDS[x] for x in tokens]


class BulkTokenizer:
    """Spells the words of large amounts of text."""

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns all ids [N] int32, and the number for each text [T]."""
        rows = [
            [
                i
                for word in _WORD.findall(text)
                for i in (WORD, *word.encode("utf-8", "ignore"))
            ]
            for text in texts
        ]
        ids = np.array([i for row in rows for i in row], np.int32)
        return ids, np.array([len(row) for row in rows])


@dataclasses.dataclass(frozen=True)
class WordCharacters(vocabulary.Vocabulary):
    """The bytes and marks, the same for all models."""

    kind: ClassVar[str] = "word_characters"
    graph_module: ClassVar[str] = "bert_tf.contrib.graph.graph_word_characters"

    @classmethod
    def of_contents(
        cls, contents: Mapping[str, bytes], do_lower_case: bool, name: str
    ) -> Self:
        """Checks the file; text keeps its case."""
        del do_lower_case
        if contents[FILE] != CONTENTS[FILE]:
            raise InputError(
                f"{name}: the characters of an ELMo are always the same "
                f"{len(TOKENS)} lines. Take the {FILE} that a run writes. "
                f"Received: {len(contents[FILE].splitlines())} other lines"
            )
        return cls(TOKENS)

    @property
    def own_files(self) -> dict[str, bytes]:
        """The word_characters.txt."""
        return dict(CONTENTS)

    @functools.cached_property
    def special(self) -> vocabulary.Special:
        """The marks; a word without characters is the mark `<w>` alone."""
        pad, unk, cls, sep = (
            vocabulary.SpecialToken(TOKENS[i], i)
            for i in (PAD, WORD, START, STOP)
        )
        mask = vocabulary.SpecialToken("<mask>", -1)
        return vocabulary.Special(pad, unk, cls, sep, mask)

    @functools.cached_property
    def template(self) -> vocabulary.Template:
        """Sentences in `<S>` and `</S>`, which are words of one character."""
        before, after = (WORD, START), (WORD, STOP)
        return vocabulary.Template(
            before, (*after, *before), after, segments=(0, 1), pooled=0
        )

    @property
    def continues(self) -> np.ndarray:
        """[V] bool, whether a token continues the word before it: a byte."""
        return np.arange(len(TOKENS)) < START

    @property
    def spellings(self) -> list[vocabulary.Spelling]:
        """The names of the tokens: bytes alone are no text."""
        return [vocabulary.Spelling(token, None) for token in TOKENS]

    def own_tokenizer(self) -> Tokenizer:
        """Creates the tokenizer in Python."""
        return Tokenizer()

    def own_bulk_tokenizer(self) -> BulkTokenizer:
        """Creates the tokenizer for large amounts of text."""
        return BulkTokenizer()


def open_file(path: epath.PathLike, say: bool) -> dict[str, bytes]:
    """Reads the file, which is checked when it is parsed."""
    del say
    return {FILE: epath.Path(path).read_bytes()}


vocabularies.register(
    WordCharacters.kind,
    vocabularies.Kind(
        files=(FILE,),
        endings=(),
        open=open_file,
        read=WordCharacters.of_contents,
    ),
)
