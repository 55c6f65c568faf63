"""Finds and checks the teacher that `distillation_flags` name.

Called from the `main` of the training scripts only.
"""

import dataclasses
import functools
import math
import os

from bert_tf import modeling, options, vocabularies
from bert_tf.checkpoints import formats, names, opened, trained_models
from bert_tf.encoders import families
from bert_tf.errors import InputError, listed
from bert_tf.flags import distillation_flags, run_flags

from absl import flags

# From MiniLMv2, with students and teachers of width 384, 768 or 1,024.
_MOST_RELATION_HEADS = 48


@dataclasses.dataclass(frozen=True)
class Student:
    """The properties of a student that a teacher must match.

    Attributes:
        head: Head whose logits are compared with the teacher's: a key of
            names.HEADS.
        config: The student's config.
        vocab: Vocabulary files, or None if unknown.
        do_lower_case: Whether it lower-cases text; None if unknown.
        length: Max number of tokens per sequence.
        labels: Labels of its classes, if any.
        is_multi_label: Whether a text may have several labels.
    """

    head: str
    config: modeling.BertConfig
    vocab: vocabularies.Files | None
    do_lower_case: bool | None
    length: int
    labels: tuple[str, ...] | None = None
    is_multi_label: bool = False


@dataclasses.dataclass(frozen=True)
class Teacher:
    """A teacher that fits the student, not built yet.

    Attributes:
        source: The teacher's checkpoint.
        config: The teacher's config.
        head: The head to build: a key of names.HEADS.
        order: Indices of the teacher's outputs in the order of the student's
            labels; None if the order is the same.
        kind: One of options.DISTILLATIONS.
        temperature: Divisor of both models' logits.
        hard_label_weight: Weight of the task's own loss.
        relation_heads: Number of relation heads of MiniLMv2.
    """

    source: opened.Checkpoint
    config: modeling.BertConfig
    head: str
    order: tuple[int, ...] | None
    kind: str
    temperature: float
    hard_label_weight: float
    relation_heads: int

    @functools.cached_property
    def digest(self) -> str:
        """The SHA-256 of its weights."""
        return opened.digest(self.source)


# ---- Checking ----------------------------------------------------------------


def find(
    head: str,
    files: trained_models.ModelFiles,
    length: int,
    labels: tuple[str, ...] | None = None,
    is_multi_label: bool = False,
) -> Teacher:
    """Calls `find_for` with a student of these files; see Student."""
    has_casing = "do_lower_case" in files.vocabulary.settings
    return find_for(
        Student(
            head,
            files.config,
            files.vocab,
            files.do_lower_case if has_casing else None,
            length,
            labels,
            is_multi_label,
        )
    )


def find_for(student: Student) -> Teacher:
    """Returns the teacher that the flags of `distillation_flags` specify.

    Raises InputError unless the student can learn from it.
    """
    path = distillation_flags.TEACHER.value
    check_elsewhere(path)
    kind = distillation_flags.DISTILLATION.value or options.DISTILLATIONS[0]
    is_pretraining = student.head == "masked_lm"
    if kind == options.DISTILLATION_OF_WORDS and not is_pretraining:
        raise InputError(
            f"--distillation={kind} is for run_pretraining.py: it learns "
            "words. Here use --distillation=logits."
        )
    # For a run, its best or newest weights.
    own = trained_models.own_checkpoint(path, True)
    source = formats.open_checkpoint(own or path)
    config = _config(source)
    _check_texts(source, student)
    head, order = student.head, None
    if kind in options.DISTILLATIONS_OF_LAYERS:
        head = "encoder"
        _check_no_head(kind)
    else:
        _check_head(source, student)
        order = _order(source, student)
    _check_layers(kind, student.config, config)
    weight = distillation_flags.HARD_LABEL_WEIGHT.value
    return Teacher(
        source,
        config,
        head,
        order,
        kind,
        distillation_flags.TEMPERATURE.value or 2.0,
        0.5 if weight is None else weight,
        _relation_heads(kind, student.config, config),
    )


def check_elsewhere(path: str) -> None:
    """Raises InputError if the run would overwrite the teacher."""
    folder = run_flags.OUTPUT_DIR.value
    own, place = (os.path.join(os.path.realpath(x), "") for x in (folder, path))
    if "://" not in path and place.startswith(own):
        raise InputError(
            "--teacher lies in --output_dir, where the student's weights are "
            f"written: choose another output_dir. Received: teacher={path}, "
            f"output_dir={folder}"
        )


def _config(source: opened.Checkpoint) -> modeling.BertConfig:
    if source.config is None:
        raise InputError(
            f"The architecture of the teacher {source.path} is not known: put "
            "its bert_config.json beside it."
        )
    return source.config


def _check_texts(source: opened.Checkpoint, student: Student) -> None:
    """Raises InputError unless the teacher reads the student's ids."""
    try:
        _config(source).check_sequence_length(student.length)
    except InputError as error:
        raise InputError(f"The teacher {source.path}: {error}") from error
    if source.vocab is None:
        raise InputError(
            "A teacher and its student must have the same vocabulary, and none "
            f"lies beside the teacher {source.path}: put it there."
        )
    if student.vocab is None:
        raise InputError(
            "A teacher and its student must have the same vocabulary, and that "
            "of the records is not known: give it by --vocab_file."
        )
    lower = source.do_lower_case
    if found := vocabularies.difference(student.vocab, source.vocab, lower):
        raise InputError(
            "A teacher and its student must have the same vocabulary, and that "
            f"of the student is not the one of {source.path}: {found}. Give "
            "another teacher, or the student its vocabulary by --vocab_file."
        )
    vocabulary = source.read_vocabulary()
    name = f"The vocabulary of the teacher {source.path}"
    _config(source).check_vocabulary(vocabulary, name)
    if None not in (lower, student.do_lower_case) and (
        lower != student.do_lower_case
    ):
        raise InputError(
            f"The teacher {source.path} was trained with "
            f"do_lower_case={lower}: it would read other pieces than those it "
            "knows. Give the same. "
            f"Received: do_lower_case={student.do_lower_case}"
        )


