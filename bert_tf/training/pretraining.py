"""Pre-training: its objective, and the records that it reads.

The losses are of masked words and of the relation between two segments; for
language models, of the next tokens. Records are checked before any work.
Shapes: B batch, S sequence length, P predictions per row, V vocabulary, K
sequences packed in a row, or 1.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert_tf import configuration, losses, optimization
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.records import (
    dynamic_masks,
    manifests,
    masking,
    pipeline,
    reading,
    record_types,
)
from bert_tf.storage import paths
from bert_tf.training import (
    evaluation,
    loop,
    next_pieces,
    progress,
    record_values,
    session,
)

import keras
import tensorflow as tf
from absl import logging

# Files that are looked into before the first step, where a manifest vouches for
# what all hold: of ten thousand files it would take minutes.
_LOOKED_INTO = 256

# ---- Objective --------------------------------------------------------------

# The objective of the data -> what the loss over two segments is called.
_SENTENCES = {
    "nsp": "next_sentence",
    "sop": "sentence_order",
    "two_segments": None,
    "none": None,
    "full_sentences": None,
}
# What is learned of the records' texts, none of whose words is masked: the
# objective, and the names of its losses.
_OF_TEXTS = {
    "next_piece": (next_pieces.objective, next_pieces.LOSSES),
    "both_directions": (next_pieces.both_directions, next_pieces.BOTH_LOSSES),
}


def objective(kind: str) -> loop.Objective:
    """Returns what to minimize on data that says so: see `Data.objective`."""
    if kind in _OF_TEXTS:
        return _OF_TEXTS[kind][0](sizes)
    sentences, (words_loss, *_) = _SENTENCES.get(kind), loss_names(kind)

    def weights(batch):
        totals = {words_loss: tf.reduce_sum(mask_weights(batch))}
        if sentences is not None:
            totals[sentences] = tf.reduce_sum(_sentence_weights(batch))
        return totals

    def sums(model, batch, dropout_seed):
        words = model(batch, dropout_seed)  # [B, P, V]
        if kind in _SENTENCES:
            words, orders = words  # [B, P, V], [B, 2] or [B, K, 2]
        found = {
            words_loss: losses.classification(
                words, batch["masked_lm_ids"], mask_weights(batch)
            )
        }
        if sentences is not None:
            labels = batch["next_sentence_labels"]  # [B, K]
            found[sentences] = losses.classification(
                tf.reshape(orders, [-1, labels.shape[1], 2]),
                labels,
                _sentence_weights(batch),
            )
        return found

    return loop.Objective(weights, sums, sizes=sizes)


def loss_names(kind: str) -> tuple[str, ...]:
    """Returns the names of the losses of `objective`, of tokens first."""
    if kind in _OF_TEXTS:
        return _OF_TEXTS[kind][1]
    if kind not in _SENTENCES:
        return (kind,)  # a family's own
    sentences = _SENTENCES[kind]
    return ("masked_lm",) if sentences is None else ("masked_lm", sentences)


def has_pairs(kind: str) -> bool:
    """Whether data made for this has a task of two segments."""
    return _SENTENCES.get(kind) is not None


def sizes(batch: loop.Batch) -> dict[str, tf.Tensor]:
    """Returns the sizes of a batch for the meter; its rows may be packed."""
    if "sequence_ids" not in batch:
        return loop.sizes_of_rows(batch)
    numbers = 1 + tf.range(batch["cls_positions"].shape[1])  # [K]
    own = batch["sequence_ids"][:, :, tf.newaxis] == numbers  # [B, S, K]
    lengths = tf.reduce_sum(tf.cast(own, tf.float32), axis=1)  # [B, K]
    sequences = tf.math.count_nonzero(lengths, dtype=tf.float32)
    return loop.sizes_of(lengths, sequences)


def trained_variables(
    model: keras.Model, kind: str
) -> Sequence[keras.Variable]:
    """Returns what `objective` trains; the rest of the model stays as it is."""
    variables = model.trainable_variables
    if kind not in _SENTENCES:
        return model.trained_variables
    if has_pairs(kind):
        return variables
    # Trained by the loss over two segments alone.
    own = (model.bert.pooler, model.cls.seq_relationship)
    unread = {v.path for layer in own for v in layer.variables}
    return [v for v in variables if v.path not in unread]


def mask_weights(batch: loop.Batch) -> tf.Tensor:
    """1 for real predictions of real rows, else 0, [B, P]."""
    return batch["masked_lm_weights"] * batch["row_weights"][:, tf.newaxis]


def _sentence_weights(batch: loop.Batch) -> tf.Tensor:
    """1 for real sequences of real rows, else 0, [B, K]."""
    weights = batch["row_weights"][:, tf.newaxis]
    if "next_sentence_weights" in batch:
        weights *= batch["next_sentence_weights"]
    return weights


# ---- Runs -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan(session.Plan):
    """How to train; the flags of the same names."""

    num_warmup_steps: int
    num_train_steps: int
    eval_steps: int | None = None  # between evaluations while training
    early_stop: int | None = None  # evaluations without a lower loss

    def schedule(self) -> optimization.Schedule:
        """The learning rate at each step."""
        return self.recipe.schedule(
            self.learning_rate, self.num_warmup_steps, self.num_train_steps
        )

    def check(self) -> None:
        """Raises InputError where numbers contradict each other."""
        self.schedule()
        progress.check_profile(self.profile_steps, self.num_train_steps)


def make_evaluation(
    strategy: tf.distribute.Strategy,
    model: keras.Model,
    task: loop.Objective,
    data: "Data",
    batch_size: int,
    max_steps: int,
    seed: int,
) -> Callable[[], loop.Scalars]:
    """Returns a function: the means over the first `max_steps` batches."""
    means = evaluation.make_evaluate(strategy, model, task)
    # What there are, evenly over the replicas: the rest would be filling.
    replicas = strategy.num_replicas_in_sync
    batch_size = min(batch_size, -(-sum(data.counts) // replicas) * replicas)
    number = min(max_steps, -(-sum(data.counts) // batch_size))

    @functools.cache  # Its graph is made once, and read from the start again.
    def batches() -> tf.distribute.DistributedDataset:
        make = functools.partial(
            pipeline.evaluate, data.files, batch_size, max_steps, data.counts
        )
        return data.batches(strategy, make, seed, eval_batch_size=batch_size)

    def evaluate() -> loop.Scalars:
        with data.explained():
            return means(batches(), number)

    return evaluate


# ---- Records ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Data:
    """The records, checked."""

    files: list[str]
    counts: list[int]  # records in each file
    record_type: record_types.RecordType
    lengths: dict[str, int]
    # What is learnt of two segments, as the manifest says; or of the texts.
    objective: str
    masking: masking.Masking | None  # if words are masked while reading
    manifest: manifests.Manifest | None = None
    padded_inside: str = ""  # see record_values.check

    def for_head(self, head: str) -> "Data":
        """Returns the same records for a model that learns otherwise.

        `head` is what pre-training trains, as the model's config says. Where it
        predicts what follows, no words are masked.
        """
        if head in _OF_TEXTS:
            return dataclasses.replace(self, objective=head, masking=None)
        own = {
            row.config.pretraining_head
            for row in families.FAMILIES.values()
            if row.pretrainer is not None
        }
        if head in own:
            return dataclasses.replace(self, objective=head)
        return self

    @property
    def predictions_per_row(self) -> int:
        """The max number of predicted tokens in a row, over all directions."""
        if self.objective == "both_directions":
            return 2 * self.lengths["S"]
        return self.lengths["S" if self.objective in _OF_TEXTS else "P"]

    def batches(
        self,
        strategy: tf.distribute.Strategy,
        make: Callable[[], tf.data.Dataset],
        seed: int,
        first_step: int = 0,
        eval_batch_size: int | None = None,
    ) -> tf.distribute.DistributedDataset:
        """Gives each replica its share of batches of records, masked.

        `make` makes the batches, as for `pipeline.distribute`. An evaluation
        passes their size, so that its masks do not depend on it.
        """
        masks = None
        if self.masking is not None:
            masks = dynamic_masks.DynamicMasks(
                self.masking, seed, first_step, eval_batch_size
            )
        return pipeline.distribute(
            strategy, make, self.record_type, self.lengths, masks=masks
        )

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Names file and record where one can't be read, or is of another kind.

        Of many files only some are looked into beforehand.
        """
        how = (self.record_type, self.files, self.lengths)
        is_by_manifest = self.manifest is not None
        with (
            pipeline.explained(self.files),
            reading.explained(*how, is_by_manifest),
        ):
            yield


