import gzip
import itertools
import json
import os
import threading

from bert_tf.pretraining_data import corpus
from bert_tf.storage import paths

import pytest


def read(files, reader, unit_bytes=corpus.UNIT_BYTES):
    units = corpus.plan(files, reader.input_format, unit_bytes)
    return [list(corpus.read(unit, reader)) for unit in units]


def flat(lists):
    return list(itertools.chain.from_iterable(lists))


@pytest.fixture
def files(tmp_path):
    """Returns three files of 100, 50 and 20 documents of 20 bytes."""
    paths = []
    for name, number in (("b", 100), ("a", 50), ("c", 20)):
        path = tmp_path / f"{name}.txt"
        path.write_text("".join(f"One. Two {i:08}.\n\n" for i in range(number)))
        paths.append(str(path))
    return paths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<doc id="1" title="x">\nx\n\nthe cat\n</doc>\n', "wikiextractor"),
        ('\n{"text": "the cat"}\n', "jsonl"),
        ("{the cat}\n", ""),
        ("the cat\n<doc \n", ""),
        ("\n", ""),
    ],
)
def test_what_a_text_looks_like(text, expected, tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(text.encode()))
    assert corpus.format_of(str(path), "error") == expected


class TestPlan:
    def test_cuts_large_files_and_joins_small_ones(self, files, caplog):
        units = corpus.plan(files, "lines", 1000)
        a, b, c = sorted(files)
        assert [unit.index for unit in units] == list(range(len(units)))
        assert [
            [(part.file, part.number, part.start, part.end) for part in u.parts]
            for u in units
        ] == [
            [(a, 0, 0, None)],
            *([(b, 1, 0, 1000)], [(b, 1, 1000, None)]),
            [(c, 2, 0, None)],
        ]
        assert [unit.size for unit in units] == [1000, 1000, 1000, 400]
        (unit,) = corpus.plan(files, "lines")
        assert [part.file for part in unit.parts] == [a, b, c]
        assert unit.size == 3400
        # The order of the files does not matter, and a file is read once.
        again = corpus.plan([c, a, b, a], "lines", 300)
        assert caplog.messages == [f"{a} is named 2 times: it is read once."]
        assert again == corpus.plan(files, "lines", 300)

    def test_processes_that_have_work(self):
        # The second is compressed: a file of 160 MB is one unit.
        for sizes, expected in (([1, 2, 3], 3), ([160 << 20, 1], 10)):
            units = [corpus.Unit(i, (), x) for i, x in enumerate(sizes)]
            assert corpus.parallelism(units) == expected

    def test_reads_a_file_of_several_names_once(self, files, tmp_path):
        (tmp_path / "z.txt").symlink_to(files[0])
        folder, name = files[1].rsplit("/", 1)
        others = [*files, f"{tmp_path}/z.txt", f"{folder}/./{name}"]
        units = corpus.plan(others, "lines", 1000)
        # Only the first matching name is read.
        read, expected = (
            [{x.file.replace("/./", "/") for x in u.parts} for u in plan]
            for plan in (units, corpus.plan(files, "lines", 1000))
        )
        assert read == expected

    def test_asks_for_sizes_at_once(self, files, monkeypatch):
        """In a bucket, each request takes a tenth of a second."""
        together, stat = threading.Barrier(len(files)), paths.stat

        def wait(file):
            together.wait(timeout=20)  # Breaks if the calls don't overlap.
            return stat(file)

        expected = corpus.plan(files, "lines", 1000)
        monkeypatch.setattr(paths, "stat", wait)
        assert corpus.plan(files, "lines", 1000) == expected

    def test_compressed_files_are_whole_and_count_for_more(self, tmp_path):
        paths = [str(tmp_path / f"{name}.gz") for name in "abc"]
        for path in paths:
            (tmp_path / path).write_bytes(bytes(100))
        units = corpus.plan(paths, "lines", 900)
        assert [len(unit.parts) for unit in units] == [2, 1]
        assert len(corpus.plan(paths, "lines", 10)) == 3

    def test_units_are_of_16_megabytes(self, tmp_path):
        path = tmp_path / "a.txt"
        path.touch()
        os.truncate(path, 40 << 20)  # Only sizes count.
        assert len(corpus.plan([str(path)], "lines")) == 3


