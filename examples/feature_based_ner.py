r"""Tags words with an LSTM on BERT's frozen features (table 7 of the paper).

    python examples/feature_based_ner.py --init_checkpoint=$BERT_BASE_DIR \
        --train_file=train.conll --dev_file=dev.conll --test_file=test.conll

For each of the paper's six choices of layers, every word gets the vector of its
first token. A BiLSTM of two layers of 768 units and a dense layer are trained
on them (section 5.3); BERT itself is never changed. Prints the entities' F1 for
each choice, or the accuracy if labels are for single words, at the epoch that
is best on the dev file. CoNLL-2003 as released needs --scheme=IOB1.

Results: see "frozen features" in benchmarks/RESULTS.md.
"""

import itertools

from bert_tf import options
from bert_tf.flags import command_line, flag_sections
from bert_tf.tasks.tagging import conll, schemes

# ---- Flags ------------------------------------------------------------------

_MODEL = flag_sections.Section("Model")
_DATA = flag_sections.Section("Data")
_TRAINING = flag_sections.Section("Training")

_INIT_CHECKPOINT = _MODEL.input_path(
    "init_checkpoint", "A checkpoint with config and vocabulary.", required=True
)
_DO_LOWER_CASE = _MODEL.boolean(
    "do_lower_case", True, "True for uncased models, False for cased ones."
)
_TRAIN_FILE = _DATA.input_path(
    "train_file", "Training file, in CoNLL format.", required=True
)
_DEV_FILE = _DATA.input_path(
    "dev_file", "Dev file, to choose the best epoch.", required=True
)
_TEST_FILE = _DATA.input_path("test_file", "To score too.")
_SCHEME = _DATA.choice(
    "scheme",
    None,
    (*schemes.SCHEMES, schemes.NO_SCHEME),
    "How labels spell entities; none where each word is labelled for itself. "
    "By default what the labels look like; IOB1 must be named.",
)
_LABELS = _DATA.words(
    "labels", None, "All labels. By default those of --train_file."
)
_FEATURES = _MODEL.words(
    "features",
    [
        *("embeddings", "second_to_last", "last"),
        *("weighted_sum_last_four", "concat_last_four", "sum_all"),
    ],
    f"Choices of layers, of {', '.join(options.FEATURES)}.",
)
_MAX_SEQ_LENGTH = _DATA.integer(
    "max_seq_length", 128, "Pieces of a sentence; words behind are O.", 4
)
_LSTM_SIZE = _TRAINING.integer("lstm_size", 768, "Units a direction.", 1)
_LEARNING_RATE = _TRAINING.number("learning_rate", 1e-3, "Adam's.", 0)
_BATCH_SIZE = _TRAINING.integer("batch_size", 32, "Sentences.", 1)
_EPOCHS = _TRAINING.integer("epochs", 10, "Passes over the file.", 1)
_SEED = _TRAINING.integer("seed", 12345, "Of weights and order.", 0)

command_line.start(__name__)

from bert_tf.checkpoints import formats, restoring, trained_models
from bert_tf.encoders import families
from bert_tf.tasks.features import extraction, feature_layers, feature_lines
from bert_tf.tasks.tagging import tagging_results, tagging_splits

import keras
import numpy as np
import tensorflow as tf
from absl import logging

# Shapes: N sentences, W words of the longest, D size of a feature, C labels.


def as_word(text):
    """Returns a text as one word that does not split a line."""
    word = "".join(text.split())
    return "|" if word == "|||" else word or "?"


def read_features(extractor, reader, sentences):
    """Returns the vectors of the words that fit, N of [words, D]."""
    texts = [" ".join(map(as_word, s.words)) for s in sentences]
    lines = reader.read(texts, first=0)
    return [
        found[np.array(line.starts, int), 0]
        for line, found in zip(lines, extractor.extract(lines), strict=True)
    ]


def batches(vectors, sentences, labels, batch_size, shuffle):
    """Yields features, labels and a mask of real words, padded to [N, W]."""
    ids = {label: i for i, label in enumerate(labels)}

    def rows():
        for found, sentence in zip(vectors, sentences, strict=True):
            numbers = [ids[label] for label in sentence.labels[: len(found)]]
            yield found, numbers, np.ones(len(numbers))

    size = vectors[0].shape[-1]
    dataset = tf.data.Dataset.from_generator(
        rows,
        output_signature=(
            tf.TensorSpec([None, size], tf.float32),
            tf.TensorSpec([None], tf.int32),
            tf.TensorSpec([None], tf.float32),
        ),
    ).cache()
    if shuffle:
        dataset = dataset.shuffle(len(vectors), seed=_SEED.value).repeat()
    return dataset.padded_batch(batch_size)