def check_no_masking(*data: Data) -> None:
    """Raises InputError where words are masked while they are read.

    That is done by NumPy, which only the hosts have that run the script.
    """
    for each in data:
        if each.masking is not None:
            raise InputError(
                "Records that are masked while they are read can't be trained "
                "on from a TPU elsewhere. Run the script on the TPU's own "
                "host, or make them without --dynamic_masking. Received: "
                f"records={each.files[0]}"
            )


def check_alike(data: Data, eval_data: Data, head: str | None) -> None:
    """Compares the evaluation data with the training data.

    It raises InputError if they have different sentence tasks and the head
    reads sentence labels, or if their manifests name different vocabularies.
    """
    if head == "pretraining":
        _check_equal("objective", data, eval_data, eval_data)
    ours, theirs = data.manifest, eval_data.manifest
    if ours is None or theirs is None:
        return
    for name in ("vocab_sha256", "do_lower_case"):
        _check_equal(name, ours, theirs, eval_data)


def _check_equal(name: str, ours: Any, theirs: Any, eval_data: Data) -> None:
    expected, received = getattr(ours, name), getattr(theirs, name)
    if expected != received:
        raise InputError(
            "--eval_file must hold records made as those of --input_file, "
            f"with {name}={expected}. Received: {eval_data.files[0]} with "
            f"{name}={received}. Make them with the same vocabulary and flags."
        )


