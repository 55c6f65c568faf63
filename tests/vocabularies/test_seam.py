"""Only vocabularies know how pieces are written."""

import ast
import pathlib
import re

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_OWN = {"vocab_files.py", "tokenization.py"}
_FILES = [
    *sorted(_ROOT.glob("*.py")),
    *(
        path
        for path in sorted((_ROOT / "bert_tf").rglob("*.py"))
        if path.parent.name != "vocabularies" and path.name not in _OWN
    ),
]
# A piece by itself, or the mark of those that go on with a word. Sentences for
# people, in errors and in help, may name pieces.
_PIECE = re.compile(r"\[(PAD|UNK|CLS|SEP|MASK).?\]?|.*##.*", re.DOTALL)


def _docstrings(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _pieces(source):
    tree = ast.parse(source)
    documentation = set(_docstrings(tree))
    return [
        f"line {node.lineno}: {node.value!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in documentation
        and _PIECE.fullmatch(node.value)
    ]


@pytest.mark.parametrize(
    "path", _FILES, ids=lambda path: str(path.relative_to(_ROOT))
)
def test_no_piece_is_spelt(path):
    assert not _pieces(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "line",
    [
        'ids["[CLS]"]',
        'f"[MASK→{label}]"',
        'piece.startswith("##")',
        'regex = "##.+"',
    ],
)
def test_a_spelt_piece_is_found(line):
    assert len(_pieces(line)) == 1


def test_documentation_may_name_pieces():
    assert not _pieces('"""[CLS]"""\ndef f():\n    """##a"""  # ##')
    assert not _pieces('raise ValueError("no [CLS] is there")')
