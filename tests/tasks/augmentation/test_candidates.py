"""Candidates, compared with transformers' on the same weights."""

import json

from bert_tf import heads
from bert_tf.checkpoints import formats, trained_models
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.exporting import inference
from bert_tf.tasks.augmentation import candidates, passes, words
from bert_tf.vocabularies import symbols, word_pieces
from tests import huggingface_models, tiny_files, tiny_model
from tests.vocabularies import byte_pair_samples, sentence_models

import keras
import numpy as np
import pytest

torch = huggingface_models.torch
transformers = huggingface_models.transformers

_NUMBER, _LENGTH = 6, 40
# More words than one group of tokens holds, and words that are no candidates.
_MORE = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnpt"]
_VOCAB = [*tiny_files.VOCAB, *_MORE, *("##ed", "4th", "%", "[unused1]", "中")]
_TEXTS = [
    "the cats sat on the red bird , she said .",
    "rome",
    "",
    "3 . ?",
    "paris sees anna ! old dogs ran : yes it was so , bob , no one sang 中",
    "cat " * 60,
]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Returns a transformers folder, its model and its tokenizer."""
    folder = tmp_path_factory.mktemp("theirs")
    model = huggingface_models.make(
        "BertForMaskedLM", vocab_size=len(_VOCAB), max_position_embeddings=64
    )
    path = folder / "vocab.txt"
    path.write_text("".join(f"{x}\n" for x in _VOCAB))
    tokenizer = transformers.BertTokenizerFast(str(path))
    return huggingface_models.save(model, folder), model, tokenizer


@pytest.fixture(scope="module")
def ours(theirs):
    """Returns our model with the same weights, and its vocabulary."""
    source = formats.open_checkpoint(theirs[0])
    files = trained_models.ModelFiles.load(
        None, f"{theirs[0]}/vocab.txt", True, source
    )
    model = heads.BertMaskedLM(families.make(files.config))
    trained_models.restore(model, source, "masked_lm")
    return inference.make_inference_model(model), files.vocabulary


def _finder(vocabulary, model, length=_LENGTH, number=_NUMBER, *how):
    reader = words.Reader(vocabulary, {"the"}, length)
    finder = candidates.Finder(model, vocabulary, length, number, *how)
    return reader, finder


def _find(ours, texts, share=0.25, batch_size=3, length=_LENGTH):
    model, vocabulary = ours
    reader, finder = _finder(
        vocabulary, model, length, _NUMBER, batch_size, share
    )
    read = [reader.read(text) for text in texts]
    return read, finder.find(read)


def _expected(theirs, text, masked):
    """Returns the likeliest words for each masked word, by transformers."""
    _, model, tokenizer = theirs
    parts, done = [], 0
    for word in masked:
        parts += [text[done : word.start], " [MASK] "]
        done = word.end
    row = tokenizer(
        "".join([*parts, text[done:]]),
        text,
        return_tensors="pt",
        max_length=_LENGTH,
        truncation="only_second",
    )
    with torch.no_grad():
        logits = model(**row).logits[0]
    at = row["input_ids"][0] == tokenizer.mask_token_id
    found = []
    for word, scores in zip(masked, logits[at], strict=True):
        order = [_VOCAB[i] for i in torch.argsort(scores, descending=True)]
        fit = [x for x in order if x.isalpha() and x != word.text]
        found.append(sorted(fit[:_NUMBER], key=_VOCAB.index))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.1, 0.25])
@tiny_model.untraced()
def test_candidates_are_transformers_likeliest(share, theirs, ours):
    # The last text has no room for a second one: see test_fill_mask.
    texts = _TEXTS[:-1]
    read, found = _find(ours, texts, share)
    for text, of_text in zip(read, found, strict=True):
        for numbers in passes.shares(text, ours[1], _LENGTH, share):
            masked = [text.words[i] for i in numbers]
            expected = _expected(theirs, text.text, masked)
            assert [of_text[i] for i in numbers] == expected
        assert len(of_text) == len(text.words)


@pytest.mark.slow
@tiny_model.untraced()
def test_fill_mask(theirs, ours):
    """A text without room for a second one, compared with the pipeline."""
    _, model, tokenizer = theirs
    text = "she said no dog sat on old red fish ."
    length = 12
    (read,), (found,) = _find(ours, [text], 0.0, length=length)
    pipeline = transformers.pipeline(
        "fill-mask", model=model, tokenizer=tokenizer, top_k=len(_VOCAB)
    )
    assert len(read.words) == 9
    for word, chosen in zip(read.words, found, strict=True):
        masked = f"{text[: word.start]}[MASK]{text[word.end :]}"
        order = [_VOCAB[x["token"]] for x in pipeline(masked)]
        fit = [x for x in order if x.isalpha() and x != word.text]
        assert chosen == sorted(fit[:_NUMBER], key=_VOCAB.index)


@pytest.mark.slow
@tiny_model.untraced()
def test_batches_of_any_size_find_the_same(ours):
    (*_, read), found = _find(ours, _TEXTS, batch_size=1)
    for batch_size in (5, 64):
        assert _find(ours, _TEXTS, batch_size=batch_size)[1] == found
    # Long texts have candidates up to the maximum length.
    assert len(found[-1]) == len(read.words) == _LENGTH - 2
    assert all(len(x) == _NUMBER for x in found[-1])


@pytest.mark.slow
def test_texts_that_are_done_are_told(ours):
    reader, finder = _finder(ours[1], ours[0], _LENGTH, _NUMBER, 2, 0.05)
    told: list[int] = []
    finder.find([reader.read(text) for text in _TEXTS], told.append)
    # Two texts have no words at all.
    assert (told[0], sum(told)) == (2, len(_TEXTS))
    assert len(told) > 4


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("Rome", ["Cat", "A", "École"]),
        ("ROME", ["CAT", "A", "ÉCOLE"]),
        ("A", ["Cat", "A", "École"]),
        ("rome", ["cat", "a", "école"]),
    ],
)
def test_case_of_the_word(word, wanted):
    assert candidates.in_case(word, ["cat", "a", "école"]) == wanted


class _Fixed:
    """A model that prefers tokens in the order of their ids."""

    def __init__(self, size):
        self._scores = -np.arange(size, dtype=np.float32)

    def __call__(self, inputs):
        places = keras.ops.cast(inputs["masked_lm_positions"], "float32")
        return 0 * places[:, :, None] + self._scores


def _of_pieces(pieces, text, number, lower):
    vocab = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces.split())
    vocabulary = word_pieces.WordPiece(vocab, lower)
    reader, finder = _finder(vocabulary, _Fixed(len(vocab)), 16, number, 4)
    return finder.find([reader.read(text)])[0]


def test_case_of_candidates():
    # The word itself is left out in every casing.
    pieces = "Film FILM film ##s movie Show , 9 set"
    assert _of_pieces(pieces, "FILM films", 3, False) == [
        ["movie", "Show", "set"],
        ["Film", "FILM", "film"],
    ]
    # The vocabulary does not have the words.
    assert _of_pieces("film movie show set", "Film Café", 2, True) == [
        ["Movie", "Show"],
        ["Film", "Movie"],
    ]


def test_too_few_words():
    with pytest.raises(InputError, match=r"has 3 whole words, and --candid"):
        _of_pieces("film movie show ##s , 9", "film", 3, True)


def test_a_vocabulary_that_masks_nothing():
    vocabulary = word_pieces.WordPiece(("[UNK]", "[CLS]", "[SEP]", "a"), True)
    with pytest.raises(InputError, match=r"has no token \[MASK\]"):
        candidates.Finder(_Fixed(4), vocabulary, 16, 1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vocabulary", "shape"),
    [
        (byte_pair_samples.vocabulary(), {"model_type": "roberta"}),
        (sentence_models.vocabulary(), {"model_type": "albert"}),
    ],
    ids=["byte pairs", "sentence pieces"],
)
@tiny_model.untraced()
def test_other_families_and_vocabularies(vocabulary, shape):
    """With random weights: candidates are words, other than the text's."""
    keras.utils.set_random_seed(1)
    sizes = {
        "vocab_size": len(vocabulary.pieces),
        "max_position_embeddings": 80,
        "type_vocab_size": 1 if shape["model_type"] == "roberta" else 2,
    }
    values = json.loads(tiny_files.CONFIG.to_json()) | sizes | shape
    config = families.from_values(values)
    model = inference.make_inference_model(
        heads.BertMaskedLM(families.make(config))
    )
    text = 'The "file", given a name, isn\'t read.'
    read, (found,) = _find((model, vocabulary), [text], length=64)
    assert len(found) >= 5
    for word, chosen in zip(read[0].words, found, strict=True):
        assert len(set(chosen)) == _NUMBER
        assert all(x.isalpha() and x.lower() != word.text for x in chosen)


def test_highest_of_groups_are_the_highest():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=[50, 1000]).astype(np.float32)
    scores[:, rng.random(1000) < 0.5] = -np.inf
    found = candidates._best(scores, 1000, 7).numpy()
    assert (found == np.argsort(-scores, axis=1)[:, :7]).all()


def test_symbols_are_words_as_they_are_written():
    names = "i10 I10 E11.9 é LOAD_CONST:int the"
    vocab = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *names.split())
    vocabulary = symbols.Symbols(vocab)
    reader, finder = _finder(vocabulary, _Fixed(len(vocab)), 16, 3, 4)
    text = reader.read("I10  E11.9\tnew the")
    assert [x.text for x in text.words] == ["I10", "E11.9", "new"]
    assert finder.find([text]) == [
        [
            ["i10", "E11.9", "é"],
            ["i10", "I10", "é"],
            ["i10", "I10", "E11.9"],
        ]
    ]