# ---- The head ----------------------------------------------------------------


def _check_no_head(kind: str) -> None:
    """Raises InputError for flags that need a head, which is not trained."""
    asked = [
        name
        for name in ("do_eval", "do_predict", "do_export", "eval_steps")
        if name in flags.FLAGS and flags.FLAGS[name].value
    ]
    if asked:
        raise InputError(
            f"--distillation={kind} trains layers and no head, so there is "
            f"nothing to ask the model: leave out "
            f"{', '.join(f'--{x}' for x in asked)}. After it start a run with "
            "--distillation=logits, or without a teacher, from its folder by "
            "--init_checkpoint."
        )
    if run_flags.REMAT.value:
        raise InputError(
            f"--distillation={kind} compares what is inside layers, and "
            "--remat does not keep that: leave it out, and raise "
            "--gradient_accumulation_steps where memory is short."
        )


def _check_head(source: opened.Checkpoint, student: Student) -> None:
    """Raises InputError unless the teacher has the required head."""
    head = names.HEADS[student.head]
    missing = sorted(head.variables.keys() - source.shapes.keys())
    problem = ""
    if missing:
        problem = f"no {student.head} head ({', '.join(missing)})"
    elif not trained_models.is_trained(source, student.head):
        problem = f"a {student.head} head that its run did not train"
    if problem:
        raise InputError(
            f"The teacher {source.path} has {problem}. Train it on the task "
            "first, or learn its layers only, by --distillation=minilm or "
            "tinybert_layers."
        )
    if trained_models.is_multi_label(source) != student.is_multi_label:
        labels = (
            "one label each" if student.is_multi_label else "several labels"
        )
        raise InputError(
            f"The teacher {source.path} was trained on texts with {labels}: "
            "give one that was trained as the student is to be."
        )
    temperature = distillation_flags.TEMPERATURE.value
    is_score = student.head == "classification" and student.labels is None
    if is_score and temperature is not None:
        raise InputError(
            "--temperature is of classes, and a score has none: leave it out. "
            f"Received: temperature={temperature}"
        )


def _order(
    source: opened.Checkpoint, student: Student
) -> tuple[int, ...] | None:
    """Returns the indices of the student's labels in the teacher's."""
    head = names.HEADS[student.head]
    if not head.has_labels:
        return None
    ours = student.labels or ("",)  # a regression has one output
    theirs = source.labels
    number = source.shapes[head.bias][0]
    if theirs is None and number == len(ours):
        trained_models.warn_of_order(source, student.labels)
        return None
    if theirs is None or set(theirs) != set(ours):
        raise InputError(
            f"The teacher {source.path} has other labels than the student: "
            f"{listed(theirs) if theirs else f'{number} without names'}. Give "
            "a teacher of the same task, in whatever order. "
            "Received: labels="
            f"{listed(student.labels) if student.labels else 'none, a score'}"
        )
    return None if theirs == ours else tuple(map(theirs.index, ours))


# ---- The layers --------------------------------------------------------------


def _check_layers(
    kind: str, ours: modeling.BertConfig, theirs: modeling.BertConfig
) -> None:
    """Raises InputError if a distillation of layers does not fit."""
    if (
        kind == options.DISTILLATION_OF_WORDS
        and ours.hidden_size != theirs.hidden_size
    ):
        raise InputError(
            f"--distillation={kind} compares last hidden states, which must "
            "have one width. Give the student that of the teacher, or use "
            "--distillation=logits or minilm. Received: "
            f"hidden_size={ours.hidden_size}, the teacher's "
            f"{theirs.hidden_size}"
        )
    if kind != "tinybert_layers":
        return
    row = families.find(ours)
    if row.on_top:
        raise InputError(
            f"--distillation={kind} would compare what an untrained layer on "
            "top makes of the layers. Learn the layers of "
            f"model_type={row.starts_from}, then start from them. "
            f"Received: model_type={ours.model_type}"
        )
    if theirs.num_blocks % ours.num_blocks:
        raise InputError(
            f"--distillation={kind} compares each layer of the student with "
            "every so many layers of the teacher, so the one number must "
            "divide the other. Give the student as many, or use "
            "--distillation=minilm, which compares the last ones. Received: "
            f"{ours.num_blocks} layers, the teacher has {theirs.num_blocks}"
        )
    if ours.num_attention_heads != theirs.num_attention_heads:
        raise InputError(
            f"--distillation={kind} compares the attention of each head, so "
            "both must have as many. Use --distillation=minilm, whose "
            "relations need no equal heads. Received: "
            f"num_attention_heads={ours.num_attention_heads}, the teacher's "
            f"{theirs.num_attention_heads}"
        )


def _relation_heads(
    kind: str, ours: modeling.BertConfig, theirs: modeling.BertConfig
) -> int:
    """Returns the number of relation heads, a divisor of both widths."""
    shared = math.gcd(ours.hidden_size, theirs.hidden_size)
    most = max(n for n in range(1, _MOST_RELATION_HEADS + 1) if shared % n == 0)
    given = distillation_flags.RELATION_HEADS.value
    if kind == "minilm" and given and shared % given:
        raise InputError(
            "--relation_heads cut the hidden states of both models into "
            f"slices, so they must divide both widths, such as {most}. "
            f"Received: relation_heads={given}, hidden_size={ours.hidden_size},"
            f" the teacher's {theirs.hidden_size}"
        )
    return given or most
