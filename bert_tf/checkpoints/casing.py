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
    """Returns the casing of another library's model; warns if it is wrong.

    Some released models declare a casing that contradicts their vocabulary.
    They are read as declared, as in other libraries; training that starts from
    them uses the casing that the vocabulary needs. A vocabulary that no model
    can use raises InputError.

    Args:
        vocab: Vocabulary of the model.
        said: Casing that the model declares.
        name: Name of the vocabulary, for errors.
        path: Path of the model.
        trains: Whether training starts from the model.
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
    """Returns the casing that a vocabulary fits; None if it has no casing.

    A vocabulary that fits both is for lower-cased text, as in the original. One
    that no model can use raises InputError, which begins with `name`.
    """
    if not vocabularies.read(vocab, True, name).settings:
        return None
    try:
        vocabularies.read(vocab, True, name).check(name)
    except InputError:
        vocabularies.read(vocab, False, name).check(name)
        return False
    return True
