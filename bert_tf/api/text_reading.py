"""What a Keras model knows of the texts that it reads."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

from bert_tf import options, vocabularies
from bert_tf.api import arguments
from bert_tf.checkpoints import names, opened, runs, sentence_transformers
from bert_tf.storage import kept_flags
from bert_tf.tasks.squad import squad_options, squad_threshold

# Of a run: what an export reads of them.
_FLAGS = (
    "context",
    "do_lower_case",
    "long_documents",
    "null_score_diff_threshold",
    "scheme",
    "task_name",
    "text_b_column",
    "window_stride",
    *options.names(squad_options.Layout),
    *options.names(squad_options.Search),
)
# Of them, what is true of any head on the same encoder.
_OF_ENCODER = ("do_lower_case", "max_seq_length")


@dataclasses.dataclass(frozen=True)
class Reading:
    """How the texts of a checkpoint became ids, for exports of raw text.

    Attributes:
        path: Of the checkpoint.
        vocab: Its vocabulary; None if it has none.
        do_lower_case: Whether texts were lower-cased; None if it is not said.
        flags: Of its run, as text by name; none if it is of no run.
        head: Whose flags these are; "" if the checkpoint's head is not used.
        max_seq_length: Max tokens that the checkpoint says; None if it does not
            or if its head is not used.
        vectors: What `sentence_transformers.settings` read in its folder.
        pad_to_max: Of the tokenizer that was set.
        masks: Likewise.
    """

    path: str
    vocab: vocabularies.Files | None
    do_lower_case: bool | None
    flags: Mapping[str, str]
    head: str = ""
    max_seq_length: int | None = None
    vectors: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    pad_to_max: bool = True
    masks: bool = False

    @classmethod
    def from_checkpoint(
        cls, path: str, source: opened.Checkpoint, head: str = ""
    ) -> Self:
        """Returns what a checkpoint says.

        Args:
            path: As the user gives it.
            source: The checkpoint that it means.
            head: A key of checkpoints.names.HEADS; "" for the encoder alone.
        """
        is_used = head and names.HEADS[head].variables.keys() <= (
            source.shapes.keys()
        )
        folder = runs.folder_of(path)
        flags = _flags(folder) if folder else {}
        return cls(
            path,
            source.vocab,
            source.do_lower_case,
            flags,
            head if is_used else "",
            source.max_seq_length if is_used or not head else None,
            sentence_transformers.settings(path),
        )

    def flags_for(self, head: str) -> dict[str, str]:
        """Returns the run's flags that apply to a model with this head.

        Flags of classes and of tasks apply to the run's own head only.
        """
        if head == self.head:
            return dict(self.flags)
        return {x: self.flags[x] for x in _OF_ENCODER if x in self.flags}

    def length_for(self, head: str) -> int | None:
        """Returns the max length of a model with this head, if it is known."""
        return self.max_seq_length if head == (self.head or "encoder") else None

    def lower_cases(self) -> bool | None:
        """Returns whether texts are lower-cased; None if it is not known."""
        text = self.flags.get("do_lower_case")
        if text is None:
            return self.do_lower_case
        return arguments.read("do_lower_case", text)

    def to_config(self) -> dict[str, Any]:
        """Returns what Keras writes, for `from_config`."""
        vocab = self.vocab and self.vocab.to_config()
        copies = {"flags": dict(self.flags), "vectors": dict(self.vectors)}
        return {**vars(self), **copies, "vocab": vocab}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Returns what `to_config` was called of."""
        vocab = config["vocab"] and vocabularies.Files.from_config(
            config["vocab"]
        )
        values = {**config, "vocab": vocab}
        if "vectors" not in values:  # Files of older versions.
            values["vectors"] = sentence_transformers.settings(values["path"])
        return cls(**values)


NOTHING_KNOWN = Reading("", None, None, {})


def _flags(folder: str) -> dict[str, str]:
    texts = kept_flags.of_folder(folder)
    # That it is empty says that there was one text: of no run it may be two.
    flags = {"text_b_column": ""}
    flags |= {name: texts[name] for name in _FLAGS if name in texts}
    # The tuned number is in the folder, which may not be there later.
    number = squad_threshold.of_run(texts, folder)
    return flags | ({"null_score_diff_threshold": number} if number else {})
