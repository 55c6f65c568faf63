from bert_tf.pretraining_data import word_lists
from bert_tf.vocabularies import bulk as bulk_tokenization

import numpy as np
import pytest

_CHARACTERS = "我在北京大学学习自然语言处理的研究生"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bert", "play", "##ing"]
PIECES += ["t", "、", *dict.fromkeys(_CHARACTERS)]


@pytest.fixture(name="tokenize")
def _tokenize():
    vocab = {piece: index for index, piece in enumerate(PIECES)}
    return bulk_tokenization.BulkTokenizer(vocab, True).tokenize


def words_of(words, texts, tokenize):
    """Returns the texts as lists of words."""
    tokens, lengths = tokenize(texts)
    pieces = [PIECES[token] for token in tokens]
    starts = np.array([not piece.startswith("##") for piece in pieces])
    joined = word_lists.join(words, texts, tokens, lengths, starts)
    found: list[list[str]] = []
    ends = set(np.cumsum([0, *lengths]).tolist())
    for i, (piece, begins) in enumerate(zip(pieces, joined, strict=True)):
        if i in ends:
            found.append([])
        if begins:
            found[-1].append(piece)
        else:
            found[-1][-1] += piece
    return found


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


class TestWordList:
    def test_longest_match(self, tokenize, tmp_path):
        text = "北京\n北京大学 1024\n大学\n自然语言\n语言处理\n"
        words = word_lists.WordList(write(tmp_path / "words", text), tokenize)
        texts = ["我在北京大学学习", "自然语言处理、北京的大学"]
        assert words_of(words, texts, tokenize) == [
            ["我", "在", "北京大学", "学", "习"],
            ["自然语言", "处", "理", "、", "北京", "的", "大学"],
        ]
        # Words do not extend into the next text.
        words = word_lists.WordList(write(tmp_path / "w", "北京"), tokenize)
        found = words_of(words, ["在北", "京"], tokenize)
        assert found == [["在", "北"], ["京"]]

    def test_other_scripts(self, tokenize, tmp_path):
        # As tokenized: lower-cased, and whole words only.
        path = write(tmp_path / "words", "T在\nplay\nBERT play\n")
        words = word_lists.WordList(path, tokenize)
        found = words_of(words, ["t在 Playing bert play"], tokenize)
        assert found == [["t在", "play##ing", "bert", "play"]]


class TestSegmenter:
    def test_splits_each_text(self, tokenize, tmp_path, monkeypatch):
        (tmp_path / "my_words.py").write_text(
            "def cut(text):\n"
            "    return (text[i : i + 2] for i in range(0, len(text), 2))\n"
            "def numbers(text):\n"
            "    return [1]\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        words = word_lists.Segmenter("my_words:cut", tokenize)
        found = words_of(words, ["我在北京", "", "京我在北"], tokenize)
        assert found == [["我在", "北京"], ["京我", "在北"]]
        words = word_lists.Segmenter("my_words:numbers", tokenize)
        with pytest.raises(ValueError, match="my_words:numbers must return st"):
            words_of(words, ["我"], tokenize)

    def test_forgets_words_beyond_the_limit(self, tokenize, monkeypatch):
        monkeypatch.setattr(word_lists, "_MAX_KNOWN", 4)
        words = word_lists.Segmenter("builtins:list", tokenize)
        for text in ("我在北京", "大学学习", "我在大学", "自然语言"):
            words.of_text(text)
            assert len(words._known) <= 8
