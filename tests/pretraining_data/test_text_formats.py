"""Tests of bert_tf/pretraining_data/text_formats.py."""

import gzip
import itertools
import json
import random

from bert_tf.pretraining_data import text_formats

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

ARTICLES = """<doc id="1" url="u" title="Ants">
Ants

Ants live. They work.
Nests.
</doc>

<doc id="2" title="Empty">
Empty

</doc>
<doc id="3" title="Bees">
Bees
Bees fly.
</doc>
"""


def read(path, input_format, **kwargs):
    source = text_formats.Source(str(path), **kwargs)
    return list(text_formats.read(source, input_format))


def paragraphs(path, input_format, **kwargs):
    return [text.paragraphs for text in read(path, input_format, **kwargs)]


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.txt"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


class TestFormats:
    def test_lines(self, write):
        path = write("\n\nOne. \n two\n\n \u00a0\nthree\r\n\r\nfour")
        texts = read(path, "lines")
        assert [x.paragraphs for x in texts] == [
            ["One.", "two"],
            ["three"],
            ["four"],
        ]
        assert [x.offset for x in texts] == [2, 18, 27]
        assert [x.size for x in texts] == [11, 7, 4]

    def test_documents(self, write):
        path = write("One. Two.\n\nThree.\n")
        assert paragraphs(path, "documents") == [
            ["One. Two."],
            [""],
            ["Three."],
        ]

    def test_files(self, write):
        path = write("A long\nsentence.\n\n Two.\n")
        (text,) = read(path, "files")
        assert text.paragraphs == ["A long\nsentence.\n\nTwo."]
        assert (text.offset, text.size) == (0, 24)

    def test_wikiextractor(self, write):
        texts = read(write(ARTICLES), "wikiextractor")
        assert [x.paragraphs for x in texts] == [
            ["Ants live. They work.", "Nests."],
            [],
            ["Bees fly."],
        ]
        assert [x.offset for x in texts] == [
            i for i in range(len(ARTICLES)) if ARTICLES.startswith("<doc", i)
        ]

    def test_jsonl(self, write):
        rows = [
            {"text": "One.\nTwö.", "id": 1},
            {"text": ""},
            {"id": 2, "text": '\U0001f600 {"text": "three"}'},
        ]
        path = write("\ufeff" + "\n\n".join(map(json.dumps, rows)))
        assert paragraphs(path, "jsonl") == [
            ["One.", "Twö."],
            [""],
            ['\U0001f600 {"text": "three"}'],
        ]
        other = write(json.dumps({"body": "x", "text": 1}), "b.jsonl")
        assert paragraphs(other, "jsonl", text_field="body") == [["x"]]

    def test_compressed(self, tmp_path):
        path = tmp_path / "a.gz"
        path.write_bytes(gzip.compress(ARTICLES.encode()))
        assert len(read(path, "wikiextractor")) == 3

    @pytest.mark.parametrize(
        "input_format", sorted(text_formats.FORMATS.keys() - {"tfds"})
    )
    def test_empty_file(self, write, input_format):
        assert read(write(""), input_format) == []


def random_text(input_format, rng):
    words = ["Größe", "a", "東京", "word.", "\u3000"]
    out = []
    for number in range(40):
        lines = [
            " ".join(rng.choices(words, k=rng.randint(1, 9)))
            for _ in range(rng.randint(0, 4))
        ]
        if input_format == "wikiextractor":
            out += [f'<doc id="{number}">', "Title", *lines, "</doc>"]
            out += [""] * rng.randint(0, 2)
        elif input_format == "jsonl":
            record = {"text": "\n".join(lines)}
            out += [json.dumps(record, ensure_ascii=rng.random() < 0.5)]
        elif input_format == "documents":
            out += [" ".join(lines)]
        else:
            out += lines + [""] * rng.randint(1, 3)
    return "\n".join(out)


class TestRanges:
    @pytest.mark.parametrize("size", [1, 7, 50, 400, 3000])
    @pytest.mark.parametrize(
        "input_format", ["lines", "documents", "wikiextractor", "jsonl"]
    )
    def test_each_document_is_in_one_range(self, write, input_format, size):
        text = random_text(input_format, random.Random(size))
        path = write(text)
        borders = [*range(0, len(text.encode()), size), None]
        parts = [
            read(path, input_format, start=start, end=end)
            for start, end in itertools.pairwise(borders)
        ]
        whole = read(path, input_format)
        assert len(whole) > 20
        assert [text for part in parts for text in part] == whole
        for start, end, part in zip(borders, borders[1:], parts, strict=False):
            if input_format != "lines":  # where the blank line counts
                assert all(start <= text.offset for text in part)
                assert all(end is None or text.offset < end for text in part)


