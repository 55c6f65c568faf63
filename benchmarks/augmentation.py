"""Times augmentation against one mask per pass, as in TinyBERT's script.

    python -m benchmarks.augmentation --vocab_file=$BERT_BASE_DIR/vocab.txt \
        --input_file=$GLUE_DIR/MRPC/train.tsv --text_a_column="#1 String"

Both run on our code, on the same model with random weights, and with the same
inputs `masked [SEP] original`: augment_data.py as it is, and with one mask and
one sequence per pass. The speed is words with candidates per second. It
includes finding words in the texts, the model, and drawing copies, but not
reading and writing files. After a warm-up round, each runs twice, in turn; the
faster time counts. The slow one runs on a part of the lines, evenly spread.
Prints both speeds and the ratio.
"""

import itertools
import os
import time

from bert_tf import heads, modeling, vocabularies
from bert_tf.exporting import inference
from bert_tf.tasks import tables
from bert_tf.tasks.augmentation import candidates, copies, words

import keras
import tensorflow as tf
from absl import app, flags

_INPUT_FILE = flags.DEFINE_string(
    "input_file", None, "A table of texts.", required=True
)
_COLUMN = flags.DEFINE_string("text_a_column", "sentence", "Of the texts.")
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file", None, "Of the model.", required=True
)
_BERT_CONFIG_FILE = flags.DEFINE_string(
    "bert_config_file", "configs/models/mini.json", "Of the model."
)
_LINES = flags.DEFINE_integer("lines", 2000, "How many of them.", 1)
_EVERY = flags.DEFINE_integer("every", 40, "Which part the slow one has.", 1)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Rows at a time.", 1)
_MAX_SEQ_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "Tokens.", 4)
_COPIES = flags.DEFINE_integer("augmentation_copies", 20, "Of a line.", 1)
_THREADS = flags.DEFINE_integer("threads", os.cpu_count() or 1, "Cores.")
_ROUNDS = 2


def make(**how):
    """Returns a function that augments lines and counts words."""
    keras.utils.set_random_seed(1)
    config = modeling.BertConfig.from_json_file(_BERT_CONFIG_FILE.value)
    vocabulary = vocabularies.open(_VOCAB_FILE.value, do_lower_case=True)
    model = inference.make_inference_model(
        heads.BertMaskedLM(modeling.Bert(config))
    )
    length = _MAX_SEQ_LENGTH.value
    reader = words.Reader(vocabulary, words.STOP_WORDS, length)
    finder = candidates.Finder(model, vocabulary, length, 15, **how)
    settings = copies.Settings(_COPIES.value)

    def augment(lines):
        texts = [reader.read(line) for line in lines]
        for row, (text, found) in enumerate(
            zip(texts, finder.find(texts), strict=True)
        ):
            copies.draw([text], [found], settings, row)
        return sum(len(text.words) for text in texts)

    return augment


def main(_):
    """Measures both in turn and prints the ratio."""
    tf.config.threading.set_intra_op_parallelism_threads(_THREADS.value)
    rows = tables.read_columns(_INPUT_FILE.value, {"text": _COLUMN.value})
    texts = (row["text"] for _, row in rows)
    lines = list(itertools.islice(texts, _LINES.value))
    contenders = {
        "ours": (make(batch_size=_BATCH_SIZE.value), lines),
        "one by one": (
            make(batch_size=1, masked_share=0),
            lines[:: _EVERY.value],
        ),
    }
    best = dict.fromkeys(contenders, 0.0)
    for number in range(1 + _ROUNDS):
        for name, (augment, own) in contenders.items():
            began = time.perf_counter()
            count = augment(own)
            speed = count / (time.perf_counter() - began)
            if number:
                best[name] = max(best[name], speed)
    print(f"{len(lines)} lines, {_THREADS.value} threads")
    for name, speed in best.items():
        print(f"{name:12} {speed:8.1f} words/s")
    print(f"ratio        {best['ours'] / best['one by one']:8.1f}")


if __name__ == "__main__":
    app.run(main)