class TestRead:
    @pytest.mark.parametrize("unit_bytes", [10, 90, 1000, 10_000])
    def test_all_documents_once(self, files, unit_bytes):
        reader = corpus.Reader()
        documents = flat(read(files, reader, unit_bytes))
        assert documents == flat(read(files, reader))
        assert len(documents) == 170
        keys = [document.key for document in documents]
        assert len(set(keys)) == 170
        # Keys combine the file's index (sorted) and the offset in the file.
        assert keys[:2] == [0, 20]
        assert keys[50] == 1 << 40

    @pytest.mark.parametrize(
        "input_format", ["documents", "files", "jsonl", "wikiextractor"]
    )
    def test_splits_sentences(self, tmp_path, input_format):
        text = 'The U.S. Army and Dr. J. K. Lee paid $3.50. "Yes!" They left.'
        first = "The U.S. Army and Dr. J. K. Lee paid $3.50."
        expected = [first, '"Yes!"', "They left."]
        if input_format == "jsonl":
            text = json.dumps({"text": text})
        elif input_format == "wikiextractor":
            text = f'<doc id="1">\nTitle\n\n{text}\n</doc>'
        elif input_format == "files":
            text = text.replace(" J.", "\nJ.")
            expected[0] = expected[0].replace(" J.", "\nJ.")
        path = tmp_path / "a"
        path.write_text(text + "\n")
        reader = corpus.Reader(input_format)
        ((document,),) = read([str(path)], reader)
        assert document.sentences == expected

    @pytest.mark.parametrize("input_format", corpus.FORMATS[:5])
    def test_where_there_are_no_sentences(self, tmp_path, input_format):
        """In lines of symbols, any character may be part of a symbol."""
        row = "A.1 COMPARE_OP:!= ?.x W?Z 3.Foo"
        texts = {
            "jsonl": json.dumps({"text": row}),
            "wikiextractor": f'<doc id="1">\nTitle\n\n{row}\n</doc>',
        }
        path = tmp_path / "a"
        path.write_text(texts.get(input_format, row) + "\n")
        (unit,) = corpus.plan([str(path)], input_format)
        reader = corpus.Reader(input_format)
        (document,) = corpus.read(unit, reader, has_sentences=False)
        assert document.sentences == [row]

    def test_paragraphs_of_symbols(self, tmp_path):
        """Blank lines separate documents in `files`; lines do in jsonl."""
        text = "\n\nA1 B2\nC3\n \nD4\n\n\nE5 F6\n\n"
        in_jsonl = json.dumps({"text": text})
        path = tmp_path / "a"
        for input_format, written, expected in (
            ("files", text, ["A1 B2\nC3", "D4", "E5 F6"]),
            ("jsonl", in_jsonl, ["A1 B2", "C3", "D4", "E5 F6"]),
        ):
            path.write_text(written + "\n")
            unit = corpus.plan([str(path)], input_format)[0]
            reader = corpus.Reader(input_format)
            (document,) = corpus.read(unit, reader, has_sentences=False)
            assert [x.strip() for x in document.sentences] == expected

    def test_languages(self, tmp_path):
        path = tmp_path / "a"
        path.write_text("今天天气很好。我们去公园吧！好吗？\n")
        ((document,),) = read([str(path)], corpus.Reader("documents"))
        assert len(document.sentences) == 3
        path.write_text("Er kam am 3. Mai, d.h. gestern. Sie auch.\n")
        reader = corpus.Reader("documents", language="de")
        ((document,),) = read([str(path)], reader)
        assert document.sentences[-1] == "Sie auch."
        # Empty documents are counted.
        path.write_text("One.\n\n \nTwo.\n")
        (documents,) = read([str(path)], corpus.Reader("documents"))
        assert [x.sentences for x in documents] == [["One."], [], [], ["Two."]]

    @pytest.mark.parametrize("language", ["en", "fr", "ru", "zh"])
    def test_spaces_before_periods(self, tmp_path, language):
        # All white space characters in Unicode's basic plane.
        spaces = [c for c in map(chr, range(0x10000)) if c.isspace()]
        text = "".join(f"Vitamin C{c}. So did I{c}{c}. " for c in spaces)
        path = tmp_path / "a"
        # Of a file of one line, a carriage return would be an error.
        text = "\n" + text.replace("\n", " ") + "\n"
        path.write_text(text, encoding="utf-8", newline="")
        reader = corpus.Reader("documents", language=language)
        (_, document) = flat(read([str(path)], reader))
        assert " ".join(document.sentences).split() == text.split()


class TestPieces:
    def test_are_of_bounded_size(self):
        documents = [corpus.Document(i, ["x"], 30) for i in range(100)]
        pieces = list(corpus.pieces(documents, 100))
        assert flat(pieces) == documents
        assert {len(piece) for piece in pieces[:-1]} == {6}  # 2 x 100 bytes
        # A large document is a separate piece.
        documents = [corpus.Document(x, ["x"], x) for x in (1, 999, 2)]
        assert list(map(len, corpus.pieces(documents, 10))) == [1, 1, 1]
        assert list(corpus.pieces([], 10)) == []

    def test_a_unit_is_one_piece(self, files):
        reader = corpus.Reader()
        for unit in corpus.plan(files, "lines", 200):
            documents = list(corpus.read(unit, reader))
            assert list(corpus.pieces(documents, 200)) == [documents]
