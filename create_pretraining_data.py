"""Makes pre-training records of text: masked words and next sentences.

The text holds one sentence per line and a blank line between documents.

    python create_pretraining_data.py \
        --input_file=/data/wiki/*.txt \
        --output_dir=/data/wiki_records --num_shards=8 \
        --vocab_file=vocab.txt --do_lower_case=true \
        --max_seq_length=128 --max_predictions_per_seq=20 \
        --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=5

The same text, flags and seed give the same bytes. Writes a manifest beside the
records, which run_pretraining.py takes their lengths and counts from.
"""

import collections
import contextlib
import dataclasses
import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence

from bert_tf import (
    command_line,
    pretraining_data,
    progress,
    records,
    text_ops,
    tokenization,
)

import numpy as np
import tensorflow as tf
from absl import flags, logging
from etils import epath

# ---- Flags ------------------------------------------------------------------

_INPUT_FILE = flags.DEFINE_list(
    "input_file",
    None,
    "Text files or globs, comma separated: one sentence per line, a blank "
    "line between documents.",
    required=True,
)
_OUTPUT_FILE = flags.DEFINE_list(
    "output_file",
    None,
    "TFRecord files to write, comma separated; the records go to each in turn.",
)
_OUTPUT_DIR = flags.DEFINE_string(
    "output_dir",
    None,
    "Folder for part-*.tfrecord and manifest.json, instead of output_file.",
)
_NUM_SHARDS = flags.DEFINE_integer(
    "num_shards", 1, "Files to write to output_dir.", lower_bound=1
)
_VOCAB_FILE = flags.DEFINE_string(
    "vocab_file", None, "The vocabulary, one piece per line.", required=True
)
_DO_LOWER_CASE = flags.DEFINE_bool(
    "do_lower_case",
    True,
    "Whether to lower-case and strip accents: true for uncased models.",
)
_DO_WHOLE_WORD_MASK = flags.DEFINE_bool(
    "do_whole_word_mask", False, "Whether to mask all pieces of a word or none."
)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length", 128, "Tokens per sequence."
)
_MAX_PREDICTIONS_PER_SEQ = flags.DEFINE_integer(
    "max_predictions_per_seq", 20, "Masked tokens per sequence at most."
)
_RANDOM_SEED = flags.DEFINE_integer(
    "random_seed", 12345, "Of all random choices.", lower_bound=0
)
_DUPE_FACTOR = flags.DEFINE_integer(
    "dupe_factor", 10, "Times to use each document, masked differently."
)
_MASKED_LM_PROB = flags.DEFINE_float(
    "masked_lm_prob", 0.15, "Share of the tokens to mask."
)
_SHORT_SEQ_PROB = flags.DEFINE_float(
    "short_seq_prob", 0.1, "Share of the sequences that are made shorter."
)

# Instances masked at a time; few enough to stay in the processor's cache.
_BATCH = 1024
_SECONDS_BETWEEN_LINES = 10.0


class Reporter:
    """Logs how far the work is and how long it will take.

    Args:
        total: The work to do.
    """

    def __init__(self, total: float):
        self.total, self.done = total, 0.0
        self.start = self.last = time.monotonic()

    def add(self, done: float, text: str) -> None:
        """Counts work done; logs at most every ten seconds.

        Args:
            done: The part of `total` that was done since the last call.
            text: What to log, with places for `done` and `rate` (a second).
        """
        self.done += done
        now = time.monotonic()
        if now - self.last < _SECONDS_BETWEEN_LINES:
            return
        self.last = now
        rate = self.done / (now - self.start)
        left = progress.duration((self.total - self.done) / rate)
        logging.info(
            "%s, %s left", text.format(done=self.done, rate=rate), left
        )


# ---- Read, mask, write ------------------------------------------------------


def tokenized_lines(
    files: Sequence[str], tokenizer: text_ops.BertTokenizer
) -> Iterator[pretraining_data.TokenizedLines]:
    """Reads and tokenizes text, reporting how far it is."""
    size = sum(tf.io.gfile.stat(file).length for file in files) / 1e6
    reporter = Reporter(size)
    documents = 0
    tokenize = tf.function(
        tokenizer.tokenize, input_signature=[tf.TensorSpec([None], tf.string)]
    )
    for lines in pretraining_data.read_lines(files):
        ids = tokenize(tf.constant(lines.texts))
        ends = np.array([not text for text in lines.texts])
        yield pretraining_data.TokenizedLines(
            ids.values.numpy(), ids.row_lengths().numpy(), ends
        )
        documents += ends.sum()
        reporter.add(
            lines.size / 1e6,
            f"Read {{done:,.1f}} of {size:,.1f} MB, {documents:,} documents, "
            "{rate:.1f} MB/s",
        )


def write_instances(
    writers: Sequence[records.Writer],
    corpus: pretraining_data.Corpus,
    vocabulary: pretraining_data.Vocabulary,
    settings: pretraining_data.Settings,
    rng: np.random.Generator,
) -> collections.Counter[str]:
    """Writes the masked instances to each writer in turn.

    Returns:
        Counts of what was written.
    """
    pairs = pretraining_data.create_pairs(corpus, settings, rng)
    reporter = Reporter(len(pairs))
    counts: collections.Counter[str] = collections.Counter()
    for start in range(0, len(pairs), _BATCH):
        instances = pretraining_data.create_instances(
            corpus, pairs[start : start + _BATCH], vocabulary, settings, rng
        )
        rows = zip(*instances.values(), strict=True)
        for index, row in enumerate(rows, start):
            record = dict(zip(instances, row, strict=True))
            writer = writers[index % len(writers)]
            writer.write(records.PRETRAINING.encode(record))
        counts += pretraining_data.statistics(instances, vocabulary)
        reporter.add(
            len(instances["input_ids"]),
            f"Wrote {{done:,.0f}} of {len(pairs):,} instances, "
            "{rate:,.0f} per second",
        )
    return counts


