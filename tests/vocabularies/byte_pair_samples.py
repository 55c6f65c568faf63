"""Byte pairs learned for tests, and the reference tokenizer."""

import functools
import json
import pathlib
import pydoc_data.topics

from bert_tf.vocabularies import byte_pairs

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
# More than English, so that bytes of other scripts, spaces and marks merge.
_OTHERS = (
    "Größe naïve café 中文字中文 日本語 русский язык ελληνικά 가나다 \u3000 "
    "      \n\n\n\n ''' ... !!! aaaa aaaaaaaa 000 000000 \U0001f600\U0001f600 "
) * 20


@functools.cache
def learned(size: int = 3000) -> dict:
    """Returns the JSON of the library's tokenizer, learned from English."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=size - 1,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [*pydoc_data.topics.topics.values(), _OTHERS]
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens(["<mask>"])
    return json.loads(tokenizer.to_str())


def files(size: int = 3000) -> dict[str, bytes]:
    """Returns the tokenizer's two files, as RoBERTa has them."""
    model = learned(size)["model"]
    vocab = {**model["vocab"], "<mask>": len(model["vocab"])}
    merges = [x if isinstance(x, str) else " ".join(x) for x in model["merges"]]
    return {
        "vocab.json": json.dumps(vocab).encode(),
        "merges.txt": "\n".join(["#version: 0.2", *merges, ""]).encode(),
    }


def vocabulary(size: int = 3000) -> byte_pairs.BytePairs:
    """Returns the vocabulary of the two files."""
    return byte_pairs.BytePairs.parse(files(size), "byte_pairs")


@functools.cache
def reference(size: int = 3000) -> tokenizers.Tokenizer:
    """Returns the library's tokenizer, with offsets that exclude spaces."""
    found = learned(size)
    # Texts have no special tokens.
    found = {**found, "added_tokens": []}
    found["post_processor"] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    }
    return tokenizers.Tokenizer.from_str(json.dumps(found))


def write(folder: pathlib.Path, size: int = 3000) -> pathlib.Path:
    """Writes the two files; returns the path of the first."""
    for name, data in files(size).items():
        (folder / name).write_bytes(data)
    return folder / "vocab.json"
