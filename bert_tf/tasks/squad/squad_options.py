"""The options of question answering, which are also flags."""

import dataclasses
from typing import TYPE_CHECKING, Any

from bert_tf import options
from bert_tf.errors import InputError

if TYPE_CHECKING:
    from bert_tf import vocabularies


@dataclasses.dataclass(frozen=True)
class Layout(options.Options):
    """How contexts are cut into windows."""

    max_seq_length: int = options.option(
        384, "Tokens per window: the question and a part of the context.", min=1
    )
    doc_stride: int = options.option(
        128,
        "Tokens from the start of one window to the start of the next.",
        min=1,
    )
    max_query_length: int = options.option(
        64,
        "Max number of tokens in a question; longer ones are truncated.",
        min=1,
    )

    def check_room(self, template: "vocabularies.Template") -> None:
        """Raises InputError unless the longest question leaves some room."""
        special = template.special(2)
        if self.max_seq_length <= self.max_query_length + special:
            raise InputError(
                "max_seq_length must leave room for the context: be more than "
                f"max_query_length + {special}. Received: "
                f"max_seq_length={self.max_seq_length}, "
                f"max_query_length={self.max_query_length}"
            )


@dataclasses.dataclass(frozen=True)
class Search(options.Options):
    """How the answer to a question is found in its windows."""

    n_best_size: int = options.option(
        20,
        "Number of answers in nbest_predictions.json, and of starts and ends "
        "to try in each window.",
        min=1,
    )
    max_answer_length: int = options.option(
        30, "Max number of tokens in an answer.", min=1
    )
    version_2_with_negative: bool = options.option(
        False, "Whether some questions have no answer, as in SQuAD 2.0."
    )

    def allows(self, start: Any, end: Any) -> Any:
        """Returns whether spans have an allowed length.

        `start` and `end` (inclusive) are arrays or tensors that broadcast.
        """
        return (end >= start) & (end - start < self.max_answer_length)


@dataclasses.dataclass(frozen=True)
class JointSearch(Search):
    """How the answer is found by the joint head."""

    start_n_top: int = options.option(
        5,
        "Number of starts to consider per window.",
        min=1,
        only_with="answer_head=joint",
    )
    end_n_top: int = options.option(
        5,
        "Number of ends to consider per start.",
        min=1,
        only_with="answer_head=joint",
    )
