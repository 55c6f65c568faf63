"""Words that pages, flagfiles, docstrings and comments avoid."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping

from tools.lint.problems import File, Problem, Repository

# Pattern -> what to write. Matched in prose without regard to case.
_BANNED: Mapping[str, str] = {
    # The field's words.
    r"pieces?": "token",
    r"(?<!in )(?<!takes )(?<!take )places?": "position",
    r"fill(ing|ed|s)? up": "pad",
    r"what trains it|what it learns from": "training data",
    r"foreign|elsewhere": "the names of the libraries or files",
    # Prepositions of order and space.
    r"behind(?! a (reverse )?proxy)": "after",
    r"beside": "next to, alongside, compared with",
    r"but for": "except",
    r"otherwise than": "unlike",
    # Verbs.
    r"hangs? on": "depends on",
    r"stands? in": "is in",
    r"go(es)? into": "takes, is passed to",
    r"go(es|ing)? on|went on": "resume, continue",
    r"tells?": "describes, reports",
    r"(is|are|be|was|were) (told|said|asked|given)": "passed, reported",
    r"refuses?|refused": "rejects, is an error, is not supported",
    # Pronouns instead of nouns.
    r"that of|those of|of which|what of": "the noun",
    r"of (its|one's|their|your) own": "own, custom, separate",
    r"there is none": "is missing",
    r"so (much|many)": "this factor, N",
}
# Code, link targets and addresses.
_NOT_PROSE = re.compile(
    r"^( *)```.*?^\1```$|`[^`]*`|\]\([^)]*\)|<http[^>]*>", re.M | re.S
)


_DOCUMENTED = (
    ast.Module,
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
)


def pages_are_plain_english(repository: Repository) -> Iterator[Problem]:
    """Pages use the field's words, which readers know and search for."""
    readme = repository.files("README.md")
    for file in [*readme, *repository.pages, *repository.notebooks]:
        yield from _problems(file, 1, file.text)


def flagfiles_are_plain_english(repository: Repository) -> Iterator[Problem]:
    """Comments of flagfiles use these words, too."""
    for file in repository.flagfiles:
        for line, match in file.find("^#.*"):
            yield from _problems(file, line, match[0])


def code_is_plain_english(repository: Repository) -> Iterator[Problem]:
    """Docstrings and comments use these words, too."""
    for file in [*repository.package, *repository.scripts]:
        # ast.get_source_segment would take apart the file for each docstring.
        lines = file.text.splitlines()
        for node in file.nodes:
            if isinstance(node, _DOCUMENTED) and ast.get_docstring(node):
                first = node.body[0]
                text = "\n".join(lines[first.lineno - 1 : first.end_lineno])
                yield from _problems(file, first.lineno, text)
        for token in tokenize.generate_tokens(io.StringIO(file.text).readline):
            if token.type == tokenize.COMMENT:
                yield from _problems(file, token.start[0], token.string)


def _problems(file: File, start: int, text: str) -> Iterator[Problem]:
    """Yields the banned words in a text whose first line is `start`."""
    prose = _NOT_PROSE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for words, advice in _BANNED.items():
        pattern = rf"\b(?:{words})\b".replace(" ", r"\s")
        for match in re.finditer(pattern, prose, re.I):
            found = " ".join(match[0].split())
            line = start + prose.count("\n", 0, match.start())
            yield file.problem(line, f'"{found}": write {advice}.')


RULES = (
    pages_are_plain_english,
    flagfiles_are_plain_english,
    code_is_plain_english,
)
