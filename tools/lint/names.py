"""Encoder families, vocabulary kinds and tokens are named in few places.

Other code asks a row of `families.FAMILIES`, a vocabulary or its `Kind`.
Documentation may name them, and so may sentences for people: errors, help.
"""

import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from tools.lint.problems import File, Problem, Repository

# The definition of the name of a family or a kind.
_FAMILY = r'^    model_type: ClassVar\[str\] = "(\w+)"'
_KIND = r'^    kind(?:: ClassVar\[str\])? = "(\w+)"'
# The tagger's words have word pieces, too: only the kind's own names count.
_KIND_WORDS = re.compile(
    r"byte_?pairs?|sentence_?pieces?|bert_tf\.vocabularies\.word_pieces"
    r"|word_pieces\.\w+|WordPiece",
    re.IGNORECASE,
)
_NOT_A_KIND = re.compile(r"WordPieces|\w*word_?piece_?tokenizer", re.IGNORECASE)

# Path -> pattern of the names it may have. Folders end with "/". An entry that
# nothing needs is a problem, too.
_FAMILIES_ARE_IN = {
    "bert_tf/contrib/": ".*",
    "bert_tf/encoders/": ".*",
    # They have the same file, with other ids.
    "bert_tf/vocabularies/fairseq_sentence_pieces.py": "camembert|xlm-roberta",
    # A class of transformers whose versions differ.
    "bert_tf/vocabularies/tokenizer_config.py": "Albert",
    # A class of the library `tokenizers`.
    "bert_tf/checkpoints/tokenizer_files.py": "Roberta(Processing|Tokenizer)",
    "bert_tf/vocabularies/tokenizer_rows.py": "RobertaProcessing",
    # A way to distil, by the name of its paper.
    "bert_tf/options.py": "distilbert",
    "bert_tf/flags/distillation_flags.py": "distillation=distilbert",
    # A flag of the original ALBERT.
    "bert_tf/flags/shared_flags.py": "albert_config_file",
}
_KINDS_ARE_IN = {
    "bert_tf/contrib/": ".*",
    "bert_tf/vocabularies/": ".*",
    "bert_tf/text/": ".*",
    # Other libraries' names for each kind.
    "bert_tf/checkpoints/tokenizer_files.py": ".*",
    "bert_tf/checkpoints/keras_hub.py": ".*",
    "bert_tf/checkpoints/keras_hub_names.py": ".*",
    # The vocabularies of a family's released models.
    "bert_tf/encoders/": ".*",
    # The type of a tokenizer.json next to which a `vocab.txt` may be written.
    "bert_tf/checkpoints/huggingface_tokenizer.py": "WordPiece",
    # New tokens' embeddings are averages of the tokens that spell them.
    "bert_tf/checkpoints/vocabulary_change.py": (
        r"bert_tf\.vocabularies\.word_pieces|WordPiece"
    ),
    # The files that runs write.
    "bert_tf/storage/written_files.py": r"sentencepiece\.bpe\.model",
    # Each kind is learned differently.
    "learn_vocabulary.py": ".*",
}
# Keys and prefixes of variables that only these read.
_CONFIG_NAMES = re.compile(r"model_type|\^?bert/.*", re.DOTALL)
_CONFIG_NAMES_ARE_IN = {
    "bert_tf/contrib/": ".*",
    "bert_tf/encoders/": ".*",
    "bert_tf/configuration.py": ".*",
    "bert_tf/checkpoints/huggingface_names.py": ".*",
    # The same file has other ids in another family.
    "bert_tf/vocabularies/fairseq_sentence_pieces.py": "model_type",
    "bert_tf/vocabularies/tokenizer_config.py": "model_type",
    # Distinguishes other checkpoints from ours.
    "bert_tf/checkpoints/formats.py": ".*",
}
# A special token, or the mark of a token that continues a word.
_TOKENS = re.compile(r"\[(PAD|UNK|CLS|SEP|MASK).?\]?|.*##.*", re.DOTALL)
_TOKENS_ARE_IN = {
    "bert_tf/vocabularies/": ".*",
    "bert_tf/vocab_files.py": ".*",
}

# Called with a word and whether it is a string.
Finder: TypeAlias = Callable[[str, bool], object]


def _prose(nodes: list[ast.AST]) -> set[ast.AST]:
    """Returns docstrings, and the constants of f-strings with a space."""
    prose: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            prose.add(node.value)
        if isinstance(node, ast.JoinedStr):
            parts = [x for x in node.values if isinstance(x, ast.Constant)]
            if any(" " in str(x.value) for x in parts):
                prose.update(parts)
    return prose