class TestErrors:
    @pytest.mark.parametrize(
        "line, message",
        [
            ("{", r"line 2: not JSON: Expecting property name"),
            ("1" * 5000, r"line 2: not JSON: .* 5000 digits"),
            ("[" * 99999, r"line 2: not JSON: .* recursion depth"),
            ("[1]", r"line 2: not a JSON object. Received: \[1\]"),
            ('{"body": ""}', r"line 2: no field 'text': .*fields=\['body'\]"),
            ('{"text": 3}', r"'text' must be a string. Received: 3"),
            (r'{"text": "a\u0000"}', r"line 2: no text has a NUL"),
            (r'{"text": "\ud800"}', r"line 2: the text must be UTF-8"),
        ],
    )
    def test_jsonl(self, write, line, message):
        path = write('{"text": "fine"}\n' + line)
        with pytest.raises(ValueError, match=message):
            read(path, "jsonl")

    def test_jsonl_replaced(self, write):
        path = write(r'{"text": "a\u0000b\ud800"}')
        (text,) = read(path, "jsonl", on_bad_text="replace")
        assert text.paragraphs == ["a�b���"]
        assert text.replaced == 1

    def test_replaced_lines_are_counted(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_bytes(b"a\xff\nb\nc\0\n\nd\n")
        texts = read(path, "lines", on_bad_text="replace")
        assert [text.replaced for text in texts] == [2, 0]

    def test_not_of_wikiextractor(self, write):
        message = r"line 2: no text of WikiExtr.*hello"
        with pytest.raises(ValueError, match=message):
            read(write("\nhello\n"), "wikiextractor")

    @pytest.mark.parametrize("end", ["", "<doc id='2'>\nTitle\nText\n</doc>\n"])
    def test_article_without_end(self, write, end):
        path = write(ARTICLES + "<doc id='1'>\nTitle\nText\n" + end)
        message = r"line 16: the article.*no </doc>"
        with pytest.raises(ValueError, match=message):
            read(path, "wikiextractor")

    @pytest.mark.parametrize(
        "input_format", ["lines", "files", "wikiextractor"]
    )
    def test_a_document_that_is_too_long(
        self, write, input_format, monkeypatch
    ):
        monkeypatch.setattr(text_formats, "_MAX_DOCUMENT", 100)
        path = write("\n<doc id=1>\n" + "word\n" * 30 + "</doc>\n")
        with pytest.raises(ValueError, match=r"line [12]: the document .*MB"):
            read(path, input_format)


class TestTfds:
    @pytest.fixture(scope="class")
    @staticmethod
    def folder(tmp_path_factory):
        folder = tmp_path_factory.mktemp("tfds")
        texts = [f"One {i}.\nTwo {i}." for i in range(50)]
        bad = [b"fine", b"a\xff"]
        tfds.dataset_builders.store_as_tfds_dataset(
            name="mine",
            version="1.0.0",
            data_dir=folder,
            features=tfds.features.FeaturesDict({"body": tfds.features.Text()}),
            split_datasets={
                "train": tf.data.Dataset.from_tensor_slices({"body": texts}),
                "bad": tf.data.Dataset.from_tensor_slices({"body": bad}),
            },
        )
        return folder / "mine" / "1.0.0"

    def test_examples(self, folder):
        length, size = text_formats.prepare_tfds(str(folder))
        assert length == 50
        assert size > 0
        whole = paragraphs(folder, "tfds", text_field="body")
        assert sorted(whole) == sorted(
            [f"One {i}.", f"Two {i}."] for i in range(50)
        )
        parts = [(0, 7), (7, 30), (30, None)]
        assert whole == [
            text
            for start, end in parts
            for text in paragraphs(
                folder, "tfds", start=start, end=end, text_field="body"
            )
        ]

    def test_split_by_name(self, folder):
        name = f"{folder}@bad"
        assert text_formats.prepare_tfds(name)[0] == 2
        texts = paragraphs(
            name, "tfds", text_field="body", on_bad_text="replace"
        )
        assert sorted(texts) == [["a�"], ["fine"]]
        with pytest.raises(ValueError, match=r"@bad, example [01]: .* UTF-8"):
            paragraphs(name, "tfds", text_field="body")

    def test_errors(self, folder):
        with pytest.raises(ValueError, match=r"splits bad, train: .*: dev"):
            text_formats.prepare_tfds(f"{folder}@dev")
        with pytest.raises(ValueError, match=r"text.*features=\['body'\]"):
            read(folder, "tfds")
