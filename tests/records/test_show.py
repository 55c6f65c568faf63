import dataclasses
import re

from bert_tf.pretraining_data import pretraining_sequences
from bert_tf.records import reading, record_types, show, tfrecord
from bert_tf.vocabularies import word_pieces
from tests import pretraining_records
from tests.vocabularies import byte_pair_samples, signs

import pytest
import tensorflow as tf

VOCABULARY = pretraining_records.VOCABULARY
PIECES = VOCABULARY.pieces


def write(folder, features, **manifest):
    path = folder / "part-00000.tfrecord"
    with tfrecord.Writer(path) as writer:
        writer.write(record_types.PRETRAINING.encode(features))
    if manifest:
        manifest = {"vocab_sha256": VOCABULARY.sha256} | manifest
        pretraining_records.write_manifest([str(path)], **manifest)
    return [str(path)]


# [CLS] w5 [MASK] w7 w8 w9 [SEP] w10 [SEP]: w6 masked, w7 kept, w20 became w8
FEATURES = {
    "input_ids": [2, 5, 4, 7, 8, 9, 3, 10, 3] + [0] * 7,
    "input_mask": [1] * 9 + [0] * 7,
    "segment_ids": [0] * 7 + [1] * 2 + [0] * 7,
    "masked_lm_positions": [2, 3, 4, 0],
    "masked_lm_ids": [6, 7, 20, 0],
    "masked_lm_weights": [1, 1, 1, 0],
    "next_sentence_labels": [1],
}
TOKENS = "[CLS] w5 [MASK→w6] =w7 w20→w8 w9 [SEP] w10 [SEP]"


@pytest.mark.parametrize(
    "manifest, said",
    [
        ({}, "    second segment: is of another document (label 1)"),
        (
            {"objective": "sop"},
            "    second segment: comes before the first: swapped (label 1)",
        ),
        ({"objective": "none"}, None),
    ],
)
def test_marks(tmp_path, manifest, said):
    (text,) = show.show(write(tmp_path, FEATURES, **manifest), VOCABULARY, 5)
    expected = [
        "record 1: part-00000.tfrecord, 9 of 16 tokens, 3 predictions",
        f"  1 {TOKENS}",
        *([said] if said else []),
    ]
    assert text.splitlines() == expected


def _row(template, first, second, label):
    """Returns the features of a row; its only prediction is first[0]."""
    ids, segments = template.row(first, second)
    return {
        "input_ids": ids,
        "input_mask": [1] * len(ids),
        "segment_ids": segments,
        "masked_lm_positions": [len(template.before)],
        "masked_lm_ids": first[:1],
        "masked_lm_weights": [1],
        "next_sentence_labels": [label],
    }


@pytest.mark.parametrize(
    "vocabulary",
    [
        pretraining_records.VOCABULARY,
        # Both texts of a pair have segment 0.
        byte_pair_samples.vocabulary(),
        # The second text has segment 3.
        signs.VOCABULARY,
    ],
    ids=lambda vocabulary: vocabulary.kind,
)
def test_pairs_of_every_kind(tmp_path, vocabulary):
    template, sep = vocabulary.template, vocabulary.template.separator
    first = [20, 21]
    pair = _row(template, first, [22], label=1)
    alone = _row(template, first, [], label=0)
    # A separator that replaces a token separates nothing.
    replaced = {**alone, "input_ids": [*alone["input_ids"]]}
    replaced["input_ids"][len(template.before)] = sep
    said = "    second segment: is of another document (label 1)"
    for features, expected in ((pair, [said]), (alone, []), (replaced, [])):
        (text,) = show.show(write(tmp_path, features), vocabulary, 1)
        assert text.splitlines()[2:] == expected


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_packed(tmp_path, dynamic):
    settings = pretraining_sequences.Settings(
        16, 4, pack=True, dynamic_masking=dynamic, short_seq_prob=0.8
    )
    files = pretraining_records.write_made(tmp_path, settings)
    unmasked = dataclasses.replace(settings, dynamic_masking=True)
    text = pretraining_records.make_sequences(unmasked)
    sequences = set()
    for i in range(len(text)):
        tokens = text.tokens[slice(*text.starts[i : i + 2])]
        sequences.add(" ".join(PIECES[token] for token in tokens))
    shown = list(show.show(files[:1], VOCABULARY, 1000))
    assert len(shown) == reading.count(files[:1])[0]
    found = set()
    for record in shown:
        lines = record.splitlines()
        (number,) = re.findall(r"(\d+) predictions", lines[0])
        marks = "".join(lines[1:])
        assert marks.count("→") + marks.count("=") == int(number) > 0
        for line in lines[1:]:
            if re.match(r" +\d+ \[CLS\]", line):
                line = re.sub(r"\[MASK→(\S+)\]", r"\1", line)
                line = re.sub(r"(\S+)→\S+", r"\1", line).replace("=", "")
                words = line.split()[2:-1]
                words.remove("[SEP]")
                found.add(" ".join(words))
    assert found == sequences


