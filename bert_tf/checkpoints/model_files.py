"""Finds a run's config and vocabulary: in files, or from its checkpoint.

Files that are passed must agree with the checkpoint's.
"""

import dataclasses
from typing import Any, Protocol

from bert_tf import modeling, vocabularies
from bert_tf.checkpoints import generators, names, opened, original
from bert_tf.encoders import families
from bert_tf.errors import InputError

from absl import logging

# Keys that a run may change freely, besides dropout rates: they affect
# training, not the model.
_FREE = {"initializer_range"}
# Head of a checkpoint -> its pre-training objective, for families whose other
# names are the same.
_LEARNED = {"masked_lm": "pretraining", "next_piece": "next_piece"}
_SAID = {"pretraining": "masked words", "next_piece": "next pieces"}
_NAMED = 4  # differences listed: other encoders differ in everything
_OWN_VOCAB = "Leave out --vocab_file to use the checkpoint's own."


class Source(Protocol):
    """A source of files: a checkpoint, or the folder of a run."""

    @property
    def path(self) -> str:
        """Path of the source."""

    @property
    def config(self) -> modeling.BertConfig | None:
        """Config of its model."""

    @property
    def vocab(self) -> vocabularies.Files | None:
        """Vocabulary of its model."""

    @property
    def do_lower_case(self) -> bool | None:
        """Whether it reads lower-cased text; None if unknown."""


def find_config(
    path: str | None, source: Source | None, trains: bool = False
) -> modeling.BertConfig:
    """Returns the config at `path`, or the source's if no path is passed.

    The source is the checkpoint that the run starts from, or the run that it
    resumes. Raises InputError if there is no config, or if the two are of
    different models: only with `trains` may a model start from another family,
    if its family allows it.
    """
    brought = source.config if source else None
    if path is None:
        if brought is None:
            raise InputError(
                "The model's architecture is not known: give "
                "--bert_config_file, or a checkpoint that has its config "
                f"beside it.{_name_source(source)}"
            )
        return brought
    given = families.read_config(path)
    if source is None:
        return given
    if brought is None:
        if isinstance(source, opened.Checkpoint):
            _check_learned(given, path, source, trains)
        return given
    # The checkpoint decides how its head is read: a base config omits it.
    given = given.with_head_of(brought)
    ours, theirs = _facts(given), _facts(brought)
    other = theirs["encoder"]
    free = _FREE
    # A run's folder is resumed with the model that it has.
    if isinstance(source, opened.Checkpoint):
        if trains and families.find(given).starts_from == other:
            theirs["encoder"] = ours["encoder"]
        # Without a generator in the checkpoint, its config's keys are ignored.
        if not generators.variables(source.shapes, brought):
            free = free | given.pretraining_keys
    different = [
        f"{name} is {ours.get(name)} there and {theirs.get(name)} in the "
        "checkpoint's config"
        for name in ours | theirs
        if name not in free and not name.endswith("_dropout_prob")
        if ours.get(name) != theirs.get(name)
    ]
    if len(different) > _NAMED:
        different[_NAMED:] = [f"and {len(different) - _NAMED} more"]
    if different:
        raise InputError(
            f"{path} is not the config of {source.path}: "
            f"{'; '.join(different)}. Leave out --bert_config_file to use the "
            "checkpoint's own."
        )
    if other != ours["encoder"]:
        _say_start(given, path, other)
    return given


def _check_learned(
    given: modeling.BertConfig,
    path: str,
    source: opened.Checkpoint,
    trains: bool,
) -> None:
    """Raises InputError if a checkpoint's heads are from another family.

    For checkpoints without a config, whose other names may fit both families.
    """
    row = families.find(given)
    start = row.starts_from and families.FAMILIES[row.starts_from].config
    below = start.pretraining_head if start else None
    own = given.pretraining_head or below
    learned = [
        task
        for head, task in _LEARNED.items()
        if names.HEADS[head].variables.keys() <= source.shapes.keys()
    ]
    if own is None or own not in _SAID or not learned or own in learned:
        return
    if trains and below in learned:
        _say_start(given, path, row.starts_from)
        return
    raise InputError(
        f"{path} is not the config of {source.path}, which has a head of "
        f"{_SAID[learned[0]]}: model_type={row.name} goes with one of "
        f"{_SAID[own]}. Give the config that it was trained with."
    )


