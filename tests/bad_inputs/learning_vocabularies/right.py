"""What looks wrong to learn_vocabulary.py, and rightly works."""

from tests.bad_inputs import matrix
from tests.bad_inputs.learning_vocabularies.inputs import (
    EXTEND,
    of_kind,
    out,
    text,
)

RIGHT = {
    "names": out("{out}/ä ö/☃.txt", ""),
    "lines as of Windows": text("crlf.txt", ""),
    "variables of others": matrix.Case(
        {},
        "",
        environment={
            "TF_CONFIG": "{{",
            "KERAS_BACKEND": "torch",
            "MPLBACKEND": "x",
        },
    ),
    "more pieces than there are": matrix.Case(
        {"vocab_size": "4194304"}, "--vocab_size=4194304 is not reached"
    ),
    "words that all are rare": matrix.Case({"min_frequency": "2147483647"}, ""),
    "nothing to overwrite": matrix.Case({"overwrite": "true"}, ""),
    "bad text, replaced": text("latin1", "", on_bad_text="replace"),
    "a language, where no sentences are split": matrix.Case(
        {"input_format": "documents", "language": "de"},
        "Not used, as sentences are not split: --language.",
    ),
    "byte pairs": of_kind("byte_pairs", "vocab.json", "", vocab_size="300"),
    "sentence pieces": of_kind(
        "sentence_pieces", "x.model", "", vocab_size="60"
    ),
    "symbols": of_kind("symbols", "symbols.txt", "", min_frequency="1"),
    "a vocabulary to extend": matrix.Case(EXTEND, ""),
    "one to extend, to more pieces than there are": matrix.Case(
        {**EXTEND, "vocab_size": "4194304", "num_appended": "500"},
        "rows got no piece: no other of those that the text has, 4194304 at",
    ),
    "more symbols than there are": of_kind(
        "symbols",
        "symbols.txt",
        "no more pieces that occur 2 times: --vocab_size=200 is not reached",
    ),
    "more sentence pieces than there are": of_kind(
        "sentence_pieces",
        "x.model",
        "has no more pieces: --vocab_size=200 is not reached",
    ),
}
