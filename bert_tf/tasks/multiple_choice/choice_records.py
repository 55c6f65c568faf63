"""Converts prompts with choices to TFRecords, tokenizing in a graph.

Shapes: B batch, K choices, S sequence length.
"""

import dataclasses
import os
from collections.abc import Sequence

from bert_tf import phases
from bert_tf.errors import counted
from bert_tf.records import record_types, shuffled_writer
from bert_tf.tasks import text_batches
from bert_tf.tasks.multiple_choice import choice_graph, choice_problems
from bert_tf.text import graph_rows

import tensorflow as tf
from absl import logging

_BATCH_SIZE = 256


@dataclasses.dataclass(frozen=True)
class ChoiceRecords(record_types.RecordFile):
    """A file of records of up to K (`choices`) sequences each."""

    choices: int

    @property
    def lengths(self) -> dict[str, int]:
        """The value of each symbolic dimension."""
        return {"K": self.choices, "S": self.max_seq_length}


class Encoder:
    """Writes problems as records, one sequence per choice."""

    def __init__(self, tokenizer: graph_rows.Tokenizer, max_seq_length: int):
        """Traces its graph once, for all files.

        Sequences beyond `max_seq_length` are truncated by choice_graph.
        """
        self._max_seq_length = max_seq_length

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.string),
                tf.TensorSpec([None, None], tf.string),
            ],
            autograph=False,
        )
        def pack(prompts, continuations):  # [B], [B, K]
            rows, is_cut = choice_graph.pack(
                tokenizer,
                prompts,
                continuations,
                max_seq_length,
                pad_to_max=True,
            )
            return rows, tf.math.count_nonzero(is_cut)

        self._pack = pack

    def write(
        self,
        path: str,
        problems: Sequence[choice_problems.Problem],
        seed: int | None = None,
    ) -> ChoiceRecords:
        """Writes one file, in the problems' order unless a seed shuffles it.

        Problems without a label get 0; missing choices are padded with empty
        sequences.
        """
        most = max(len(problem.choices) for problem in problems)
        cut = 0
        phase = phases.Phase("Tokenizing", "problems", len(problems))
        with shuffled_writer.writer(path, seed) as writer:
            for batch in text_batches.of_texts(
                problems, _characters, _BATCH_SIZE
            ):
                rows, number = self._pack(
                    [problem.prompt for problem in batch],
                    [
                        [*x.choices, *[""] * (most - len(x.choices))]
                        for x in batch
                    ],
                )
                cut += int(number)
                columns = {name: x.numpy() for name, x in rows.items()}
                columns["label_ids"] = [x.label or 0 for x in batch]
                writer.write_all(
                    record_types.MULTIPLE_CHOICE.encode_batch(columns)
                )
                phase.add(len(batch))
        phase.close()
        logging.info(
            "Read %s for %s; %d of their %d choices were longer than "
            "%d tokens with their prompt, and were truncated.",
            counted(len(problems), "problem"),
            os.path.basename(path),
            cut,
            sum(len(problem.choices) for problem in problems),
            self._max_seq_length,
        )
        return ChoiceRecords(
            path,
            writer.records,
            record_types.MULTIPLE_CHOICE,
            self._max_seq_length,
            most,
        )


def _characters(problem: choice_problems.Problem) -> int:
    # The prompt's tokens are repeated for each choice.
    prompts = len(problem.prompt) * len(problem.choices)
    return prompts + sum(map(len, problem.choices))
