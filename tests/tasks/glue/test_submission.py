import zipfile

from bert_tf.tasks.glue import glue_submission

import pytest

_LABELS = {"STS-B.tsv": "2.500", "QNLI.tsv": "entailment"}
_LABELS |= dict.fromkeys(("AX.tsv", "MNLI-m.tsv", "MNLI-mm.tsv"), "neutral")
_LABELS["RTE.tsv"] = "not_entailment"


def _write(folder, file, *labels):
    rows = "".join(f"{i}\t{label}\n" for i, label in enumerate(labels))
    (folder / file).write_text("index\tprediction\n" + rows)
    return str(folder / file)


@pytest.fixture
def files(tmp_path):
    """Returns all files, with two predictions each."""
    return {
        name: _write(tmp_path, name, *[_LABELS.get(name, "1")] * 2)
        for name in glue_submission.FILES
    }


_TWO = dict.fromkeys(glue_submission.FILES, 2)


def test_zip_holds_the_files_at_its_root(files, tmp_path):
    path = tmp_path / "submission.zip"
    glue_submission.write_zip(str(path), files, _TWO)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        # The names in the server's FAQ and its sample_submission.zip.
        assert sorted(archive.namelist()) == [
            *("AX.tsv", "CoLA.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "MRPC.tsv"),
            *("QNLI.tsv", "QQP.tsv", "RTE.tsv", "SST-2.tsv", "STS-B.tsv"),
            "WNLI.tsv",
        ]
        assert archive.read("RTE.tsv") == (
            b"index\tprediction\n0\tnot_entailment\n1\tnot_entailment\n"
        )
    before = path.read_bytes()
    glue_submission.write_zip(str(path), files, _TWO)
    assert path.read_bytes() == before
    assert not (tmp_path / "submission.zip.tmp").exists()


@pytest.mark.parametrize("name", ["CoLA", "MRPC", "STS-B", "QNLI", "RTE"])
def test_sizes_are_those_of_the_released_test_sets(name, shared_data):
    lines = (shared_data / "glue" / name / "test.tsv").read_bytes().count(b"\n")
    assert glue_submission.TEST_ROWS[f"{name}.tsv"] == lines - 1


def test_zip_of_few_rows_names_the_file(files, tmp_path):
    with pytest.raises(ValueError, match=r"AX.tsv: expected.* 1104 predictio"):
        glue_submission.write_zip(str(tmp_path / "x.zip"), files)
    del files["RTE.tsv"]
    with pytest.raises(ValueError, match=r"wants 11 files\. Missing: RTE"):
        glue_submission.write_zip(str(tmp_path / "x.zip"), files, _TWO)
    assert not (tmp_path / "x.zip").exists()


_HEADER = "index\tprediction\n"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("RTE", "", "expected a header and 2 predictions"),
        ("RTE", "id\tlabel\n", r"RTE.tsv, line 1: expected the header"),
        ("RTE", "0\tentailment\n1\tentailment\n", "line 1: expected the h"),
        ("RTE", f"{_HEADER}0\tentailment\n", "Received: 1 predictions"),
        ("CoLA", f"{_HEADER}0\t1\n1\t1\n2\t1\n", "Received: 3 predictions"),
        ("CoLA", f"{_HEADER}1\t1\n2\t1\n", "line 2: expected the index 0"),
        ("CoLA", f"{_HEADER}0 1\n", "line 2: .* Received: '0 1'"),
        (
            *("CoLA", f"{_HEADER}0\t1\n1\t2\n"),
            "line 3: unknown label. Expected one of 0, 1. Received: '2'",
        ),
        (
            *("MNLI-m", f"{_HEADER}0\tnot_entailment\n"),
            "line 2: unknown label. Expected one of contradiction, entailment",
        ),
        (
            *("STS-B", f"{_HEADER}0\t5.001\n"),
            "line 2: expected a score from 0 to 5. Received: label='5.001'",
        ),
        ("STS-B", f"{_HEADER}0\tnan\n", "Received: label='nan'"),
        ("STS-B", f"{_HEADER}0\tx\n", "Received: label='x'"),
    ],
)
def test_faults_are_found(tmp_path, file, text, message):
    path = tmp_path / f"{file}.tsv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        glue_submission.check(str(path), path.name, 2)
