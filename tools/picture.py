"""Draws the picture of docs/architecture.md: components and their imports.

    python -m tools.picture

It runs `dot` of Graphviz. The result is in the repository, so that only those
who change imports between components need it.
"""

import pathlib
import shutil
import subprocess
import sys

from tools.lint import architecture
from tools.lint.problems import File, Repository

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_STYLE = """
  rankdir=TB bgcolor=white pad=0.2 nodesep=0.25 ranksep=0.4
  node [shape=box style="rounded,filled" color="#f5b26b" fillcolor="#fff7ed"
    fontname="Helvetica" fontsize=13 height=0.4]
  edge [color="#8a93a3" arrowsize=0.7]
"""


def graph(repository: Repository) -> str:
    """Returns the components and their imports in the language of dot."""
    page = File(repository.root, architecture.PAGE)
    found = architecture.imports(repository, architecture.components(page))
    nodes = [f'  "{name}"\n' for name in found]
    arrows = sorted(architecture.arrows(found))
    edges = [f'  "{name}" -> "{other}"\n' for name, other in arrows]
    return f"digraph components {{{_STYLE}{''.join([*nodes, *edges])}}}\n"


def main() -> None:
    """Writes the picture."""
    dot = shutil.which("dot")
    if dot is None:
        sys.exit(
            "error: dot is not installed. Install Graphviz, for example by: "
            "apt-get install graphviz"
        )
    drawn = subprocess.run(
        [dot, "-Tsvg"],
        input=graph(Repository(_ROOT)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (_ROOT / architecture.PICTURE).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
