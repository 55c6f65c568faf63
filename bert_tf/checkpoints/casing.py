"""Whether a model reads lower-cased text, and whether its vocabulary fits."""

from bert_tf import vocabularies
from bert_tf.errors import InputError

from absl import logging


def of_foreign(
    vocab: vocabularies.Files,
    said: bool,
    name: str,
    path: str,
    trains: bool = False,
) -> bool:
    """Returns the casing of another library's model, and warns where it errs.

    Some released models say what contradicts their vocabulary. They are read as
    they say, as everywhere; but what is trained from them learns to read as the
    vocabulary wants it. One that no model can read with raises InputError.

    Args:
        vocab: Of the model.
        said: What it says of its casing.
        name: Of the vocabulary, for errors.
        path: Of the model.
        trains: Whether a training starts from it.
    """
    try:
        vocabularies.read(vocab, said, name).check(name)
    except InputError as problem:
        vocabularies.read(vocab, not said, name).check(name)
        logging.warning(
            "%s says do_lower_case=%s, which is %s. But: %s",
            path,
            said,
            "not what is trained with" if trains else "kept",
            problem,
        )
        return not said if trains else said
    return said


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
