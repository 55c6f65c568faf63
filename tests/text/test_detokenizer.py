"""Tokens back to texts, for each kind of vocabulary."""

from bert_tf.text import (
    detokenizer,
    learning_byte_pairs,
    learning_sentence_pieces,
    text_graph,
)
from bert_tf.vocabularies import sentence_pieces, symbols, word_pieces

import sentencepiece
import tensorflow as tf

TEXTS = [
    "The cat's house, at 10 o'clock.",
    "Zwölf Boxkämpfer jagen Viktor (quer) über den Sylter Deich!",
    "naïve café 我们 😀 end",
]


def joined(vocabulary, texts, add=()):
    tokenizer = text_graph.make_tokenizer(vocabulary)
    ids = tokenizer.tokenize(tf.constant(texts)).to_tensor(
        vocabulary.special.pad.id
    )
    for token in add:
        ids = tf.pad(ids, [[0, 0], [0, 1]], constant_values=token)
    join = tf.function(detokenizer.Detokenizer(vocabulary))
    return [x.decode() for x in join(ids).numpy()], ids


def test_byte_pairs_give_the_text():
    words = learning_byte_pairs.count_words(TEXTS)
    vocabulary = learning_byte_pairs.learn(words, 300)
    special = vocabulary.special
    texts, _ = joined(vocabulary, TEXTS, [special.sep.id, special.pad.id])
    assert texts == TEXTS
    # Half a character.
    ids = [[vocabulary.ids["Ã"]]]
    (text,) = detokenizer.Detokenizer(vocabulary)(tf.constant(ids)).numpy()
    assert text.decode() == "\ufffd"


def test_sentence_pieces_give_what_sentencepiece_gives():
    words = learning_sentence_pieces.count_words(TEXTS * 3, False)
    model = learning_sentence_pieces.learn(words, 120)
    vocabulary = sentence_pieces.SentencePieces.parse({"": model}, False, "x")
    texts, ids = joined(vocabulary, TEXTS)
    other = sentencepiece.SentencePieceProcessor(model_proto=model)
    pads = {token.id for token in vars(vocabulary.special).values()}
    rows = [[int(x) for x in row if int(x) not in pads] for row in ids]
    assert texts == [other.decode(row) for row in rows]


def test_word_pieces_get_the_spaces_of_english():
    words = "it ' s , a cat ##s house ( at ) 10 o ##clock . what ? don t"
    vocabulary = word_pieces.WordPiece(
        ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words.split()), True
    )
    for text in (
        "it's, at 10, a cats house.",
        "what (a cat)? don't",
        "oclock",
    ):
        assert joined(vocabulary, [text])[0] == [text]


def test_symbols_have_spaces_between():
    vocabulary = symbols.Symbols((*symbols.SPECIAL, "b12", "c"))
    assert joined(vocabulary, ["c b12 c"])[0] == ["c b12 c"]
