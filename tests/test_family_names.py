"""Families and kinds of vocabularies are known by name in their rooms only.

Elsewhere code asks a row of `families.FAMILIES`, a vocabulary or its `Kind`.
Documentation may name them, and so may sentences for people: errors, help.
"""

import ast
import pathlib
import re
from collections.abc import Callable

from bert_tf import vocabularies
from bert_tf.encoders import families

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_FILES = [
    *sorted(_ROOT.glob("*.py")),
    *sorted((_ROOT / "bert_tf").rglob("*.py")),
]

# BERT is what the package is of: its name says nothing.
_ROWS = [row for row in families.FAMILIES.values() if row is not families.BERT]
_FAMILIES = re.compile(
    "|".join(row.name.replace("_", "_?") for row in _ROWS), re.IGNORECASE
)
# Of word pieces the tagger's words have a few, too: only what stands for the
# kind is looked for.
_KINDS = re.compile(
    r"byte_?pairs?|sentence_?pieces?|bert_tf\.vocabularies\.word_pieces"
    r"|word_pieces\.\w+|WordPiece",
    re.IGNORECASE,
)
_PIECES_OF_WORDS = re.compile(r"WordPieces|\w*word_?piece_?tokenizer", re.I)

# Where each may be named: a folder, or a file.
_ROOMS_OF_FAMILIES = {
    "bert_tf/encoders/",
}
_ROOMS_OF_KINDS = {
    "bert_tf/vocabularies/",
    "bert_tf/text/",
    "bert_tf/tokenization.py",
    # What other libraries have for each kind.
    "bert_tf/checkpoints/tokenizer_files.py",
    "bert_tf/checkpoints/keras_hub.py",
    "bert_tf/checkpoints/keras_hub_names.py",
    # Of which kinds a family's released models have a vocabulary.
    "bert_tf/encoders/",
}
# File -> what it names, and why it may.
_FAMILIES_ELSEWHERE = {
    # Names of classes of tokenizers in transformers, which split alike.
    "bert_tf/checkpoints/huggingface_tokenizer.py": {
        "(Bert|DistilBert|Electra|MobileBert|Roberta|Albert)Tokenizer(Fast)?"
        "|PreTrainedTokenizerFast|TokenizersBackend",
    },
    # A class of the library `tokenizers`.
    "bert_tf/checkpoints/tokenizer_files.py": {
        "RobertaProcessing",
        "RobertaTokenizer",
    },
    # A way to distil, by the name of the paper that has it: any family's model
    # learns like that.
    "bert_tf/options.py": {"distilbert"},
    "bert_tf/flags/distillation.py": {"distillation=distilbert"},
    # An alias of a flag, by the name that the original of ALBERT gave it.
    "bert_tf/flags/shared.py": {"albert_config_file"},
}
_KINDS_ELSEWHERE = {
    # Which type of a tokenizer.json may have a `vocab.txt` written beside it.
    "bert_tf/checkpoints/huggingface_tokenizer.py": {"WordPiece"},
    # Rows of new pieces are made of those that spell them, which is a matter of
    # how word pieces are written.
    "bert_tf/checkpoints/vocabulary_change.py": {
        "bert_tf.vocabularies.word_pieces",
        "WordPiece",
    },
    # Each kind is learned otherwise; which is the script's own question.
    "learn_vocabulary.py": {
        "bert_tf.text.learning_byte_pairs",
        "bert_tf.text.learning_sentence_pieces",
        "bert_tf.vocabularies.byte_pair_files",
        "bert_tf.vocabularies.byte_pairs",
        "byte_pair_files",
        "byte_pairs",
        "check_byte_pairs",
        "learn_byte_pairs",
        "learn_sentence_pieces",
        "learning_byte_pairs",
        "learning_sentence_pieces",
        "sentence_pieces",
        "symbols",
        "word_pieces",
    },
}