def find(
    patterns: Sequence[str],
    config: configuration.BertConfig,
    max_seq_length: int | None,
    max_predictions_per_seq: int | None,
    may_fuse: bool = True,
) -> Data:
    """Finds the records, and compares them with the flags and the model.

    Flags that say nothing are None. `may_fuse` is whether attention may be
    fused, if there are GPUs. It raises InputError if they contradict
    each other, or the files are no records: of many with a manifest some are
    looked into, and `Data.explained` names others when they are read.
    """
    files = paths.expand(patterns, manifests.is_manifest)
    manifest = manifests.find(files)
    if manifest is None:
        return _find_originals(
            files, config, max_seq_length, max_predictions_per_seq, may_fuse
        )
    if manifest.record_type not in record_types.PRETRAINING_TYPES:
        raise InputError(
            f"{files[0]} does not hold pre-training records: its manifest "
            f"says record_type={manifest.record_type}. Make them with "
            "create_pretraining_data.py"
        )
    given = {
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
    }
    _check_flags(given, manifest, files[0])
    config.check_vocab_size(manifest.vocab_size, "The vocabulary of the data")
    lengths = {
        "S": manifest.max_seq_length,
        "P": manifest.max_predictions_per_seq,
        "K": manifest.sequences_per_row,
    }
    config.check_sequence_length(lengths["S"])
    record_type = record_types.PRETRAINING_TYPES[manifest.record_type]
    if any(x.name == "cls_positions" for x in record_type.features):
        config.check_reads_packed(files[0])
    counts = [shard.records for shard in manifest.shards]
    some = paths.spread(list(zip(files, counts, strict=True)), _LOOKED_INTO)
    some_files, some_counts = zip(*some, strict=True)
    reading.check(record_type, some_files, lengths, is_by_manifest=True)
    padded_inside = record_values.check(
        some_files, record_type, lengths, config, some_counts
    )
    masks = None
    if manifest.dynamic_masking:
        masks = masking.Masking.of_manifest(manifest.masking, files[0])
    return Data(
        files,
        counts,
        record_type,
        lengths,
        manifest.objective,
        masks,
        manifest,
        padded_inside,
    )


def _check_flags(
    given: Mapping[str, int | None], manifest: manifests.Manifest, file: str
) -> None:
    for name, value in given.items():
        said = getattr(manifest, name)
        if value is not None and value != said:
            raise InputError(
                f"--{name}={value} contradicts the manifest of {file}, "
                f"which says {name}={said}. Leave the flag out, or make the "
                "data again"
            )


def _find_originals(
    files: list[str],
    config: configuration.BertConfig,
    max_seq_length: int | None,
    max_predictions_per_seq: int | None,
    may_fuse: bool,
) -> Data:
    """Looks at records of BERT's or ALBERT's script, without manifest."""
    lengths = {
        "S": max_seq_length or 128,
        "P": max_predictions_per_seq or 20,
    }
    # First: nobody may have given the lengths.
    firsts = reading.check(record_types.PRETRAINING, files, lengths)
    objectives = {
        reading.original_objective(file, record): file
        for file, records in zip(files, firsts, strict=True)
        for record in records
    }
    if len(objectives) > 1 and config.pretraining_head == "pretraining":
        raise InputError(
            "All records must have the same sentence task. Received: "
            f"{objectives['nsp']} of BERT's script (next_sentence) and "
            f"{objectives['sop']} of ALBERT's (sentence_order). Train on one "
            "kind only."
        )
    config.check_sequence_length(lengths["S"])
    record_type = record_types.PRETRAINING
    logging.info("The records have no manifest; checking and counting them.")
    # cuDNN's fused attention would read other rows wrongly.
    is_complete = may_fuse and bool(tf.config.list_physical_devices("GPU"))
    padded_inside = record_values.check(
        files, record_type, lengths, config, is_complete=is_complete
    )
    counts = reading.count(files)
    if not sum(counts):
        raise InputError(f"{files[0]} holds no records.")
    return Data(
        *(files, counts, record_type, lengths, next(iter(objectives)), None),
        padded_inside=padded_inside,
    )
