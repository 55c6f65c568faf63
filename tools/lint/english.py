"""Words that the pages avoid, with the words to write instead."""

import re
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


def _prose(file: File) -> str:
    """Returns the contents of a page with everything else left blank."""
    return _NOT_PROSE.sub(
        lambda match: re.sub(r"[^\n]", " ", match[0]), file.text
    )


def pages_are_plain_english(repository: Repository) -> Iterator[Problem]:
    """Pages use the field's words, which readers know and search for."""
    for file in [*repository.pages, *repository.notebooks]:
        prose = _prose(file)
        for words, advice in _BANNED.items():
            pattern = rf"\b(?:{words})\b".replace(" ", r"\s")
            for match in re.finditer(pattern, prose, re.I):
                found = " ".join(match[0].split())
                line = prose.count("\n", 0, match.start()) + 1
                yield file.problem(line, f'"{found}": write {advice}.')


RULES = (pages_are_plain_english,)
