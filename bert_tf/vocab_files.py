"""Reads, checks and writes vocab.txt: one token per line, by id."""

import re
from collections.abc import Iterable

from bert_tf import characters, terminals
from bert_tf.errors import InputError
from bert_tf.storage import input_files

from etils import epath

UNKNOWN = "[UNK]"
CLS, SEP, MASK, PAD = "[CLS]", "[SEP]", "[MASK]", "[PAD]"
SPECIAL_TOKENS = (PAD, UNKNOWN, CLS, SEP, MASK)

# A token that users may replace by their own.
UNUSED = re.compile(r"\[unused\d+\]")

# A token that continues a word starts with this.
SUFFIX_INDICATOR = "##"

_UNCASED_CHECKPOINTS = (
    "uncased_L-24_H-1024_A-16",
    "uncased_L-12_H-768_A-12",
    "multilingual_L-12_H-768_A-12",
    "chinese_L-12_H-768_A-12",
)
_CASED_CHECKPOINTS = (
    "cased_L-12_H-768_A-12",
    "cased_L-24_H-1024_A-16",
    "multi_cased_L-12_H-768_A-12",
)


# ---- The file ----------------------------------------------------------------


def read_vocab(
    vocab_file: epath.PathLike, say: bool = True, flag: str = "vocab_file"
) -> str:
    """Reads the text of a vocabulary, normalized by `normalize_vocab`.

    Pass `say=False` if another process reads the same file and logs the changes
    to it. `flag` names the file in errors. Raises InputError if the file is not
    UTF-8.
    """
    data = input_files.read(vocab_file, flag)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = input_files.explain_text(data[:64])
        if problem:
            raise InputError(
                f"{vocab_file} can't be read: {problem}."
            ) from error
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{vocab_file}, line {line}: a vocabulary must be UTF-8 text. "
            f"Received: byte={data[error.start]:#x}"
        ) from error
    return normalize_vocab(text, vocab_file, say)


def normalize_vocab(
    text: str, vocab_file: epath.PathLike, say: bool = True
) -> str:
    """Returns the text of a vocabulary as Unix and the original write it.

    Additions of Windows editors are removed: a byte-order mark, carriage
    returns (the original's reader drops them all), and empty lines at the end.
    Everything else stays, including U+2028, which is a token of the released
    Chinese vocabulary. This text is saved next to weights, and its hash
    identifies the vocabulary. If `say`, a change is logged, once per process.
    """
    done = []
    if text.startswith("\ufeff"):
        text = text[1:]
        done.append("the byte-order mark left out")
    if "\r" in text:
        # Without any LF, CR ends a line, as in old Mac files.
        text = text.replace("\r", "" if "\n" in text else "\n")
        done.append("the line ends made LF")
    # Lines of spaces and tabs count as empty: no token consists of them.
    end = re.search(r"\n([ \t]*\n)*[ \t]*\Z", text)
    if end and end.group() != "\n":
        text = text[: end.start() + 1]
        done.append("empty lines at the end left out")
    if done and say:
        terminals.log_once(f"{vocab_file} is read with {' and '.join(done)}.")
    return text


def lines(contents: bytes) -> list[str]:
    """Returns the lines of a normalized vocabulary."""
    text = contents.decode().removesuffix("\n")
    # Not splitlines: the released Chinese vocabulary has the token U+2028.
    return text.split("\n") if text else []


def load_vocab(
    vocab_file: epath.PathLike, say: bool = True, flag: str = "vocab_file"
) -> dict[str, int]:
    """Reads a vocabulary, token -> id; for the arguments see `read_vocab`.

    Raises InputError if the file is not UTF-8, has a token twice or an empty
    line before others, or lacks `[UNK]`.
    """
    return parse_vocab(read_vocab(vocab_file, say, flag), vocab_file)


def parse_vocab(text: str, vocab_file: epath.PathLike) -> dict[str, int]:
    """Parses the result of `read_vocab`; `vocab_file` is for errors."""
    lines = text.split("\n")
    if not lines[-1]:  # The newline that ends the last line.
        lines.pop()
    # This check comes first, because other kinds of files have bad lines, too.
    if UNKNOWN not in map(str.strip, lines):
        problem = input_files.explain_text(text[:64].encode())
        if problem:
            raise InputError(
                f"{vocab_file} is not a BERT vocabulary: {problem}. Give the "
                "vocab.txt of the model."
            )
        raise InputError(
            f"{vocab_file} is not a BERT vocabulary: it lacks the token "
            f"{UNKNOWN!r}, which stands for unknown words. Give the vocab.txt "
            "of the model. "
            # A file of another kind may be one long line.
            f"Received: {len(lines)} tokens, the first "
            f"{[line.strip()[:20] for line in lines[:3]]}"
        )
    vocab: dict[str, int] = {}
    for index, line in enumerate(lines):
        # Only the newline is removed before the check: the released Chinese
        # vocabulary has U+2028, which is white space and so strips to "".
        piece = line.strip()
        if not line or piece in vocab:
            problem = _line_problem(index, vocab.get(piece) if line else None)
            raise InputError(
                f"{vocab_file}, line {index + 1}: {problem} "
                f"Received: line={line!r}"
            )
        vocab[piece] = index
    return vocab


