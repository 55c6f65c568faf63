"""Wrappers of a vocabulary's tokenizers that find its added tokens."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bert_tf import tokenization
from bert_tf.vocabularies import added_token_search, added_tokens

import numpy as np

if TYPE_CHECKING:
    from bert_tf.vocabularies.vocabulary import BulkTokenizer, Tokenizer


class AddedTokenizer:
    """Splits one text, in Python, by a tokenizer that knows no added tokens."""

    def __init__(
        self,
        plain: "Tokenizer",
        tokens: added_tokens.Tokens,
        found: Sequence[added_token_search.Search],
    ):
        self._plain, self._found = plain, found
        self._ids = {token.content: token.id for token in tokens}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of `text`."""
        tokens: list[str] = []
        for part in self._parts(text):
            if part.token is None:
                tokens += self._plain.tokenize(part.text)
            else:
                tokens.append(part.token.content)
        return tokens

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> list[tokenization.Token]:
        """Returns the tokens and the characters of `text` they come from."""
        tokens: list[tokenization.Token] = []
        for part in self._parts(text):
            found = (
                self._plain.tokenize_with_offsets(part.text)
                if part.token is None
                else [tokenization.Token(part.token.content, 0, len(part.text))]
            )
            tokens += [
                tokenization.Token(x.text, *part.bounds(x.start, x.end))
                for x in found
            ]
        return tokens

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens."""
        return [
            self._ids[token]
            if token in self._ids
            else self._plain.convert_tokens_to_ids([token])[0]
            for token in tokens
        ]

    def _parts(self, text: str | bytes) -> Iterator[added_token_search.Part]:
        text = tokenization.convert_to_unicode(text)
        return added_token_search.parts(self._found, text)


class AddedBulkTokenizer:
    """Splits many texts, by a tokenizer that knows no added tokens."""

    def __init__(
        self,
        plain: "BulkTokenizer",
        found: Sequence[added_token_search.Search],
    ):
        self._plain, self._found = plain, found

    def tokenize(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of all tokens [N] int32, and how many by text [T]."""
        found: list[str] = []
        before: list[int] = []  # the token before a part, or -1
        owner: list[int] = []  # the text of a part
        for number, text in enumerate(texts):
            last = -1
            for part in added_token_search.parts(self._found, text):
                if part.token is not None:
                    last = part.token.id
                    continue
                found.append(part.text)
                before.append(last)
                owner.append(number)
                last = -1
        ids, lengths = self._plain.tokenize(found)
        if len(found) == len(texts):
            return ids, lengths
        numbers = np.array(before, np.int32)
        is_token = numbers >= 0
        starts = np.cumsum(lengths) - lengths
        ids = np.insert(ids, starts[is_token], numbers[is_token])
        counts = np.zeros(len(texts), np.int64)
        np.add.at(counts, owner, lengths + is_token)
        return ids.astype(np.int32), counts
