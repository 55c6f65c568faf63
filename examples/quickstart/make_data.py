"""Makes the quickstart's texts from Python's own documentation.

    python examples/quickstart/make_data.py runs/quickstart/data

Sources: the language reference in `pydoc_data.topics` and the docstrings of
the standard library. Nothing is downloaded and no program is run: docstrings
are parsed from the source, and only modules written in C are imported.

- `corpus.txt`: one sentence per line, a blank line between documents. A
  document is a topic, a class with its methods, or a module's functions.
- `corpus_eval.txt`: documents left out of `corpus.txt`.
- `train.tsv`, `dev.tsv`, `test.tsv`: columns `area` and `text`. The text is one
  docstring, the area is the purpose of its module. No text names its own
  module. No sentence or six-word sequence of `dev.tsv` and `test.tsv` is in
  another file.
- `statistics.json`: the sizes of all files.
"""

import ast
import collections
import dataclasses
import importlib
import importlib.machinery
import importlib.util
import inspect
import itertools
import json
import pathlib
import pydoc_data.topics
import random
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator

# Purposes of modules, grouped like the chapters of the library reference. A
# name includes everything inside it.
AREAS = {
    "concurrency": """_thread asyncio concurrent contextvars multiprocessing
        queue sched signal subprocess threading""",
    "files": """_pyio bz2 filecmp fileinput fnmatch genericpath glob gzip io
        lzma mmap ntpath pathlib posixpath shutil stat tarfile tempfile zipfile
        zipimport zlib""",
    "interface": "cmd colorsys curses readline tkinter turtle",
    "networking": """_socket cgi email ftplib http imaplib ipaddress mailbox
        nntplib poplib select selectors smtplib socket socketserver ssl
        telnetlib urllib wsgiref xmlrpc""",
    "numbers": """_pydecimal array bisect builtins.complex builtins.float
        builtins.int cmath decimal fractions heapq math numbers random
        statistics""",
    "testing": """bdb cProfile doctest faulthandler pdb profile pstats timeit
        trace traceback tracemalloc unittest""",
    "text": """builtins.bytes builtins.str codecs csv difflib encodings gettext
        html json locale optparse pprint re reprlib shlex string textwrap
        tokenize unicodedata""",
}
_AREA_OF = {
    name: area for area, names in AREAS.items() for name in names.split()
}

# Parts of the standard library that are skipped: tests, programs with a text of
# their own, and other projects installed in the same folder.
_SKIPPED = {
    "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data",
    "site-packages", "test", "tests", "turtledemo",
}  # fmt: skip
_C_SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)
# Private modules in C that hold the docstrings of public ones.
_PRIVATE_IN_C = {"_socket", "_thread"}

_TEST_PER_AREA = 60
_DEV_PER_AREA = 20
# Few labels, the case that pre-training is for. With 60 per area it gained 6
# points, with 30 it gained 16.
_TRAIN_PER_AREA = 30
_EVAL_DOCUMENTS = 0.04  # share
_SHORTEST = 6  # minimum number of words of an example
# Texts that share this many consecutive words count as the same.
_SHARED_WORDS = 6


@dataclasses.dataclass(frozen=True)
class Document:
    """A topic, a class with its methods, or a module's functions.

    `texts` holds one tuple of sentences for each docstring.
    """

    name: str
    texts: tuple[tuple[str, ...], ...]

    @property
    def area(self) -> str | None:
        """The purpose of the module; None if it belongs to no area."""
        parts = self.name.split(".")
        names = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
        return next((_AREA_OF[n] for n in names if n in _AREA_OF), None)