def _say_start(
    given: modeling.BertConfig, path: str, other: str | None
) -> None:
    logging.info(
        "A model of model_type=%s, as %s says, starts from one of "
        "model_type=%s.",
        families.find(given).name,
        path,
        other,
    )


def _facts(config: modeling.BertConfig) -> dict[str, Any]:
    return dataclasses.asdict(config) | {"encoder": families.find(config).name}


def _name_source(source: Source | None) -> str:
    """Returns which checkpoint lacks the file, if there is a checkpoint."""
    return f" Received: {source.path}, which has none." if source else ""


def find_vocab(path: str | None, source: Source | None) -> vocabularies.Files:
    """Returns the vocabulary at `path`, or the source's if no path is passed.

    The one at `path` may have custom words at the checkpoint's [unused]
    positions. Raises InputError if there is no vocabulary, if the tokens of the
    two differ, or if the vocabulary used is invalid.
    """
    brought = source.vocab if source else None
    if source is not None and brought is None:
        families.find(source.config).check_takes_texts(source.path)
    if path is None:
        if source is None or brought is None:
            raise InputError(
                "The vocabulary is not known: give --vocab_file, or a "
                f"checkpoint that has it beside it.{_name_source(source)}"
            )
        # Checked here, where the error can name the checkpoint. The casing
        # does not change the tokens.
        vocabularies.read(brought, False, f"The vocabulary of {source.path}")
        return brought
    given = vocabularies.open_files(path)
    vocabularies.read(given, False, path)
    if source is not None and brought is not None:
        lower = source.do_lower_case
        if found := vocabularies.difference(given, brought, lower):
            raise InputError(
                f"{path} is not the vocabulary of {source.path}: {found}. "
                f"{_OWN_VOCAB}"
            )
    elif source is not None:
        _check_kind(given, path, source)
    return given


def find_records_vocab(
    path: str | None, source: Source | None, made_with: str | None
) -> vocabularies.Files | None:
    """Returns the vocabulary that records were made with; None if unknown.

    It is the one at `path`, the checkpoint's if its SHA-256 is `made_with`, or
    the resumed run's. Raises InputError if the vocabulary at `path`
    or of the run differs from the records', or the one at `path` from the
    checkpoint's.
    """
    if path is not None:
        given = find_vocab(path, source)
        if made_with not in (None, given.sha256):
            raise InputError(
                f"The records were not made with the vocabulary {path}: their "
                "manifest has another vocab_sha256. Give the one that "
                "create_pretraining_data.py was given."
            )
        return given
    brought = source.vocab if source else None
    if source is None or brought is None:
        return None
    is_own = isinstance(source, original.Files)
    if made_with is None:
        return brought if is_own else None
    if made_with != brought.sha256:
        if is_own:
            raise InputError(
                "The records were made with another vocabulary than those of "
                f"the run in {source.path}: their manifest has another "
                "vocab_sha256. Give that run's records, or choose another "
                "output_dir."
            )
        logging.warning(
            "The records were made with a vocabulary other than that of %s. "
            "Pass theirs as --vocab_file: it is then compared with the records "
            "and saved next to the weights.",
            source.path,
        )
        return None
    return brought


def _check_kind(given: vocabularies.Files, path: str, source: Source) -> None:
    """Raises InputError if the kind of vocabulary does not fit the weights.

    For checkpoints without a vocabulary. Kinds that no family is released with,
    such as symbols, fit every family.
    """
    row = families.find(source.config)
    known = (*row.vocabularies, *row.rare_vocabularies)
    released = {
        x for row in families.FAMILIES.values() for x in row.vocabularies
    }
    if given.kind in released and given.kind not in known:
        raise InputError(
            f"{path} is no vocabulary of {source.path}, whose tokens are of "
            f"another kind: {' or '.join(known)}. Give the vocabulary that it "
            f"was trained with. Received: a vocabulary of {given.kind}"
        )
