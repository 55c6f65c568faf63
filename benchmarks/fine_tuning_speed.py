"""Times fine-tuning steps on real texts, against transformers.

    pip install -e '.[parity]'
    python -m benchmarks.fine_tuning_speed --data_dir=/data/glue \
        --tasks=SST-2,CoLA,MRPC,STS-B,RTE

Texts, batches of 32 and recipe are those of parity/fine_tuning.py, and so are
the weights of transformers; ours are random, which takes as long.
Every implementation runs in a separate process, in turn:

- ours: the steps of run_classifier.py, which skip padding
- with_padding: the same, but including the padding of a batch
- transformers: batches padded to their longest example

Prints sequences/s (the median of the rounds) and the ratios.
"""

import collections
import functools
import os
import statistics
import tempfile
from collections.abc import Callable

from benchmarks import own_process, pretraining_step, weights
from benchmarks.parity import fine_tuning
from bert_tf import modeling
from bert_tf.tasks import tables
from bert_tf.tasks.classification import classification_task, glue
from bert_tf.training import schedules

import numpy as np
from absl import app, flags

_ROUNDS = flags.DEFINE_integer("rounds", 3, "Times that each side runs.")
_SECONDS = flags.DEFINE_float("seconds", 15.0, "Of steps in every round.")
_EXAMPLES = flags.DEFINE_integer("examples", 6400, "To draw batches from.")
_RUN = flags.DEFINE_string("run", None, "Internal: the side to run.")


def examples(task: classification_task.Task) -> list[tables.Example]:
    """Reads the first training examples, and shuffles them."""
    folder = os.path.join(flags.FLAGS.data_dir, task.name)
    found = list(classification_task.read(task, folder, "train"))
    order = np.random.default_rng(0).permutation(len(found))
    return [found[i] for i in order[: _EXAMPLES.value]]


def ours(task: classification_task.Task, skips_padding: bool = True) -> float:
    """Returns the seconds of a step of run_classifier.py."""
    from bert_tf import heads, losses, optimization, vocabularies
    from bert_tf.checkpoints import formats, model_files
    from bert_tf.records import pipeline
    from bert_tf.tasks.classification import text_records
    from bert_tf.text import text_graph
    from bert_tf.training import loop

    import tensorflow as tf

    # As transformers' side.
    threads = flags.FLAGS.threads
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    source = formats.open_checkpoint(weights.minilm())
    vocab = model_files.find_vocab(None, source)
    tokenizer = text_graph.make_tokenizer(
        vocabularies.read(vocab, True, source.path)
    )
    length = fine_tuning.LENGTHS[task.name]
    encoder = text_records.Encoder(tokenizer, length)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "train")
        data = encoder.write(path, examples(task), task.labels)
        strategy = tf.distribute.get_strategy()
        batches = pipeline.distribute(
            strategy,
            lambda: pipeline.train([path], [data.count], fine_tuning.BATCH, 1),
            data.record_type,
            data.lengths,
            trim=pipeline.FINELY,
        )
        config = model_files.find_config(None, source)
        model = heads.BertClassifier(
            modeling.Bert(config), len(task.labels or ("score",))
        )
        model.bert.skips_padding = skips_padding
        optimizer = optimization.BiasCorrectedAdamW(
            schedules.linear_warmup_decay(fine_tuning.RATE, 10, 10**4)
        )
        optimizer.build(model.trainable_variables)
        loss = losses.classification if task.labels else losses.regression

        def sums(model, batch, seed):
            logits = model(batch, seed)
            logits = logits if task.labels else logits[:, 0]
            own = loss(logits, batch["label_ids"], batch["row_weights"])
            return {"label": own}

        train = loop.make_train_steps(
            strategy,
            model,
            optimizer,
            loop.Objective(
                lambda batch: {"label": tf.reduce_sum(batch["row_weights"])},
                sums,
            ),
            batches,
            seed=1,
        )

        def step(count: int) -> None:
            train(0, count)

        return pretraining_step.timed(step, _SECONDS.value)


def transformers(task: classification_task.Task) -> float:
    """Returns the seconds of a step in PyTorch."""
    own = fine_tuning.Theirs(task, seed=1)
    rows = fine_tuning.encode(task, examples(task), own.tokenizer)
    batch = fine_tuning.BATCH
    done = 0

    def step(count):
        nonlocal done
        starts = (
            i * batch % (len(rows) - batch) for i in range(done, done + count)
        )
        own.train((rows[i : i + batch] for i in starts), 10**4)
        done += count

    return pretraining_step.timed(step, _SECONDS.value)


_SIDES: dict[str, Callable[[classification_task.Task], float]] = {
    "ours": ours,
    "with_padding": functools.partial(ours, skips_padding=False),
    "transformers": transformers,
}


def run(side: str, task: str) -> float:
    """Runs one implementation in a separate process; returns sequences/s."""
    names = ("data_dir", "threads", "seconds", "examples")
    values = [f"--{name}={flags.FLAGS[name].value}" for name in names]
    line = own_process.last_line(
        "benchmarks.fine_tuning_speed",
        *(f"--run={side}", f"--tasks={task}", *values),
    )
    return fine_tuning.BATCH / float(line)


def main(argv):
    """Runs all implementations in turn and prints the table."""
    del argv
    if _RUN.value:
        print(_SIDES[_RUN.value](glue.find(flags.FLAGS.tasks[0])))
        return
    print(f"{os.cpu_count()} cores; {_ROUNDS.value} rounds, sides in turn")
    for task in flags.FLAGS.tasks:
        found = collections.defaultdict(list)
        for _ in range(_ROUNDS.value):
            for side in _SIDES:
                found[side].append(run(side, task))
        print(f"{task}: batch {fine_tuning.BATCH}")
        best = statistics.median(found["ours"])
        for side, values in found.items():
            rate = statistics.median(values)
            print(
                f"  {side:13} {rate:8.1f} sequences/s  "
                f"({' '.join(f'{value:.1f}' for value in values)})  "
                f"ours / this {best / rate:5.2f}",
                flush=True,
            )


if __name__ == "__main__":
    app.run(main)
