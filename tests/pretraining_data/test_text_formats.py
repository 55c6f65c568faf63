import functools
import gzip
import itertools
import json
import random
import re
from collections.abc import Sequence

from bert_tf.pretraining_data import text_formats

import numpy as np
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


def paragraphs(*what, **kwargs):
    return [text.paragraphs for text in read(*what, **kwargs)]


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
            *(["One.", "two"], ["three"], ["four"])
        ]
        assert [x.offset for x in texts] == [2, 18, 27]
        assert [x.size for x in texts] == [11, 7, 4]

    def test_documents_and_files(self, write):
        path = write("One. Two.\n\nThree.\n")
        texts = [["One. Two."], [""], ["Three."]]
        assert paragraphs(path, "documents") == texts
        path = write("A long\nsentence.\n\n Two.\n")
        (text,) = read(path, "files")
        assert text.paragraphs == ["A long\nsentence.\n\nTwo."]
        assert (text.offset, text.size) == (0, 24)

    def test_wikiextractor(self, write, tmp_path):
        texts = read(write(ARTICLES), "wikiextractor")
        assert [x.paragraphs for x in texts] == [
            ["Ants live. They work.", "Nests."],
            [],
            ["Bees fly."],
        ]
        starts = [x.start() for x in re.finditer("<doc", ARTICLES)]
        assert [x.offset for x in texts] == starts
        path = tmp_path / "a.gz"
        path.write_bytes(gzip.compress(ARTICLES.encode()))
        assert read(path, "wikiextractor") == texts

    def test_jsonl(self, write):
        rows = [
            {"text": "One.\nTwö.", "id": 1},
            {"text": ""},
            {"id": 2, "text": '\U0001f600 {"text": "three"}'},
        ]
        path = write("\ufeff" + "\n\n".join(map(json.dumps, rows)))
        texts = [["One.", "Twö."], [""], ['\U0001f600 {"text": "three"}']]
        assert paragraphs(path, "jsonl") == texts
        other = write(json.dumps({"body": "x", "text": 1}), "b.jsonl")
        assert paragraphs(other, "jsonl", text_field="body") == [["x"]]

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


_NO_END = ARTICLES + "<doc id='1'>\nTitle\nText\n"


class TestErrors:
    @pytest.mark.parametrize(
        "line, message",
        [
            ("{", r"line 2: not JSON: Expecting property name"),
            ("1" * 5000, r"line 2: not JSON: .* 5000 digits"),
            ("[" * 99999, r"line 2: not JSON: .* recursion depth"),
            ("[1]", r"line 2: not a JSON object. Received: \[1\]"),
            ('{"text": "a", "text": "b"}', "line 2: the key 'text' appears tw"),
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

    def test_what_is_replaced_is_counted(self, write, tmp_path):
        path = write(r'{"text": "a\u0000b\ud800"}')
        (text,) = read(path, "jsonl", on_bad_text="replace")
        assert text.paragraphs == ["a�b���"]
        assert text.replaced == 1
        path = tmp_path / "a.txt"
        path.write_bytes(b"a\xff\nb\nc\0\n\nd\n")
        texts = read(path, "lines", on_bad_text="replace")
        assert [text.replaced for text in texts] == [2, 0]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("\nhello\n", r"line 2: no text of WikiExtr.*hello"),
            (_NO_END, r"line 16: the article.*no </doc>"),
            (_NO_END + _NO_END + "</doc>", r"line 16: the article.*no </doc>"),
        ],
    )
    def test_not_of_wikiextractor(self, write, text, message):
        with pytest.raises(ValueError, match=message):
            read(write(text), "wikiextractor")

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
        splits: dict[str, Sequence[str | bytes]] = {
            "train": [f"One {i}.\nTwo {i}." for i in range(50)],
            "bad": [b"fine", b"a\xff"],
        }
        tfds.dataset_builders.store_as_tfds_dataset(
            name="mine",
            version="1.0.0",
            data_dir=folder,
            features=tfds.features.FeaturesDict(
                {"body": tfds.features.Text(), "number": np.int64}
            ),
            split_datasets={
                name: tf.data.Dataset.from_tensor_slices(
                    {"body": texts, "number": np.arange(len(texts))}
                )
                for name, texts in splits.items()
            },
        )
        return folder / "mine" / "1.0.0"

    @pytest.mark.slow
    def test_examples(self, folder):
        length, size = text_formats.prepare_tfds(str(folder))
        assert length == 50
        assert size > 0
        read = functools.partial(
            paragraphs, input_format="tfds", text_field="body"
        )
        whole = read(folder)
        expected = [[f"One {i}.", f"Two {i}."] for i in range(50)]
        assert sorted(whole) == sorted(expected)
        parts = [(0, 7), (7, 30), (30, None)]
        parts = [read(folder, start=a, end=b) for a, b in parts]
        assert whole == [text for part in parts for text in part]
        # A split selected by name.
        name = f"{folder}@bad"
        assert text_formats.prepare_tfds(name)[0] == 2
        assert sorted(read(name, on_bad_text="replace")) == [["a�"], ["fine"]]
        with pytest.raises(ValueError, match=r"@bad, example [01]: .* UTF-8"):
            read(name)

    def test_errors(self, folder):
        with pytest.raises(ValueError, match=r"splits bad, train: .*: dev"):
            text_formats.prepare_tfds(f"{folder}@dev")
        with pytest.raises(ValueError, match=r"text.*=\['body', 'number'\]"):
            read(folder, "tfds")
        with pytest.raises(ValueError, match=r"example 0: .* Received: int64"):
            read(folder, "tfds", text_field="number")
