"""Runs the notebooks in a folder, and stores their outputs.

    python -m tests.notebooks [NAME ...]

executes notebooks/NAME.ipynb, by default all, and stores their outputs in them,
except what differs between runs: times, speeds and paths.
"""

import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks import weights
from tests import hub_server
from tests.scripts import TENSORFLOWS

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "notebooks"
_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

_COLORS = re.compile(r"\x1b\[[\d;]*m")
# A log line that was wrapped at the width of the terminal.
_WRAPPED = re.compile(r"^(\d\d:\d\d:\d\d .*)\n {4,9}(?=\S)", re.MULTILINE)
_VARYING_FIELDS = re.compile(
    r"^\d\d:\d\d:\d\d |  [\d:]+ left|  [\d.,]+ +(sequences|tokens)/s"
    r"|  (memory [\d.]+ GiB|waiting for data \d+%)|(?<=steps) in [\d:]+",
    re.MULTILINE,
)
_VARYING_LINES = re.compile(
    r"/s$|Took [\d.]+ seconds|: took [\d:]+$|Loading libraries|once per start"
    # Progress bars of downloads.
    r"|\d[kMG]?B\s*(\x1b\[A)*$|it/s\]|s/it\]"
)


def execute(
    name: str, folder: pathlib.Path, variables: tuple[str, ...] = ()
) -> tuple[nbformat.NotebookNode, Mapping[str, Any]]:
    """Runs a notebook in a folder with this Python and this clone.

    Args:
        name: Its name in notebooks/.
        folder: The working directory of its kernel.
        variables: Names of variables, whose values can be written as JSON.

    Returns:
        The notebook with its outputs, and the values of the variables.
    """
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    values = ", ".join(f"{name!r}: {name}" for name in variables)
    last = f"import json\nprint(json.dumps({{{values}}}))"
    notebook.cells.append(nbformat.v4.new_code_cell(last))
    resources = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(
        notebook, timeout=1800, resources=resources, record_timing=False
    )
    with _hub() as hub:
        client.execute(env={**os.environ, **hub, **_environment(folder)})
    (output,) = notebook.cells.pop().outputs
    return notebook, json.loads(output.text)


def _environment(folder: pathlib.Path) -> dict[str, str]:
    """Returns variables that locate this clone and the kernel's files."""
    return {
        "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(folder / "ipython"),
        "HF_HOME": str(folder / "hub"),
    }


@contextlib.contextmanager
def _hub() -> Iterator[dict[str, str]]:
    """Serves a model by its name; yields the variables that clients need."""
    hub = hub_server.Hub(models={_MODEL: pathlib.Path(weights.minilm())})
    with hub_server.serve(hub):
        yield {"HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "0"}


def _join(match: re.Match[str]) -> str:
    """Returns the first part of a wrapped line and the separator."""
    is_of_training = match[1][9:].startswith("step ")
    return match[1] + ("  " if is_of_training else " ")


def clean(text: str, paths: list[str]) -> str:
    """Returns printed text without the parts that differ between runs.

    Args:
        text: Output of a cell.
        paths: Folders of this machine, whose lines are dropped.
    """
    text = _COLORS.sub("", text).replace("\r\n", "\n")
    # Keeps only the last state of progress bars.
    text = re.sub(r"[^\n]*\r", "", text)
    while (joined := _WRAPPED.sub(_join, text)) != text:
        text = joined
    lines = _VARYING_FIELDS.sub("", text).split("\n")
    return "\n".join(
        line
        for line in lines
        if not _VARYING_LINES.search(line)
        and not TENSORFLOWS.match(line)
        and not any(path in line for path in paths)
    )


def _clean_outputs(cell: nbformat.NotebookNode, paths: list[str]) -> None:
    printed = [x for x in cell.outputs if x.output_type == "stream"]
    text = clean("".join(x.text for x in printed if x.name == "stdout"), paths)
    cell.outputs = [x for x in cell.outputs if x.output_type != "stream"]
    if text.strip():
        stream = nbformat.v4.new_output("stream", name="stdout", text=text)
        cell.outputs.insert(0, stream)


def store(name: str) -> None:
    """Runs a notebook and writes its outputs into its file."""
    with tempfile.TemporaryDirectory() as folder:
        notebook, _ = execute(name, pathlib.Path(folder))
        paths = [folder, sys.prefix, str(ROOT)]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            _clean_outputs(cell, paths)
    notebook.metadata.language_info = {"name": "python"}
    nbformat.write(notebook, FOLDER / f"{name}.ipynb")


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(x.stem for x in FOLDER.glob("*.ipynb"))
    for each in names:
        store(each)