# ---- Files ------------------------------------------------------------------


def output_files(
    output_file: Sequence[str] | None, output_dir: str | None, num_shards: int
) -> tuple[list[str], str]:
    """Returns the files to write and the path of their manifest."""
    if output_file and not output_dir:
        if len(set(output_file)) < len(output_file):
            raise ValueError(
                "--output_file must name each file once. "
                f"Received: output_file={output_file}"
            )
        return list(output_file), f"{output_file[0]}.manifest.json"
    if output_dir and not output_file:
        files = [
            os.path.join(
                output_dir, f"part-{shard:05d}-of-{num_shards:05d}.tfrecord"
            )
            for shard in range(num_shards)
        ]
        # Users read *.tfrecord: no file of another run may stand among them.
        others = set(tf.io.gfile.glob(os.path.join(output_dir, "*.tfrecord")))
        if others - set(files):
            raise ValueError(
                f"The folder {output_dir} holds other records, such as "
                f"{min(others - set(files))}: remove them or choose another "
                "--output_dir"
            )
        return files, os.path.join(output_dir, "manifest.json")
    raise ValueError(
        "Give either --output_file or --output_dir. Received: "
        f"output_file={output_file}, output_dir={output_dir}"
    )


def sha256(file: str) -> str:
    """Returns the SHA-256 of a file in hexadecimal."""
    return hashlib.sha256(epath.Path(file).read_bytes()).hexdigest()


def log_summary(totals: Mapping[str, int], seconds: float) -> None:
    """Logs what was read and written."""
    logging.info(
        "Read %s documents, %s sentences, %s tokens (%.2f %% [UNK]).",
        f"{totals['documents']:,}",
        f"{totals['sentences']:,}",
        f"{totals['tokens']:,}",
        100 * totals["unknown_tokens"] / totals["tokens"],
    )
    real, padding = totals["real_tokens"], totals["padding_tokens"]
    logging.info(
        "Wrote %s instances: %.1f tokens each, %.1f %% padding, %.1f %% with "
        "a random next sentence.",
        f"{totals['instances']:,}",
        real / totals["instances"],
        100 * padding / (real + padding),
        100 * totals["random_next"] / totals["instances"],
    )
    chosen = totals["predictions"]
    masked = totals["predictions_masked"]
    unchanged = totals["predictions_unchanged"]
    logging.info(
        "Chose %.1f %% of the tokens to predict; of these %.1f %% are [MASK], "
        "%.1f %% unchanged, %.1f %% random.",
        100 * chosen / real,
        100 * masked / chosen,
        100 * unchanged / chosen,
        100 * (chosen - masked - unchanged) / chosen,
    )
    logging.info("Took %.1f seconds.", seconds)


# ---- Main -------------------------------------------------------------------


def main(_):
    """Reads all text, then writes all records, then the manifest."""
    logging.set_verbosity(logging.INFO)
    start = time.monotonic()
    settings = pretraining_data.Settings(
        max_seq_length=_MAX_SEQ_LENGTH.value,
        max_predictions_per_seq=_MAX_PREDICTIONS_PER_SEQ.value,
        masked_lm_prob=_MASKED_LM_PROB.value,
        do_whole_word_mask=_DO_WHOLE_WORD_MASK.value,
        short_seq_prob=_SHORT_SEQ_PROB.value,
        dupe_factor=_DUPE_FACTOR.value,
    )
    vocab_file, do_lower_case = _VOCAB_FILE.value, _DO_LOWER_CASE.value
    vocab = tokenization.load_vocab(vocab_file)
    tokenization.check_casing(vocab, do_lower_case, vocab_file)
    vocabulary = pretraining_data.Vocabulary.from_vocab(vocab, vocab_file)
    inputs = records.expand(_INPUT_FILE.value)
    outputs, manifest_path = output_files(
        _OUTPUT_FILE.value, _OUTPUT_DIR.value, _NUM_SHARDS.value
    )
    for folder in {os.path.dirname(file) for file in outputs}:
        tf.io.gfile.makedirs(folder or ".")

    tokenizer = text_ops.BertTokenizer(list(vocab), do_lower_case)
    rng = np.random.default_rng(_RANDOM_SEED.value)
    with contextlib.ExitStack() as stack:
        # Opened first: better to fail before the work than after it.
        writers = [
            stack.enter_context(records.Writer(file)) for file in outputs
        ]
        corpus = pretraining_data.build_corpus(
            tokenized_lines(inputs, tokenizer)
        )
        counts = write_instances(writers, corpus, vocabulary, settings, rng)

    totals = corpus.statistics(vocabulary) | counts
    masking = dataclasses.asdict(settings)
    records.Manifest(
        record_type=records.PRETRAINING.name,
        max_seq_length=masking.pop("max_seq_length"),
        max_predictions_per_seq=masking.pop("max_predictions_per_seq"),
        vocab_sha256=sha256(vocab_file),
        vocab_size=len(vocab),
        do_lower_case=do_lower_case,
        masking=masking,
        seed=_RANDOM_SEED.value,
        shards=tuple(
            records.Shard(os.path.basename(writer.path), writer.records)
            for writer in writers
        ),
        statistics=totals,
    ).write(manifest_path)
    log_summary(totals, time.monotonic() - start)


if __name__ == "__main__":
    command_line.run(main)