def make_model(size, number_of_labels):
    """Returns the BiLSTM, from features [N, W, D] to logits [N, W, C]."""

    def bi_lstm():
        lstm = keras.layers.LSTM(_LSTM_SIZE.value, return_sequences=True)
        return keras.layers.Bidirectional(lstm)

    model = keras.Sequential(
        [
            keras.Input([None, size]),
            keras.layers.Masking(),  # Skips padding, which is all zeros.
            bi_lstm(),
            bi_lstm(),
            keras.layers.Dense(number_of_labels),
        ]
    )
    model.compile(
        keras.optimizers.Adam(_LEARNING_RATE.value),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,  # XLA would compile each length separately.
    )
    return model


def score(model, vectors, sentences, labels, scheme):
    """Returns the F1 of the entities that the model finds, or the accuracy."""
    found = []
    for x, _, real in batches(vectors, sentences, labels, 64, shuffle=False):
        best = np.argmax(model.predict_on_batch(x), axis=-1)  # [N, W]
        found += [labels[i] for i in best[real.numpy() > 0]]
    following = iter(found)
    predicted: list[str] = []
    for vector, sentence in zip(vectors, sentences, strict=True):
        predicted += itertools.islice(following, len(vector))
        predicted += [schemes.OUTSIDE] * (len(sentence.words) - len(vector))
    results = tagging_results.results(sentences, predicted, scheme)
    return results[tagging_results.metric(scheme)]


def train(splits, vectors, labels, scheme):
    """Trains on one choice of features; returns split -> best epoch's score."""
    keras.utils.set_random_seed(_SEED.value)
    train_set = vectors["train"]
    model = make_model(train_set[0].shape[-1], len(labels))
    data = iter(
        batches(train_set, splits["train"], labels, _BATCH_SIZE.value, True)
    )
    steps = -(-len(train_set) // _BATCH_SIZE.value)
    best = {"dev": -1.0}
    for epoch in range(1, _EPOCHS.value + 1):
        loss = np.mean(
            [model.train_on_batch(*next(data)) for _ in range(steps)]
        )
        dev = score(model, vectors["dev"], splits["dev"], labels, scheme)
        logging.info("epoch %d: loss %.4f, dev score %.4f", epoch, loss, dev)
        if dev > best["dev"]:
            best = {"dev": dev}
            if "test" in splits:
                best["test"] = score(
                    model, vectors["test"], splits["test"], labels, scheme
                )
    return best


def main(_):
    """Reads, extracts and trains for each choice, and prints the table."""
    paths = {"train": _TRAIN_FILE, "dev": _DEV_FILE, "test": _TEST_FILE}
    files = {
        name: tagging_splits.read(name, flag.value, conll.Columns())
        for name, flag in paths.items()
        if flag.value
    }
    labels, scheme = tagging_splits.find_labels(
        _LABELS.value, _SCHEME.value, files, None
    )
    splits = {name: file.sentences for name, file in files.items()}
    source = formats.open_checkpoint(_INIT_CHECKPOINT.value)
    model_files = trained_models.ModelFiles.load(
        None, None, _DO_LOWER_CASE.value, source
    )
    length = _MAX_SEQ_LENGTH.value
    model_files.config.check_sequence_length(length)
    choices = [feature_layers.Choice(name) for name in _FEATURES.value]
    for choice in choices:
        choice.check(model_files.config.num_blocks)
    model = families.make(model_files.config)
    restoring.restore_weights(model.variables, source)
    reader = feature_lines.Reader(model_files.vocabulary, length, by_word=True)
    table = []
    for choice in choices:
        logging.info("Features: %s", choice.name)
        extractor = extraction.Extractor(
            tf.distribute.get_strategy(), model, choice, "token", 32, length
        )
        vectors = {
            name: read_features(extractor, reader, sentences)
            for name, sentences in splits.items()
        }
        table.append((choice.name, train(splits, vectors, labels, scheme)))
    metric = tagging_results.metric(scheme).removeprefix("eval_")
    names = (f"{split} {metric}" for split in table[0][1])
    print("| features | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(table[0][1]))
    for name, scores in table:
        values = " | ".join(f"{100 * value:.1f}" for value in scores.values())
        print(f"| {name} | {values} |")


if __name__ == "__main__":
    command_line.run(main)
