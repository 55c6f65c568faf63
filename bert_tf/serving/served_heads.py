"""Registry of heads: weights, inputs, outputs and training script of each.

To add a custom head, register it before flags are parsed; scripts can then
export it and predict with it:

    served_heads.register(
        served_heads.Head(
            weights=names.Head("mine", {"cls/mine/output_weights": "1D"}),
            asks=serving_lines.Form(("text_a", "text_b")),
            make=make,
            describe=lambda row, _: {"mine": float(row["mine"])},
            trained_by="train_mine.py",
        )
    )
"""

import dataclasses
from collections.abc import Callable, Sequence

from bert_tf import options
from bert_tf.checkpoints import names
from bert_tf.errors import InputError
from bert_tf.exporting import saved_model
from bert_tf.serving import answers, elsewhere, makers, serving_lines


@dataclasses.dataclass(frozen=True)
class Head:
    """A head that can be applied to raw text.

    Attributes:
        weights: Its name, and the variables it adds to an encoder's.
        asks: Form of the input lines; the model takes inputs by the same names.
        make: Returns a model of raw text from a checkpoint with this head and
            its files.
        describe: Converts the model's outputs for a line and the names of its
            classes to an answer in JSON.
        trained_by: The script that trains it, for error messages.
        usual_length: Default number of tokens that it reads at a time.
        around: Wraps another runtime's model as one of raw text; None if the
            head supports only SavedModels.
    """

    weights: names.Head
    asks: serving_lines.Form
    make: makers.Maker
    describe: Callable[[answers.Row, Sequence[str]], answers.Answer]
    trained_by: str
    usual_length: int = 128
    around: Callable[[elsewhere.Elsewhere], saved_model.Export] | None = None

    @property
    def name(self) -> str:
        """The value of `--head`."""
        return self.weights.name


# By name.
HEADS: dict[str, Head] = {}


def register(head: Head) -> None:
    """Adds a head; InputError if its name or variables are taken."""
    if HEADS.get(head.name, head) != head:
        raise InputError(
            "There is a head of this name already: choose another. "
            f"Received: name={head.name!r}"
        )
    names.register(head.weights)
    HEADS[head.name] = head
    if head.name not in options.SERVED_HEADS:
        options.SERVED_HEADS.append(head.name)


for _head in (
    Head(
        names.HEADS["encoder"],
        asks=serving_lines.ENCODER,
        make=makers.encoder,
        describe=answers.encoder,
        trained_by="run_pretraining.py",
        around=elsewhere.Elsewhere.encoder,
    ),
    Head(
        names.HEADS["masked_lm"],
        asks=serving_lines.MASKED_LM,
        make=makers.masked_lm,
        describe=answers.masked_lm,
        trained_by="run_pretraining.py",
        around=elsewhere.Elsewhere.masked_lm,
    ),
    Head(
        names.HEADS["next_sentence"],
        asks=serving_lines.NEXT_SENTENCE,
        make=makers.next_sentence,
        describe=answers.next_sentence,
        trained_by="run_pretraining.py",
        around=elsewhere.Elsewhere.next_sentence,
    ),
    Head(
        names.HEADS["classification"],
        asks=serving_lines.CLASSIFICATION,
        make=makers.classification,
        describe=answers.classification,
        trained_by="run_classifier.py",
        around=elsewhere.Elsewhere.classification,
    ),
    Head(
        names.HEADS["tagging"],
        asks=serving_lines.TAGGING,
        make=makers.tagging,
        describe=answers.tagging,
        trained_by="run_ner.py",
        around=elsewhere.Elsewhere.tagging,
    ),
    Head(
        names.HEADS["span"],
        asks=serving_lines.SPAN,
        make=makers.span,
        describe=answers.span,
        trained_by="run_squad.py",
        around=elsewhere.Elsewhere.span,
        usual_length=384,
    ),
    Head(
        names.HEADS["joint_span"],
        asks=serving_lines.SPAN,
        make=makers.joint_span,
        describe=answers.span,
        trained_by="run_squad.py --answer_head=joint",
        usual_length=384,
    ),
    Head(
        names.HEADS["multiple_choice"],
        asks=serving_lines.MULTIPLE_CHOICE,
        make=makers.multiple_choice,
        describe=answers.multiple_choice,
        trained_by="run_multiple_choice.py",
        around=elsewhere.Elsewhere.multiple_choice,
    ),
    Head(
        names.HEADS["next_piece"],
        asks=serving_lines.NEXT_PIECE,
        make=makers.next_piece,
        describe=answers.next_piece,
        trained_by="run_pretraining.py",
    ),
    Head(
        names.HEADS["seq2seq"],
        asks=serving_lines.SEQ2SEQ,
        make=makers.seq2seq,
        describe=answers.seq2seq,
        trained_by="run_seq2seq.py",
    ),
    Head(
        names.HEADS["replaced_tokens"],
        asks=serving_lines.REPLACED_TOKENS,
        make=makers.token_detector,
        describe=answers.replaced_tokens,
        trained_by="run_pretraining.py",
    ),
):
    register(_head)