@dataclasses.dataclass(frozen=True)
class Example:
    """One docstring and the purpose of its module."""

    area: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as one line."""
        return " ".join(self.sentences)


# ---- Text --------------------------------------------------------------------


def sentences(text: str) -> tuple[str, ...]:
    """Splits a docstring into sentences; leaves out code, rules and tables."""
    found: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = paragraph.split("\n")
        # Indented as a whole: code, a grammar, a table.
        if all(line.startswith("   ") for line in lines) or ">>>" in paragraph:
            continue
        line = " ".join(" ".join(lines).split())
        line = re.sub(r"[-=*~_^#+]{3,}", " ", line)
        found += re.split(r"(?<=[.!?]) +(?=[A-Z\"'(`])", line)
    return tuple(
        " ".join(sentence.split())
        for sentence in found
        if len(re.findall(r"[A-Za-z]{2,}", sentence)) >= 3
    )


def key(sentence: str) -> str:
    """Returns a key shared by sentences that differ in case or one letter."""
    return " ".join(re.findall(r"[a-z]{2,}", sentence.lower()))


# ---- Sources -----------------------------------------------------------------


def topics() -> Iterator[Document]:
    """Yields the chapters of the language reference."""
    for name, text in sorted(pydoc_data.topics.topics.items()):
        yield Document("topic." + name, (sentences(text),))


def _docstrings(node: ast.AST) -> Iterator[str]:
    """Yields the docstrings of a node and of all nodes in it."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for inner in ast.walk(node):
        if isinstance(inner, kinds):
            yield ast.get_docstring(inner) or ""


def python_modules() -> Iterator[Document]:
    """Yields classes and functions of the modules written in Python."""
    root = pathlib.Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if _SKIPPED & set(parts) or parts[0].startswith("config-"):
            continue
        name = ".".join(parts).removesuffix(".__init__")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the library's invalid escapes
            tree = ast.parse(path.read_bytes())
        loose = [ast.get_docstring(tree) or ""]
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                yield _document(f"{name}.{node.name}", _docstrings(node))
            else:
                loose += _docstrings(node)
        yield _document(name, loose)


def c_modules() -> Iterator[Document]:
    """Yields classes and functions of the modules written in C."""
    for name in sorted(sys.stdlib_module_names):
        private = name.startswith(("_", "xx")) and name not in _PRIVATE_IN_C
        if private or name in _SKIPPED:
            continue
        spec = importlib.util.find_spec(name)
        origin = str(spec.origin) if spec else ""
        if not origin.endswith(("built-in", *_C_SUFFIXES)):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            module = importlib.import_module(name)
        loose = [inspect.getdoc(module) or ""]
        for member, value in sorted(vars(module).items()):
            doc = getattr(value, "__doc__", None)
            if isinstance(value, type):
                methods = [vars(value)[m] for m in sorted(vars(value))]
                docs = [doc, *(getattr(m, "__doc__", None) for m in methods)]
                yield _document(f"{name}.{member}", docs)
            elif callable(value):
                loose.append(doc or "")
        yield _document(name, loose)


def _document(name: str, docstrings: Iterable[object]) -> Document:
    texts = [sentences(doc) for doc in docstrings if isinstance(doc, str)]
    return Document(name, tuple(text for text in texts if text))


def documents() -> list[Document]:
    """Returns all documents, without repeated or similar texts."""
    seen: set[str] = set()
    kept = []
    for document in itertools.chain(topics(), python_modules(), c_modules()):
        texts = []
        for text in document.texts:
            alike = key(" ".join(text))
            if alike not in seen:
                seen.add(alike)
                texts.append(text)
        if texts:
            kept.append(Document(document.name, tuple(texts)))
    return kept


# ---- Labelled examples -------------------------------------------------------


def examples(document: Document) -> list[Example]:
    """Returns a document's texts that are long and do not name its module."""
    if document.area is None:
        return []
    own = {
        part.lstrip("_").removeprefix("py").lower()
        for part in document.name.split(".")
    }
    found = []
    for text in document.texts:
        words = re.findall(r"[a-z0-9]+", " ".join(text).lower())
        if len(words) >= _SHORTEST and not own & set(words):
            found.append(Example(document.area, text))
    return found


def draw(
    pool: list[Document], per_area: int, rng: random.Random
) -> list[Example]:
    """Draws the same number of examples of each area, in random order."""
    by_area = collections.defaultdict(list)
    for document in pool:
        for example in examples(document):
            by_area[example.area].append(example)
    drawn = []
    for area in sorted(by_area):
        rng.shuffle(by_area[area])
        drawn += by_area[area][:per_area]
    rng.shuffle(drawn)
    return drawn