def vocab_text(pieces: Iterable[str]) -> str:
    """Returns the text that `parse_vocab` reads as these tokens."""
    # An empty token was white space in its file, like U+2028 in the released
    # Chinese vocabulary. An empty line would be rejected.
    return "".join(f"{piece or chr(0x2028)}\n" for piece in pieces)


def _line_problem(index: int, earlier: int | None) -> str:
    """Describes a bad line: empty, or the same as line `earlier`."""
    # No text has such a token, because brackets are split off.
    if earlier is None:
        return (
            "a vocabulary must not hold empty lines, but at its end. Where the "
            "model has a row for it, write a name that no text has, such as "
            f"[unused-{index + 1}]; else remove the line."
        )
    return (
        f"this token is already on line {earlier + 1}. The original takes the "
        f"last: give line {earlier + 1} a name that no text has, such as "
        f"[unused-{earlier + 1}]. The rows of the weights stay where they are."
    )


def check_casing(
    vocab: Iterable[str],
    do_lower_case: bool,
    vocab_file: epath.PathLike,
    strip_accents: bool | None = None,
) -> None:
    """Raises InputError if `do_lower_case` contradicts the vocabulary's tokens.

    Lower-casing and stripping accents change no token of an uncased vocabulary
    and a third of a cased one; in scripts without case, such as Hindi's, they
    change tokens with signs on their letters. Names in brackets and tokens
    without letters do not count; a vocabulary without case and signs fits both.
    Errors begin with `vocab_file`, a path or a name. `strip_accents` is False
    if lower-casing keeps accents.
    """
    strips = strip_accents is not False

    def changes(word: str, strips: bool) -> bool:
        return characters.normalize(word, True, strips) != word

    words = [
        piece.removeprefix(SUFFIX_INDICATOR)
        for piece in vocab
        if not re.fullmatch(r"\[.+\]|<.+>", piece)
    ]
    letters = [word for word in words if any(map(str.isalpha, word))]
    cased = [word for word in letters if word.lower() != word.upper()]
    changed = [word for word in letters if changes(word, strips)]
    # One in a hundred, because users replace unused tokens by their own words.
    is_cased = len(changed) * 100 > len(letters)
    is_cased |= len({*changed} & {*cased}) * 100 > len(cased)
    if do_lower_case and is_cased:
        rule = "lower-casing and accent stripping change"
        way = "Set `--do_lower_case=False` or give an uncased vocabulary"
        if not strips:
            rule = "lower-casing changes"
        elif not any(changes(word, False) for word in changed):
            rule = "accent stripping changes"
            way += (
                "; or keep accents by a tokenizer_config.json next to it with "
                '{"strip_accents": false}, if its model was trained so'
            )
        raise InputError(
            f"{vocab_file} is cased: {rule} {len(changed)} of its "
            f"{len(letters)} tokens with letters, for example {changed[:3]}. "
            f"{way}. Received: do_lower_case={do_lower_case}"
        )
    if not do_lower_case and cased and not changed:
        raise InputError(
            f"{vocab_file} is uncased: none of its "
            f"{len(cased)} tokens with letters has an upper-case or accented "
            "one. Set `--do_lower_case=True` or give a cased vocabulary. "
            f"Received: do_lower_case={do_lower_case}"
        )


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Raises InputError if a released checkpoint has the other casing."""
    match = re.match(
        r".*?([A-Za-z0-9_-]+)/bert_model\.ckpt", init_checkpoint or ""
    )
    if match is None:
        return
    name = match.group(1)
    wrong = _CASED_CHECKPOINTS if do_lower_case else _UNCASED_CHECKPOINTS
    if name in wrong:
        raise InputError(
            f"The checkpoint {name!r} was trained on "
            f"{'cased' if do_lower_case else 'lower-cased'} text: set "
            f"`--do_lower_case={not do_lower_case}`. "
            f"Received: do_lower_case={do_lower_case}, "
            f"init_checkpoint={init_checkpoint!r}"
        )
