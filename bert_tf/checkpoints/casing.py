"""Whether a model reads lower-cased text, and whether its vocabulary fits."""

from bert_tf import vocabularies
from bert_tf.errors import InputError

from absl import logging


def check_said(
    vocab: vocabularies.Files, do_lower_case: bool, name: str, path: str
) -> None:
    """Warns if the casing that a checkpoint says contradicts its vocabulary.

    Some released models say what is wrong; so they are read everywhere. A
    vocabulary that no model can read with raises InputError.

    Args:
        vocab: The checkpoint's.
        do_lower_case: What it says.
        name: Of the vocabulary, for errors.
        path: Of the checkpoint.
    """
    try:
        vocabularies.read(vocab, do_lower_case, name).check(name)
    except InputError as problem:
        vocabularies.read(vocab, not do_lower_case, name).check(name)
        logging.warning(
            "%s says do_lower_case=%s, which is kept. But: %s",
            path,
            do_lower_case,
            problem,
        )


def told_by(vocab: vocabularies.Files, name: str) -> bool | None:
    """Returns the casing that a vocabulary fits; None if it has none.

    One that fits both is of lower-cased text, as by the original. One that no
    model can read with raises InputError, which begins with `name`.
    """
    if not vocabularies.read(vocab, True, name).settings:
        return None
    try:
        vocabularies.read(vocab, True, name).check(name)
    except InputError:
        vocabularies.read(vocab, False, name).check(name)
        return False
    return True