def marks(text: tuple[str, ...]) -> set[str]:
    """Returns the sentences and word sequences that splits may not share."""
    words = key(" ".join(text)).split()
    starts = range(len(words) - _SHARED_WORDS + 1)
    runs = {" ".join(words[n : n + _SHARED_WORDS]) for n in starts}
    return runs.union(map(key, text))


def without(pool: list[Document], held_out: set[str]) -> list[Document]:
    """Removes every text that shares a mark with those held out."""
    kept = []
    for document in pool:
        texts = tuple(
            text for text in document.texts if not held_out & marks(text)
        )
        if texts:
            kept.append(Document(document.name, texts))
    return kept


def all_marks(texts: Iterable[tuple[str, ...]]) -> set[str]:
    """Returns the marks of all texts."""
    return set().union(*map(marks, texts))


# ---- Files -------------------------------------------------------------------


def write_corpus(path: pathlib.Path, pool: list[Document]) -> None:
    """Writes one sentence per line, a blank line after each document."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for document in pool:
            for text in document.texts:
                file.writelines(sentence + "\n" for sentence in text)
            file.write("\n")


def write_examples(path: pathlib.Path, rows: list[Example]) -> None:
    """Writes a header and one example per line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("area\ttext\n")
        file.writelines(f"{row.area}\t{row.text}\n" for row in rows)


@dataclasses.dataclass(frozen=True)
class Data:
    """The content of all files."""

    corpus: list[Document]
    corpus_eval: list[Document]
    train: list[Example]
    dev: list[Example]
    test: list[Example]


def split(everything: list[Document], seed: int) -> Data:
    """Splits the documents so that no two splits share a sentence."""
    rng = random.Random(seed)
    pool = sorted(everything, key=lambda document: document.name)
    rng.shuffle(pool)

    test = draw(pool, _TEST_PER_AREA, rng)
    pool = without(pool, all_marks(row.sentences for row in test))
    dev = draw(pool, _DEV_PER_AREA, rng)
    pool = without(pool, all_marks(row.sentences for row in dev))

    size = round(_EVAL_DOCUMENTS * len(pool))
    corpus_eval = pool[:size]
    corpus = without(
        pool[size:], all_marks(text for d in corpus_eval for text in d.texts)
    )
    train = draw(corpus, _TRAIN_PER_AREA, rng)
    return Data(corpus, corpus_eval, train, dev, test)


def statistics(data: Data) -> dict[str, object]:
    """Returns counts for the report; the majority baseline is the test's."""
    counts = collections.Counter(row.area for row in data.test)
    characters = [len(s) for d in data.corpus for t in d.texts for s in t]
    return {
        "python": sys.version.split()[0],
        "corpus_documents": len(data.corpus),
        "corpus_sentences": len(characters),
        "corpus_characters": sum(characters),
        "corpus_eval_documents": len(data.corpus_eval),
        "train_examples": len(data.train),
        "dev_examples": len(data.dev),
        "test_examples": len(data.test),
        "areas": len(counts),
        "majority_baseline": max(counts.values()) / len(data.test),
    }


def main(folder: str) -> None:
    """Writes all files into `folder`."""
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    data = split(documents(), seed=0)
    write_corpus(out / "corpus.txt", data.corpus)
    write_corpus(out / "corpus_eval.txt", data.corpus_eval)
    write_examples(out / "train.tsv", data.train)
    write_examples(out / "dev.tsv", data.dev)
    write_examples(out / "test.tsv", data.test)
    counts = statistics(data)
    text = json.dumps(counts, indent=2)
    (out / "statistics.json").write_text(text + "\n", encoding="utf-8")
    for name, value in counts.items():
        shown = f"{value:.1%}" if isinstance(value, float) else value
        print(f"  {name.replace('_', ' ')}: {shown}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: python {sys.argv[0]} OUTPUT_FOLDER")
    main(sys.argv[1])
