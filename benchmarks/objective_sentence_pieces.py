"""The vocabulary of the XLNet in benchmarks.objectives."""

import importlib
import pathlib

from bert_tf import files


def learn(text: str, target: pathlib.Path, size: int) -> None:
    """Learns a spiece.model as in docs/xlnet.md, unless it is there.

    The text is lower-cased, as for BERT.

    Args:
        text: A file in WikiExtractor's format.
        target: The file to write.
        size: Number of tokens.
    """
    if target.exists():
        return
    sentencepiece = importlib.import_module("sentencepiece")
    with open(text, encoding="utf-8") as lines, files.replacing(target) as path:
        words = (line.strip().lower() for line in lines)
        with open(path, "wb") as file:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(x for x in words if x and x[0] != "<"),
                model_writer=file,
                vocab_size=size,
                control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
                user_defined_symbols=["<eop>", *'.()"-–£€'],
                minloglevel=2,
            )
