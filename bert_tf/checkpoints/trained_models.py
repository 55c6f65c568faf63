"""Fine-tuned models: their weights, files and labels."""

import contextlib
import dataclasses
import functools
import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

from bert_tf import modeling, optimization, vocab_files, vocabularies
from bert_tf.checkpoints import (
    best,
    casing,
    model_files,
    names,
    opened,
    original,
    restoring,
    tf1_files,
)
from bert_tf.errors import InputError, listed, quoted

import keras
from absl import logging

# ---- Weights ----------------------------------------------------------------


def own_checkpoint(output_dir: str, use_best: bool) -> str | None:
    """Returns a run's best or newest checkpoint; None if missing."""
    kept = best.checkpoint(output_dir) if use_best else None
    return kept or tf1_files.latest(output_dir)


def check_not_best_only(folder: str) -> None:
    """Raises InputError if a folder has the best weights, and no newest."""
    if best.checkpoint(folder) and not tf1_files.latest(folder):
        raise InputError(
            f"{folder} has only the best weights, in {best.FOLDER}/, and no "
            "last checkpoint. Leave out use_checkpoint, or pass the folder of "
            "a trial if a search kept the last ones. "
            "Received: use_checkpoint=last"
        )


def with_trained_head(
    source: opened.Checkpoint, head: str
) -> opened.Checkpoint:
    """Returns the checkpoint unchanged; InputError if its head is untrained."""
    missing = sorted(names.HEADS[head].variables.keys() - source.shapes.keys())
    if missing:
        raise InputError(
            f"{source.path} is not fine-tuned: it has no {head} head "
            f"({', '.join(missing)}). Train it with --do_train=true."
        )
    if not is_trained(source, head):
        raise InputError(
            f"{source.path} has a {head} head that its run did not train, as "
            "by --distillation=minilm. Start a run from it that does: "
            "--do_train=true, --init_checkpoint, and another --output_dir."
        )
    return source


def is_trained(source: opened.Checkpoint, head: str) -> bool:
    """Whether the run of a checkpoint trained this head, which it has.

    A run leaves heads that its objective does not reach at random values: the
    next-sentence head, or all heads when it learns a teacher's layers.
    """
    stored = (*source.state, *_names_in_run(source))
    of_slots = filter(None, map(optimization.slot_of, stored))
    trained = {variable for variable, _ in of_slots}
    needed = names.HEADS[head].variables.keys()
    return not trained or needed - names.zeros(source.config, head) <= trained


def _names_in_run(source: opened.Checkpoint) -> Collection[str]:
    """Returns the names in the run of a best checkpoint, which has no moments.

    They are in the run's newest readable checkpoint; empty for other sources.
    """
    folder = best.run_of(os.path.dirname(source.path))
    if source.is_foreign or folder is None:
        return ()
    for _, prefix in reversed(tf1_files.numbered(folder).items()):
        with contextlib.suppress(tf1_files.UnreadableError):
            return tf1_files.shapes(prefix)
    return ()


def without_other_head(
    source: opened.Checkpoint, labels: tuple[str, ...] | None
) -> opened.Checkpoint:
    """Drops a classification head with other classes, and logs a warning.

    What a model learned on MNLI helps on RTE, MRPC and STS-B (Phang et al.
    2018, Liu et al. 2019), which have other classes. `labels` is None for a
    score.
    """
    shape = source.shapes.get("output_weights")
    if shape is None or not _other_labels(source, labels):
        return source
    head = names.HEADS["classification"].variables
    logging.warning(
        "%s was fine-tuned with %s: its head is not used, a new one starts "
        "from random values.",
        source.path,
        _classes(source),
    )
    return dataclasses.replace(
        source,
        shapes={n: s for n, s in source.shapes.items() if n not in head},
        left_over=(*source.left_over, *head),
    )


def is_multi_label(source: opened.Checkpoint) -> bool:
    """Whether the checkpoint's config allows several labels per text."""
    config = source.config
    return config is not None and config.problem_type == modeling.MULTI_LABEL


def check_classes(
    source: opened.Checkpoint,
    labels: tuple[str, ...] | None,
    several: bool = False,
) -> None:
    """Raises InputError if a classifier to predict with has other labels.

    `labels` is None for a score; `several` allows several labels per text.
    """
    if source.config and source.config.score_act != "linear":
        raise InputError(
            f"{source.path} computes its score as a {source.config.score_act}, "
            "which can be asked (run_prediction.py, exports, the server), but "
            "not evaluated here, as training computes scores without bounds. "
            f"Received: score_act={source.config.score_act}"
        )
    if is_multi_label(source) and not several:
        raise InputError(
            f"{source.path} was fine-tuned on texts that may have several "
            "labels. Pass --label_separator, which separates them in your "
            "files; texts of --task_name have one label each."
        )
    # Labels next to weights of our own format come from a run of this package,
    # whose config records multi-label problems; other libraries' may not.
    is_own = not source.is_foreign and source.labels is not None
    if several and is_own and not is_multi_label(source):
        raise InputError(
            f"{source.path} was fine-tuned on texts with one label each: its "
            f"{original.CONFIG} has no problem_type={modeling.MULTI_LABEL}. "
            "Leave out --label_separator, or train with it in another "
            "output_dir."
        )
    if _other_labels(source, labels):
        raise InputError(
            f"{source.path} was fine-tuned with {_classes(source, _whole)}. "
            "Give the same, in this order, by --labels or --task_name, or "
            f"train with --do_train=true. Received: labels={_named(labels)}"
        )
    warn_of_order(source, labels)


