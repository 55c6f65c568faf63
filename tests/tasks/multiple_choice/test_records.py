"""Tests of records of choices, compared with Python's tokenizer."""

from bert_tf.records import reading, record_types
from bert_tf.tasks import text_batches
from bert_tf.tasks.multiple_choice import choice_problems, choice_records
from bert_tf.text import text_graph
from tests import exports, tiny_model
from tests.tasks.multiple_choice import test_saved_model as reference

import numpy as np
import tensorflow as tf


@tiny_model.untraced()
def test_long_problems_are_encoded_a_few_at_a_time(tmp_path, monkeypatch):
    problems = [
        choice_problems.Problem(str(i), "a film " * size, ("good", "a film"), 0)
        for i, size in enumerate((1, 1, 9, 1, 1, 1))
    ]
    encoder = choice_records.Encoder(
        text_graph.BertTokenizer(exports.VOCAB, True), 10
    )
    pack, sizes = encoder._pack, []

    def spy(prompts, own):
        sizes.append(len(prompts))
        return pack(prompts, own)

    encoder._pack = spy
    files = []
    for most in (10**6, 100):
        monkeypatch.setattr(text_batches, "_BATCH_CHARACTERS", most)
        files.append(tmp_path / f"{most}.tf_record")
        assert encoder.write(str(files[-1]), problems).count == 6
    # 14 or 126 characters of prompts, 10 of choices.
    assert sizes == [6, 3, 3]
    assert files[0].read_bytes() == files[1].read_bytes()


@tiny_model.untraced()
def test_rows_are_those_of_python(tmp_path):
    problems = [
        choice_problems.Problem(str(i), prompt, tuple(own), i % 3 or None)
        for i, (prompt, own) in enumerate(
            zip(reference.PROMPTS, reference.CHOICES, strict=True)
        )
    ]
    problems.append(choice_problems.Problem("5", "What", ("a film", "good"), 1))
    tokenizer = text_graph.BertTokenizer(exports.VOCAB, True)
    path = str(tmp_path / "x.tf_record")
    data = choice_records.Encoder(tokenizer, 10).write(path, problems)
    assert (data.count, data.lengths) == (6, {"K": 3, "S": 10})
    reading.check(record_types.MULTIPLE_CHOICE, [path], data.lengths)
    (serialized,) = tf.data.TFRecordDataset(path).batch(9)
    rows = record_types.MULTIPLE_CHOICE.parse(serialized, data.lengths)
    assert rows["label_ids"].numpy().tolist() == [0, 1, 2, 0, 1, 1]
    for i, problem in enumerate(problems):
        for j, choice in enumerate((*problem.choices, "")[:3]):
            ids, segments = reference.python_row(problem.prompt, choice, 10)
            for name, expected in (
                ("input_ids", ids),
                ("segment_ids", segments),
                ("input_mask", [1] * len(ids)),
            ):
                row = np.zeros(10, int)
                row[: len(expected)] = expected
                np.testing.assert_array_equal(rows[name][i, j], row)
