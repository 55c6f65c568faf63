"""Times the conversion of questions to features, against transformers.

    pip install -e '.[parity]'
    python -m benchmarks.parity.squad_features \
        --train_file=dev-v1.1.json --vocab_file=vocab.txt

Both cut contexts into windows of 384 tokens at a stride of 128 and find the
answers, on one core. Ours is run_squad.py's path from JSON to TFRecord; theirs
is the recipe of the transformers documentation with the tokenizer in Rust,
without writing files. Prints questions/s and the ratio.
"""

import os
import tempfile
import time

# Set before the tokenizers are imported: one core for each.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
from bert_tf import vocabularies
from bert_tf.tasks.squad import (
    squad_options,
    squad_questions,
    squad_records,
    squad_windows,
)

import transformers
from absl import app, flags, logging

_TRAIN_FILE = flags.DEFINE_string(
    "train_file", None, "Of SQuAD 1.1, train or dev.", required=True
)
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file", None, "An uncased vocabulary.", required=True
)
_ROUNDS = 3


def ours(train_file, vocab_file, folder):
    """Converts JSON to TFRecord; returns the number of windows."""
    questions = squad_questions.with_one_answer(
        train_file, squad_questions.read(train_file), False
    )
    cutter = squad_windows.Cutter(
        vocabularies.open(vocab_file, do_lower_case=True),
        squad_options.Layout(384, 128, 64),
    )
    path = os.path.join(folder, "train.tf_record")
    return squad_records.write_to_train(path, cutter, questions).count


def theirs(tokenizer, questions):
    """Converts questions to lists of features; returns the window count."""
    starts, ends = [], []
    for i in range(0, len(questions), 1000):
        batch = questions[i : i + 1000]
        features = tokenizer(
            [question.text for question in batch],
            [question.context for question in batch],
            truncation="only_second",
            max_length=384,
            # Overlap of two windows that gives the same window count as ours.
            stride=256 - 16,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            padding="max_length",
        )
        sources = features["overflow_to_sample_mapping"]
        for row, offsets in enumerate(features["offset_mapping"]):
            answer = batch[sources[row]].answers[0]
            end = answer.start + len(answer.text)
            segments = features.sequence_ids(row)
            first = segments.index(1)
            last = len(segments) - 1 - segments[::-1].index(1)
            if offsets[first][0] > answer.start or offsets[last][1] < end:
                starts.append(0)
                ends.append(0)
                continue
            while first <= last and offsets[first][0] <= answer.start:
                first += 1
            while offsets[last][1] >= end:
                last -= 1
            starts.append(first - 1)
            ends.append(last + 1)
    return len(starts)


def main(_):
    """Measures both in turn and prints the ratio."""
    logging.set_verbosity(logging.ERROR)
    train_file, vocab_file = _TRAIN_FILE.value, _VOCAB_FILE.value
    tokenizer = transformers.BertTokenizer(vocab_file)
    questions = squad_questions.with_one_answer(
        train_file, squad_questions.read(train_file), False
    )
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            windows = ours(train_file, vocab_file, folder)
            seconds["ours"].append(time.process_time() - start)
        start = time.process_time()
        their_windows = theirs(tokenizer, questions)
        seconds["theirs"].append(time.process_time() - start)
    rates = {name: len(questions) / min(x) for name, x in seconds.items()}
    print(f"{len(questions)} questions; {windows} and {their_windows} windows")
    for name, rate in rates.items():
        print(f"{name}: {rate:,.0f} questions per second of one core")
    print(f"ratio: {rates['ours'] / rates['theirs']:.1f}")


if __name__ == "__main__":
    app.run(main)