def warn_of_order(
    source: opened.Checkpoint, labels: tuple[str, ...] | None
) -> None:
    """Warns if nothing but the number of a head's classes can be checked."""
    if source.labels is None and labels:
        file = "a labels.txt next to it"
        if source.is_foreign:
            file = "id2label of its config.json"
        logging.warning(
            "%s does not name its classes: assuming %s, in this order. To name "
            "them, use %s.",
            *(source.path, listed(labels), file),
        )


def _other_labels(
    source: opened.Checkpoint, labels: tuple[str, ...] | None
) -> bool:
    number = source.shapes["output_weights"][0]
    if number != len(labels or ("",)):
        return True
    return source.labels is not None and source.labels != labels


def _whole(labels: Sequence[str]) -> str:
    """Returns all labels for a message, to be passed again."""
    return ", ".join(map(quoted, labels))


def _named(labels: Sequence[str] | None) -> str:
    return listed(labels) if labels else "none, but a score"


def _classes(
    source: opened.Checkpoint, show: Callable[[Sequence[str]], str] = listed
) -> str:
    if source.labels:
        return f"the labels {show(source.labels)}"
    return f"{source.shapes['output_weights'][0]} classes"


def restore(model: keras.Model, source: opened.Checkpoint, head: str) -> int:
    """Sets all weights of a fine-tuned checkpoint; returns its step, or 0.

    If the head does not read the pooled output, the checkpoint may lack the
    pooler, as many of Hugging Face do.
    """
    required = names.required(source.config, head)
    restoring.restore_weights(model.variables, source, required)
    logging.info("Using the weights of %s.", source.path)
    if tf1_files.GLOBAL_STEP not in source.state:
        return 0
    values = source.read([tf1_files.GLOBAL_STEP])
    return int(values[tf1_files.GLOBAL_STEP])


# ---- Files of a fine-tuned model --------------------------------------------


@dataclasses.dataclass(frozen=True)
class ModelFiles:
    """The config, vocabulary and casing that belong to a model's weights."""

    config: modeling.BertConfig
    vocab: vocabularies.Files
    do_lower_case: bool

    @classmethod
    def load(
        cls,
        bert_config_file: str | None,
        vocab_file: str | None,
        do_lower_case: bool | None,
        source: model_files.Source | None = None,
        trains: bool = False,
    ) -> "ModelFiles":
        """Reads the files, or takes the checkpoint's where a path is None.

        Text is lower-cased by default, as in the original.
        """
        said = source.do_lower_case if source else None
        lower = said if do_lower_case is None else do_lower_case
        lower = True if lower is None else lower
        path = source.path if source else None
        vocab_files.validate_case_matches_checkpoint(lower, path)
        config = model_files.find_config(bert_config_file, source, trains)
        vocab = model_files.find_vocab(vocab_file, source)
        name = vocab_file or f"The vocabulary of {path}"
        files = cls(config, vocab, lower)
        config.check_vocabulary(files.vocabulary, name)
        is_foreign = isinstance(source, opened.Checkpoint) and source.is_foreign
        if path and is_foreign and do_lower_case is None and said is not None:
            lower = casing.of_foreign(vocab, said, name, path, trains)
            return dataclasses.replace(files, do_lower_case=lower)
        files.vocabulary.check(name)
        if said not in (None, lower) and files.vocabulary.settings:
            logging.warning(
                "%s says do_lower_case=%s, and you set do_lower_case=%s: texts "
                "are split into other tokens than in training.",
                path,
                said,
                lower,
            )
        return files

    def of_problem(self, is_multi_label: bool) -> "ModelFiles":
        """Returns the files of a classifier, with its problem in the config."""
        problem_type = modeling.MULTI_LABEL if is_multi_label else None
        return self.with_head(problem_type=problem_type)

    def with_head(self, **settings: Any) -> "ModelFiles":
        """Returns the files with the settings of a head in the config."""
        config = self.config.with_head_of(modeling.BertConfig)
        config = dataclasses.replace(config, **settings)
        return dataclasses.replace(self, config=config)

    @functools.cached_property
    def vocabulary(self) -> vocabularies.Vocabulary:
        """The vocabulary, which tokenizes text."""
        return vocabularies.read(
            self.vocab, self.do_lower_case, "The vocabulary"
        )

    def contents(self, labels: Sequence[str] | None) -> dict[str, bytes]:
        """Returns the files by name, with labels.txt if there are labels."""
        return original.contents(self.config, self.vocab, labels)

    def write(self, folder: str, labels: Sequence[str] | None) -> None:
        """Writes the files, and labels.txt if there are labels.

        Files that an earlier start of a run left are removed.
        """
        original.write_contents(folder, self.contents(labels))


def read_labels(folder: str) -> tuple[str, ...] | None:
    """Returns the labels that a run wrote; None if there is no labels.txt."""
    return original.read_labels(os.path.join(folder, original.LABELS))


def check_labels(
    folder: str, labels: Sequence[str] | None, task_name: str | None = None
) -> None:
    """Raises InputError if the folder's model has other labels.

    `task_name` is the value of --task_name, if the labels are from it.
    """
    trained = read_labels(folder)
    if trained is not None and trained != tuple(labels or ()):
        way_out, task = "Give the same by --labels, in this order", ""
        if task_name:
            way_out, task = "Give its --task_name", f"task_name={task_name}, "
        raise InputError(
            f"The model in {folder} was trained with other labels: "
            f"{_whole(trained)}. {way_out}, or choose another output_dir. "
            f"Received: {task}labels={_named(labels)}"
        )
