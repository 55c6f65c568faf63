r"""Learns a WordPiece vocabulary from text, or extends one for a domain.

    python learn_vocabulary.py \
        --input_file=/data/wiki/*.txt --vocab_file=vocab.txt \
        --vocab_size=30522 --do_lower_case=true

The text is split into words as every script of this project splits it, so that
the vocabulary fits. The same text and flags give the same vocabulary.

A released vocabulary for text of a domain: its [unused] rows get the pieces
that shorten the text most, all other rows stay, so that a released checkpoint
can be trained on.
    python learn_vocabulary.py \
        --input_file=/data/chemistry/*.jsonl.gz --input_format=jsonl \
        --extend_vocab=uncased_L-12_H-768_A-12/vocab.txt --vocab_file=vocab.txt
"""

from collections.abc import Iterator, Mapping, Sequence

from bert_tf import extras, files, phases, tokenization, vocab_files
from bert_tf.errors import InputError
from bert_tf.flags import command_line, unused
from bert_tf.flags import sections as flag_sections
from bert_tf.flags import text as text_flags
from bert_tf.pretraining_data import corpus
from bert_tf.text import learning

from absl import flags, logging
from etils import epath

flags.adopt_module_key_flags(text_flags)

# ---- Flags ------------------------------------------------------------------

# Four times as many as the largest vocabularies have: memory is taken for them
# before they are learnt.
_MOST_ROWS = 1 << 22

_MODEL = flag_sections.Section("Vocabulary")
_OUTPUT = flag_sections.Section("Output")

_VOCAB_FILE = _OUTPUT.output_path(
    "vocab_file",
    "The vocabulary to write, one piece per line.",
    required=True,
    holds=flag_sections.FILE,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace an existing vocab_file."
)
_EXTEND_VOCAB = _MODEL.input_path(
    "extend_vocab", "A vocabulary whose [unused] rows to fill."
)
_NUM_APPENDED = _MODEL.integer(
    "num_appended",
    0,
    "Of --extend_vocab: rows to add at its end, besides the [unused] ones. A "
    "checkpoint gets them by convert_checkpoint.py --new_vocab_file.",
    least=0,
    most=_MOST_ROWS,
    only_with="extend_vocab",
)
_VOCAB_SIZE = _MODEL.integer(
    "vocab_size", 30522, "Pieces to learn at most.", least=1, most=_MOST_ROWS
)
_DO_LOWER_CASE = _MODEL.boolean(
    "do_lower_case", True, "Whether to lower-case and strip accents."
)
_MIN_FREQUENCY = _MODEL.integer(
    "min_frequency",
    2,
    "How often two pieces must follow each other to be joined.",
    least=1,
)
_MAX_CHARACTERS = _MODEL.integer(
    "max_characters",
    1000,
    "The most frequent characters so many are kept; words with others become "
    "[UNK]. Chinese needs more.",
    least=1,
)
_NUM_UNUSED = _MODEL.integer(
    "num_unused",
    99,
    "[unused] rows to reserve for words of your own. Not of --extend_vocab.",
    least=0,
    most=_MOST_ROWS,
    only_with="!extend_vocab",
)

command_line.start(__name__)


# ---- Read, learn, write -----------------------------------------------------


def read(units: Sequence[corpus.Unit], reader: corpus.Reader) -> Iterator[str]:
    """Yields the text, reporting how far it is."""
    total = sum(unit.size for unit in units) / 1e6
    logging.info("Reading %.1f MB of text.", total)
    done, meter = 0.0, phases.Meter()
    for unit in units:
        yield from corpus.paragraphs(unit, reader)
        done += unit.size / 1e6
        if meter.is_due():
            logging.info("Read %.1f of %.1f MB.", done, total)


def learn(words: Mapping[str, int], num_unused: int) -> list[str]:
    """Learns as many pieces as the flags say."""
    logging.info("Learning pieces from %s different words.", f"{len(words):,}")
    with phases.lasting("Learning pieces"):
        return learning.learn(
            words,
            _VOCAB_SIZE.value,
            _MIN_FREQUENCY.value,
            _MAX_CHARACTERS.value,
            num_unused,
        )


def extend(
    base: Mapping[str, int], words: Mapping[str, int], appended: int
) -> list[str]:
    """Fills the [unused] rows of a vocabulary, and so many behind its end."""
    report("With the vocabulary as it was", list(base), words)
    extended = learning.extend(list(base), words, learn(words, 0), appended)
    more = len(extended) - len(base)
    new = len(set(extended) - base.keys()) - more
    logging.info("Filled %s [unused] rows, appended %s.", f"{new:,}", more)
    return extended


def report(title: str, pieces: Sequence[str], words: Mapping[str, int]) -> None:
    """Logs how a vocabulary splits the text."""
    found = learning.coverage(pieces, words)
    logging.info(
        "%s: %s words, %.3f pieces per word, %.3f %% of the words are [UNK].",
        title,
        f"{found.words:,}",
        found.pieces / found.words,
        100 * found.unknown / found.words,
    )


# ---- Main -------------------------------------------------------------------


def base_of_flags() -> dict[str, int] | None:
    """Returns the vocabulary to extend; None for a new one.

    Raises:
        InputError: It can't be extended, or a new one would have no room.
    """
    path = _EXTEND_VOCAB.value
    if not path:
        learning.check_room(_VOCAB_SIZE.value, _NUM_UNUSED.value)
        return None
    base = tokenization.load_vocab(path, flag="extend_vocab")
    vocab_files.check_casing(base, _DO_LOWER_CASE.value, path)
    if not _NUM_APPENDED.value and not learning.unused_rows(list(base)):
        raise InputError(
            f"{path} has no [unused] rows to fill. Append rows by "
            "--num_appended, or learn a new vocabulary, without "
            f"--extend_vocab. Received: {len(base)} pieces"
        )
    return base


def main(_):
    """Counts the words, learns the pieces, writes them."""
    command_line.unwind_at_sigterm()
    meter = phases.Meter()
    path = _VOCAB_FILE.value
    # Else hours of work would end in an error.
    base = base_of_flags()
    if not base:
        extras.check("tokenizers", "data", "Vocabularies that are learned")
    reader = text_flags.reader()
    if unused.given(flags.FLAGS["language"]):
        logging.warning("Not used, as sentences are not split: --language.")
    epath.Path(path).parent.mkdir(parents=True, exist_ok=True)
    words = learning.count_words(
        read(text_flags.units(), reader), _DO_LOWER_CASE.value
    )
    if not words:
        raise InputError("The text holds no words. Is it in --input_format?")
    if base:
        pieces = extend(base, words, _NUM_APPENDED.value)
    else:
        pieces = learn(words, _NUM_UNUSED.value)
        if len(pieces) < _VOCAB_SIZE.value:
            logging.warning(
                "The text has no more pieces that occur %d times: "
                "--vocab_size=%d is not reached.",
                _MIN_FREQUENCY.value,
                _VOCAB_SIZE.value,
            )
    files.write_text(path, vocab_files.vocab_text(pieces))
    logging.info("Wrote %s pieces to %s.", f"{len(pieces):,}", path)
    report("The text", pieces, words)
    logging.info("Took %.1f seconds.", meter.seconds)


if __name__ == "__main__":
    command_line.run(main)
