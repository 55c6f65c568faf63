"""A file of records, as training and prediction need to know it."""

import dataclasses

from bert_tf.records import record_types


@dataclasses.dataclass(frozen=True)
class RecordFile:
    """A file of records of fixed length, and the number of records.

    Attributes:
        source: The original records, if this file has added features.
    """

    path: str
    count: int
    record_type: record_types.RecordType
    max_seq_length: int
    source: "RecordFile | None" = dataclasses.field(default=None, kw_only=True)

    @property
    def lengths(self) -> dict[str, int]:
        """The value of each symbolic length."""
        return {"S": self.max_seq_length}