def _documentation(tree: ast.AST) -> set[ast.AST]:
    """Texts that stand by themselves: docstrings."""
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def _words(source: str) -> set[str]:
    """All names in code, and texts that are no sentences."""
    tree = ast.parse(source)
    documentation = _documentation(tree)
    # Parts of an f-string are of a sentence where the whole has a space.
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [x for x in node.values if isinstance(x, ast.Constant)]
            if any(" " in str(x.value) for x in parts):
                documentation.update(parts)
    words = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node not in documentation:
            # Bytes are code whatever they hold.
            if isinstance(node.value, str) and " " not in node.value:
                words.add(node.value)
            elif isinstance(node.value, bytes):
                words.add(repr(node.value))
        elif isinstance(node, ast.ImportFrom):
            words.update(f"{node.module}.{x.name}" for x in node.names)
            words.update(x.asname for x in node.names if x.asname)
        elif isinstance(node, ast.Import):
            words.update(x.name for x in node.names)
        else:
            fields = (getattr(node, x, None) for x in ("id", "attr", "name"))
            words.update(x for x in fields if isinstance(x, str))
            if isinstance(node, ast.arg | ast.keyword) and node.arg:
                words.add(node.arg)
    return words


def _families(source: str) -> set[str]:
    return {word for word in _words(source) if _FAMILIES.search(word)}


def _kinds(source: str) -> set[str]:
    found = {
        word
        for word in _words(source)
        if _KINDS.search(word) and not _PIECES_OF_WORDS.fullmatch(word)
    }
    # As what a kind is compared with; by itself it may be any variable.
    quoted = {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and node.value in vocabularies.KINDS
    }
    return found | quoted


def _allowed(name: str, rooms: set[str]) -> bool:
    return any(
        name == x or (x[-1] == "/" and name.startswith(x)) for x in rooms
    )


def _found(
    find: Callable[[str], set[str]], rooms: set[str]
) -> dict[str, set[str]]:
    names = {path: path.relative_to(_ROOT).as_posix() for path in _FILES}
    found = {
        name: find(path.read_text(encoding="utf-8"))
        for path, name in names.items()
        if not _allowed(name, rooms)
    }
    return {name: words for name, words in found.items() if words}


def test_families_are_named_in_their_rooms():
    assert _found(_families, _ROOMS_OF_FAMILIES) == _FAMILIES_ELSEWHERE


def test_kinds_are_named_in_their_rooms():
    assert _found(_kinds, _ROOMS_OF_KINDS) == _KINDS_ELSEWHERE


def test_every_row_is_looked_for():
    for row in _ROWS:
        names = {row.name, row.config.__name__, row.model.__name__}
        # A family may have BERT's own class.
        for name in names - {families.BERT.model.__name__}:
            assert _families(f"x = {name}"), name
    for name in vocabularies.KINDS:
        assert _kinds(f"kind == {name!r}"), name


@pytest.mark.parametrize(
    "line",
    [
        "from bert_tf.encoders import roberta",
        "isinstance(config, albert.AlbertConfig)",
        "if config.model_type == 'distilbert': pass",
        "is_roberta = True",
        "f(is_albert=True)",
        "def f(is_albert): pass",
    ],
)
def test_a_family_by_name_is_found(line):
    assert _families(line)


@pytest.mark.parametrize(
    "line",
    [
        "from bert_tf.vocabularies import byte_pairs",
        "from bert_tf.vocabularies import word_pieces",
        "isinstance(vocabulary, SentencePieces)",
        "if vocabulary.kind != 'word_pieces': pass",
        "vocabulary.kind == byte_pairs.BytePairs.kind",
    ],
)
def test_a_kind_by_name_is_found(line):
    assert _kinds(line)


def test_documentation_and_sentences_may_name_all():
    source = (
        '"""Of RoBERTa and its byte_pairs."""\n'
        "# albert\n"
        'raise ValueError(f"give the vocabulary of a roberta: {path}")\n'
        'help = "the byte_pairs of roberta"\n'
        "pieces = tagging_words.WordPieces(vocabulary)\n"
    )
    assert not _families(source)
    assert not _kinds(source)
