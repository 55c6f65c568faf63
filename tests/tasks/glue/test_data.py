import logging

from bert_tf.tasks.glue import glue_data, glue_runs

import pytest


def _write(folder, file, rows, header="sentence1\tsentence2\tlabel"):
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(f"{header}\n" + "a\tb\tentailment\n" * rows)


@pytest.fixture
def rte(tmp_path):
    _write(tmp_path / "RTE", "train.tsv", 5)
    _write(tmp_path / "RTE", "dev.tsv", 3)
    return tmp_path


def test_data_of_a_task(rte, caplog):
    with caplog.at_level(logging.INFO, "absl"):
        found = glue_data.read_all(["RTE"], str(rte), {})["RTE"]
    assert found.examples == 5
    assert "RTE: 5 train, 3 dev (a part: GLUE's has 2,490 train)" in caplog.text
    files = [str(rte / "RTE" / name) for name in ("train.tsv", "dev.tsv")]
    assert found.digest == glue_runs.digest(files)
    assert found.tests() == {}
    _write(rte / "RTE", "test.tsv", 4)
    assert found.tests() == {"RTE.tsv": str(rte / "RTE" / "test.tsv")}
    with pytest.raises(ValueError, match=r"test.tsv is not.*3000 rows.*: 4"):
        glue_data.check_tests("RTE", found.folder)


def test_a_label_that_does_not_fit_is_found(rte):
    (rte / "RTE" / "dev.tsv").write_text("sentence1\tsentence2\tlabel\na\tb\tx")
    with pytest.raises(ValueError, match=r"RTE/dev.tsv, line 2: unknown label"):
        glue_data.read_all(["RTE"], str(rte), {})


def test_folders_by_other_names(rte):
    (rte / "RTE").rename(rte / "RTE_part")
    found = glue_data.read_all(["RTE"], str(rte), {"RTE": "RTE_part"})
    assert found["RTE"].folder == str(rte / "RTE_part")
    with pytest.raises(ValueError, match=r"for RTE, CoLA in .*: RTE_part$"):
        glue_data.read_all(["RTE", "CoLA"], str(rte), {})


def test_folders_of_the_diagnostic_set(tmp_path):
    assert glue_data.find_folder("AX", str(tmp_path), {}) is None
    for name in ("diagnostic", "AX"):
        _write(tmp_path / name, "diagnostic.tsv", 2)
        folder = glue_data.find_folder("AX", str(tmp_path), {})
        assert folder == str(tmp_path / name)
    assert folder is not None
    assert glue_data.test_files("AX", folder) == {
        "AX.tsv": f"{folder}/diagnostic.tsv"
    }
    with pytest.raises(ValueError, match=r"Expected 1104 rows\. Received: 2"):
        glue_data.check_tests("AX", folder)


def test_mnli_with_and_without_its_mismatched_files(tmp_path):
    folder = tmp_path / "MNLI"
    header = "sentence1\tsentence2\tgold_label"
    _write(folder, "train.tsv", 4, header)
    _write(folder, "dev_matched.tsv", 2, header)
    before = glue_data.read_all(["MNLI"], str(tmp_path), {})["MNLI"]
    _write(folder, "dev_mismatched.tsv", 2, header)
    after = glue_data.read_all(["MNLI"], str(tmp_path), {})["MNLI"]
    assert before.digest != after.digest
    for name in ("test_matched.tsv", "test_mismatched.tsv"):
        _write(folder, name, 2, header)
    assert after.tests() == {
        "MNLI-m.tsv": str(folder / "test_matched.tsv"),
        "MNLI-mm.tsv": str(folder / "test_mismatched.tsv"),
    }