def test_at_most_so_many(tmp_path):
    files = pretraining_records.write(tmp_path, (2, 3))
    for number in (1, 2, 4, 5, 9):
        shown = list(show.show(files, VOCABULARY, number))
        assert len(shown) == min(number, 5)
    assert "record 5: records-1.tfrecord" in shown[-1]


def test_opens_no_more_files_than_it_shows(tmp_path, monkeypatch):
    files = pretraining_records.write(tmp_path, (2, 3, 1))
    opened, check = [], reading.check_lengths

    def checked(file, *more):
        opened.append(file)
        check(file, *more)

    monkeypatch.setattr(reading, "check_lengths", checked)
    assert len(list(show.show(files, VOCABULARY, 2))) == 2
    assert opened == files[:1]


def _refused(files, message, vocabulary=VOCABULARY):
    with pytest.raises(ValueError, match=message):
        list(show.show(files, vocabulary, 1))


class TestRefuses:
    def test_other_vocabularies(self, tmp_path):
        shorter = word_pieces.WordPiece(PIECES[:10], do_lower_case=True)
        message = r"holds the token 20, the vocabulary has 10: give the one"
        _refused(write(tmp_path, FEATURES), message, shorter)
        files = write(tmp_path, FEATURES, vocab_sha256="ab" * 32)
        message = r"was not made with this vocabulary: .* 40 tokens, in the"
        _refused(files, message)

    @pytest.mark.parametrize("number", [-1, 2])
    def test_segment_that_no_row_has(self, tmp_path, number):
        segments = [0] * 7 + [number] * 2 + [0] * 7
        files = write(tmp_path, FEATURES | {"segment_ids": segments})
        _refused(files, r"record 1: segment_ids must be from 0 to 1\. ")

    @pytest.mark.parametrize(
        "kind",
        [record_types.RecordType("other", ()), record_types.CLASSIFICATION],
    )
    def test_other_records(self, tmp_path, kind):
        path = tmp_path / "records"
        features = {feature.name: [1] for feature in kind.features}
        with tfrecord.Writer(path) as writer:
            writer.write(kind.encode(features))
        _refused([str(path)], "records does not hold pre-train")
        path.write_text("This is text, of which records are still to be made.")
        _refused([str(path)], r"records, record 1: .*TFRecord f")

    def test_what_only_the_manifest_says(self, tmp_path):
        settings = pretraining_sequences.Settings(16, 4, dynamic_masking=True)
        files = pretraining_records.write_made(tmp_path, settings)
        for path in tmp_path.glob("*manifest.json"):
            path.unlink()
        _refused(files, "copy the manifest that belongs")


def test_sentence_order_of_alberts_script(tmp_path):
    files = write(tmp_path, FEATURES)
    example = tf.train.Example.FromString(reading.first(files[0])[0])
    example.features.feature["token_boundary"].int64_list.value.append(1)
    with tf.io.TFRecordWriter(files[0]) as writer:
        writer.write(example.SerializeToString())
    (text,) = show.show(files, VOCABULARY, 1)
    assert text.endswith("comes before the first: swapped (label 1)")
