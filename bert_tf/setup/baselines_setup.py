"""Sets up the baselines of --baselines.

Called from the `main` of run_classifier.py only.
"""

import typing

from bert_tf.checkpoints import trained_models, word_vectors
from bert_tf.errors import InputError
from bert_tf.flags import fine_tuning_flags
from bert_tf.tasks.classification import classification_task
from bert_tf.text import graph_rows

if typing.TYPE_CHECKING:
    from bert_tf.tasks.classification import baselines


def check(
    task: classification_task.Task, data_dir: str | None, trains: bool
) -> None:
    """Raises InputError or FileNotFoundError if there is no training data."""
    if "train" not in task.splits:
        raise InputError(
            "--baselines needs the training data, also without --do_train: "
            "give --train_file, or leave out --baselines. "
            "Received: train_file=None"
        )
    if not trains:
        next(classification_task.read_split(task, data_dir, "train"))


def find_average(
    files: trained_models.ModelFiles, tokenizer: graph_rows.Tokenizer
) -> "baselines.Featurize | None":
    """Returns a function that averages --word_vectors over texts, if set."""
    path = fine_tuning_flags.WORD_VECTORS.value
    if not path:
        return None
    # Slow to import, and only used here.
    from bert_tf.tasks.classification import baselines

    vectors = word_vectors.read(path, files.vocab, files.vocabulary)
    return baselines.averages(tokenizer, vectors)
