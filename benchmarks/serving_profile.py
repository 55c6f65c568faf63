r"""Profiles the ops of an export, from raw text to answers.

    python -m benchmarks.serving_profile --saved_model=/models/mrpc/1 \
        --vocab_file=/data/bert_uncased/vocab.txt --shapes "1 x 8" "1 x 32"

The texts are those of `benchmarks.serving`, which times the whole model. For
each shape, prints the total time of each kind of op in microseconds, the number
of ops, and the fraction of the time; medians of --runs, on --threads (one by
default). Ops that only pass on values are counted as `others`. Constant weights
are cached as there.
"""

import argparse
import collections
import os
import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks import serving

_SHOWN = 12  # kinds of ops


def main() -> None:
    """Runs the benchmark."""
    flags = _flags()
    os.environ[serving.KEEP] = str(int(flags.keep_kernels))
    words = serving.read_words(flags.vocab_file)
    with _session(flags.threads) as session:
        run = _load(session, flags.saved_model)
        for shape in flags.shapes:
            texts = serving.make_texts(words, serving.SHAPES[shape])
            _show(shape, [run(texts) for _ in range(flags.runs)])


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--saved_model", required=True)
    parser.add_argument("--vocab_file", required=True)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument(
        "--keep_kernels", action=argparse.BooleanOptionalAction, default=True
    )
    parser.add_argument(
        "--shapes", nargs="+", choices=serving.SHAPES, default=["1 x 8"]
    )
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def _session(threads: int) -> Any:
    import tensorflow as tf

    # A session reports the time of each op without a profiler's overhead.
    v1 = tf.compat.v1
    config = v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1
    )
    return v1.Session(graph=v1.Graph(), config=config)


def _load(session: Any, path: str) -> Any:
    """Returns a function: texts -> (kind of op -> microseconds, -> count)."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (registers the tokenizer's op)

    v1 = tf.compat.v1
    loaded = v1.saved_model.load(session, ["serve"], path)
    signature = loaded.signature_def["serving_default"]
    inputs = sorted(signature.inputs.items())
    fetches = [x.name for x in signature.outputs.values()]
    traced = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)

    def run(texts):
        # The first text input; optional ones are not fed.
        feed = {
            x.name: texts if i == 0 else [""] * len(texts)
            for i, (_, x) in enumerate(inputs)
        }
        session.run(fetches, feed)
        told = v1.RunMetadata()
        session.run(fetches, feed, options=traced, run_metadata=told)
        took: collections.Counter[str] = collections.Counter()
        number: collections.Counter[str] = collections.Counter()
        for device in told.step_stats.dev_stats:
            for node in device.node_stats:
                # "name = Kind(inputs)"
                kind = node.timeline_label.rpartition(" = ")[2]
                kind = kind.partition("(")[0]
                took[kind] += node.op_end_rel_micros - node.op_start_rel_micros
                number[kind] += 1
        return took, number

    return run


def _show(shape: str, runs: Sequence[Any]) -> None:
    kinds = {kind for took, _ in runs for kind in took}
    median = {
        kind: statistics.median(took[kind] for took, _ in runs)
        for kind in kinds
    }
    number = runs[-1][1]
    total = sum(median.values())
    print(f"\n{shape}: {total:.0f} microseconds in {sum(number.values())} ops")
    ordered = sorted(kinds, key=lambda kind: -median[kind])
    rows = [(kind, median[kind], number[kind]) for kind in ordered[:_SHOWN]]
    others = ordered[_SHOWN:]
    rows.append(
        (
            "others",
            sum(median[kind] for kind in others),
            sum(number[kind] for kind in others),
        )
    )
    for kind, microseconds, count in rows:
        share = microseconds / total
        print(f"{kind:36} {microseconds:9.0f} {count:6} {share:7.1%}")


if __name__ == "__main__":
    main()
