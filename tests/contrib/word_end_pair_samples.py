"""BPE with `</w>` learned for tests, by the library, as GPT-1's tokenizer."""

import functools
import json
import pathlib
import pydoc_data.topics
import unicodedata

from bert_tf.contrib import word_end_pairs

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

SPECIAL = ("_start_", "_delimiter_", "_classify_")
_OTHERS = (
    "größe naïve café 中文字中文 日本語 русский язык ελληνικά οδος 가나다 "
    "हिन्दी !!! ... aaaa aaaaaaaa 000 000000 עברית العربية ไทย \U0001f600 "
) * 20


@functools.cache
def reference() -> tokenizers.Tokenizer:
    """Returns the library's tokenizer with the parts of OpenAIGPTTokenizer."""
    model = models.BPE(unk_token="<unk>", end_of_word_suffix="</w>")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=["<unk>"],
        end_of_word_suffix="</w>",
        show_progress=False,
    )
    texts = [*pydoc_data.topics.topics.values(), _OTHERS]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


@functools.cache
def vocabulary() -> word_end_pairs.WordEndPairs:
    """Returns the vocabulary with the tokens for fine-tuning, not as added."""
    model = json.loads(reference().to_str())["model"]
    pieces = sorted(model["vocab"], key=lambda x: model["vocab"][x])
    merges = tuple((left, right) for left, right in model["merges"])
    return word_end_pairs.WordEndPairs((*pieces, *SPECIAL), merges)


def is_known(text: str) -> bool:
    """Whether the library's tables have all characters as Python's do.

    They are older, so a character counts if its category has not changed since
    Unicode 3.2.
    """
    category = unicodedata.category
    return all(unicodedata.ucd_3_2_0.category(x) == category(x) for x in text)


def write(folder: pathlib.Path) -> pathlib.Path:
    """Writes vocab.json and merges.txt; returns the path of the first."""
    for name, data in vocabulary().own_files.items():
        (folder / name).write_bytes(data)
    return folder / "vocab.json"