@functools.cache
def words(file: File) -> list[tuple[int, str, bool]]:
    """Returns (line, word, is_string) of names and strings without a space."""
    prose, rows = _prose(file.nodes), []
    for node in file.nodes:
        found: list[str | None] = []
        if isinstance(node, ast.Constant) and node not in prose:
            # Bytes are code whatever they hold.
            if isinstance(node.value, str) and " " not in node.value:
                found = [node.value]
            elif isinstance(node.value, bytes):
                found = [repr(node.value)]
        elif isinstance(node, ast.ImportFrom):
            found = [f"{node.module}.{x.name}" for x in node.names]
            found += [x.asname for x in node.names]
        elif isinstance(node, ast.Import):
            found = [x.name for x in node.names]
        else:
            fields = ("id", "attr", "name")
            found = [getattr(node, x, None) for x in fields]
            if isinstance(node, ast.arg | ast.keyword):
                found.append(node.arg)
        for word in found:
            if isinstance(word, str):
                is_text = isinstance(node, ast.Constant)
                rows.append((getattr(node, "lineno", 1), word, is_text))
    return rows


def families(repository: Repository) -> Finder:
    """Returns a function that finds a family's name in a word."""
    rows = [
        match[1].replace("_", "_?")
        for folder in ("contrib", "encoders")
        for file in repository.files(f"bert_tf/{folder}/*.py")
        for _, match in file.find(_FAMILY)
    ]
    pattern = re.compile("|".join(rows), re.IGNORECASE)
    return lambda word, _: pattern.search(word)


def kinds(repository: Repository) -> Finder:
    """Returns a function that finds a kind's name in a word."""
    names = {
        match[1]
        for file in repository.files("bert_tf/vocabularies/*.py")
        for _, match in file.find(_KIND)
    }
    return lambda word, is_text: (
        (_KIND_WORDS.search(word) and not _NOT_A_KIND.fullmatch(word))
        or (is_text and word in names)
    )


def _misplaced(
    repository: Repository,
    finds: Finder,
    places: Mapping[str, str],
    way_out: str,
) -> Iterator[Problem]:
    """Yields the words in other places, and the places without any."""
    unused = set(places)
    for file in [*repository.scripts, *repository.package]:
        place = next((x for x in places if _is_in(file, x)), "")
        for line, word, is_text in words(file):
            if not finds(word, is_text):
                continue
            if place and re.fullmatch(places[place], word, re.DOTALL):
                unused.discard(place)
            else:
                yield file.problem(line, f"names {word!r}. {way_out}")
    for place in sorted(unused):
        yield Problem(
            "tools/lint/names.py", 1, f"{place} needs no entry. Remove it."
        )


def _is_in(file: File, place: str) -> bool:
    is_folder = place.endswith("/")
    return file.path.startswith(place) if is_folder else file.path == place


def families_are_in_encoders(repository: Repository) -> Iterator[Problem]:
    """A new encoder is a file in bert_tf/encoders or bert_tf/contrib."""
    yield from _misplaced(
        repository,
        families(repository),
        _FAMILIES_ARE_IN,
        "Families are named in bert_tf/encoders only: ask a field of the row "
        "of families.FAMILIES.",
    )


def kinds_are_in_vocabularies(repository: Repository) -> Iterator[Problem]:
    """A new kind needs no change outside of bert_tf/vocabularies and text."""
    yield from _misplaced(
        repository,
        kinds(repository),
        _KINDS_ARE_IN,
        "Kinds are named in bert_tf/vocabularies and bert_tf/text only: ask "
        "the vocabulary or its Kind.",
    )


def config_names_are_in_rows(repository: Repository) -> Iterator[Problem]:
    """Files of other libraries are read in few places."""
    yield from _misplaced(
        repository,
        lambda word, is_text: is_text and _CONFIG_NAMES.fullmatch(word),
        _CONFIG_NAMES_ARE_IN,
        "It belongs to a row of families.FAMILIES: ask a field of it.",
    )


def tokens_are_spelled_in_vocabularies(
    repository: Repository,
) -> Iterator[Problem]:
    """A vocabulary may spell its special tokens as it likes."""
    yield from _misplaced(
        repository,
        lambda word, is_text: is_text and _TOKENS.fullmatch(word),
        _TOKENS_ARE_IN,
        "Tokens are spelled in bert_tf/vocabularies only: ask the vocabulary.",
    )


RULES = (
    families_are_in_encoders,
    kinds_are_in_vocabularies,
    config_names_are_in_rows,
    tokens_are_spelled_in_vocabularies,
)
