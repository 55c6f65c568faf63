r"""Learns a vocabulary from text, or extends one for a domain.

    python learn_vocabulary.py \
        --input_file=/data/wiki/*.txt --vocab_file=vocab.txt \
        --vocab_size=30522 --do_lower_case=true

Text is split into words as in all scripts of this project. The same text and
flags give the same vocabulary.

To adapt a released vocabulary to a domain: its [unused] tokens are replaced by
the tokens that shorten the text most. All other tokens stay, so you can
continue training a released checkpoint.
    python learn_vocabulary.py \
        --input_file=/data/chemistry/*.jsonl.gz --input_format=jsonl \
        --extend_vocab=uncased_L-12_H-768_A-12/vocab.txt --vocab_file=vocab.txt

Byte pairs, the vocabulary of RoBERTa; merges.txt is next to vocab.json:
    python learn_vocabulary.py --kind=byte_pairs --vocab_size=50265 \
        --input_file=/data/wiki/*.txt --vocab_file=vocab.json
SentencePiece, the vocabulary of ALBERT:
    python learn_vocabulary.py --kind=sentence_pieces --vocab_size=30000 \
        --input_file=/data/wiki/*.txt --vocab_file=spiece.model
Symbols, the most frequent words between white space:
    python learn_vocabulary.py --kind=symbols --vocab_size=5000 \
        --input_file=/data/visits/*.txt --vocab_file=symbols.txt
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert_tf import extras, files, phases, tokenization, vocab_files
from bert_tf.errors import InputError
from bert_tf.flags import command_line, flag_sections, text_flags
from bert_tf.pretraining_data import corpus
from bert_tf.text import (
    learning,
    learning_byte_pairs,
    learning_sentence_pieces,
    learning_symbols,
)
from bert_tf.vocabularies import (
    byte_pair_files,
    byte_pairs,
    new_vocabulary,
    sentence_pieces,
    tokenizer_config,
)

from absl import flags, logging
from etils import epath

flags.adopt_module_key_flags(text_flags)

# ---- Flags ------------------------------------------------------------------

# Four times as many as the largest vocabularies have: memory is taken for them
# before they are learnt.
_MOST_ROWS = 1 << 22
# The share of words with rare characters in a text of alphabets.
_FEW = 0.001

# What can be learned.
_WORDS, _BYTES, _SENTENCES = "word_pieces", "byte_pairs", "sentence_pieces"
_SYMBOLS = "symbols"
_KINDS = (_WORDS, _BYTES, _SENTENCES, _SYMBOLS)
# Flags that not all kinds have.
_FLAGS = {
    "extend_vocab": (_WORDS,),
    "max_characters": (_WORDS,),
    "num_unused": (_WORDS,),
    "do_lower_case": (_WORDS, _SENTENCES),
    "strip_accents": (_WORDS,),
    "min_frequency": (_WORDS, _BYTES, _SYMBOLS),
    "character_coverage": (_SENTENCES,),
}

_MODEL = flag_sections.Section("Vocabulary")
_OUTPUT = flag_sections.Section("Output")

_VOCAB_FILE = _OUTPUT.output_path(
    "vocab_file",
    "The vocabulary to write: one token per line; for byte pairs a vocab.json, "
    "with merges.txt next to it; for SentencePiece a .model; for symbols "
    "symbols.txt, or a name that ends in .symbols.",
    required=True,
    holds=flag_sections.FILE,
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite", False, "Whether to replace an existing vocab_file."
)
_KIND = _MODEL.choice(
    "kind",
    _WORDS,
    _KINDS,
    "Kind of vocabulary: word_pieces as in BERT, byte_pairs as in RoBERTa, "
    "sentence_pieces as ALBERT, or symbols, separated by white space.",
)
_EXTEND_VOCAB = _MODEL.input_path(
    "extend_vocab",
    "A vocabulary whose [unused] tokens are replaced by new ones.",
)
_NUM_APPENDED = _MODEL.integer(
    "num_appended",
    0,
    "Number of tokens to append to --extend_vocab, besides the [unused] ones. "
    "convert_checkpoint.py --new_vocab_file adds them to a checkpoint.",
    min=0,
    max=_MOST_ROWS,
    only_with="extend_vocab",
)
_VOCAB_SIZE = _MODEL.integer(
    "vocab_size",
    30522,
    "Max number of tokens to learn. With --extend_vocab, the new tokens are "
    "chosen from these.",
    min=1,
    max=_MOST_ROWS,
)
_DO_LOWER_CASE = _MODEL.boolean(
    "do_lower_case", True, "Whether to lower-case and strip accents."
)
_STRIP_ACCENTS = _MODEL.boolean(
    "strip_accents",
    None,
    "Whether to strip accents, by default as --do_lower_case. false keeps the "
    "umlauts of uncased German and the syllables of Korean. Written to "
    "tokenizer_config.json next to vocab.txt, which all scripts read.",
)
_MIN_FREQUENCY = _MODEL.integer(
    "min_frequency",
    2,
    "Min frequency of a pair of tokens to merge, or of a symbol.",
    min=1,
)
_MAX_CHARACTERS = _MODEL.integer(
    "max_characters",
    1000,
    "Keeps only this number of the most frequent characters; words with any "
    "other character become [UNK]. Increase it for Chinese.",
    min=1,
)
_NUM_UNUSED = _MODEL.integer(
    "num_unused",
    99,
    "Number of [unused] tokens to reserve for custom words. Not with "
    "--extend_vocab.",
    min=0,
    max=_MOST_ROWS,
    only_with="!extend_vocab",
)
_CHARACTER_COVERAGE = _MODEL.number(
    "character_coverage",
    0.99995,
    "SentencePiece: share of the characters in the text that the vocabulary "
    "covers; the rarest others become <unk>. Use 0.9995 for Chinese.",
    min=0.98,  # sentencepiece takes no less
    max=1,
)

command_line.start(__name__)


# ---- Read, learn, write -----------------------------------------------------


def read(units: Sequence[corpus.Unit], reader: corpus.Reader) -> Iterator[str]:
    """Yields the text, and shows how much has been read."""
    total = sum(unit.size for unit in units) / 1e6
    logging.info("Reading %.1f MB of text.", total)
    phase = phases.Phase("Reading", "MB", total)
    for unit in units:
        yield from corpus.paragraphs(unit, reader)
        phase.add(unit.size / 1e6)
    phase.finish()


def learn(words: Mapping[str, int], num_unused: int) -> list[str]:
    """Learns as many tokens as the flags specify."""
    logging.info("Learning tokens from %s different words.", f"{len(words):,}")
    with phases.lasting("Learning tokens"):
        return learning.learn(
            words,
            _VOCAB_SIZE.value,
            _MIN_FREQUENCY.value,
            _MAX_CHARACTERS.value,
            num_unused,
        )


def learn_byte_pairs(path: str) -> None:
    """Learns byte pairs and writes their two files."""
    reader = text_flags.reader()
    words = learning_byte_pairs.count_words(read(text_flags.units(), reader))
    logging.info("Learning tokens from %s different words.", f"{len(words):,}")
    with phases.lasting("Learning tokens"):
        vocabulary = learning_byte_pairs.learn(
            words, _VOCAB_SIZE.value, _MIN_FREQUENCY.value
        )
    warn_of_fewer(len(vocabulary.pieces))
    contents = vocabulary.files
    merges = {byte_pair_files.MERGES: contents[byte_pair_files.MERGES]}
    data = contents[byte_pair_files.VOCAB]
    write(path, data, len(vocabulary.pieces), merges)


def learn_sentence_pieces(path: str) -> None:
    """Learns a SentencePiece model and writes it."""
    reader = text_flags.reader()
    words = learning_sentence_pieces.count_words(
        read(text_flags.units(), reader), _DO_LOWER_CASE.value
    )
    logging.info("Learning tokens from %s different words.", f"{len(words):,}")
    with phases.lasting("Learning tokens"):
        model = learning_sentence_pieces.learn(
            words, _VOCAB_SIZE.value, _CHARACTER_COVERAGE.value
        )
    pieces = sentence_pieces.SentencePieces.parse(
        {sentence_pieces.FILE: model}, _DO_LOWER_CASE.value, path
    ).pieces
    warn_of_fewer(len(pieces))
    write(path, model, len(pieces))


def learn_symbols(path: str) -> None:
    """Takes the most frequent symbols and writes their file."""
    reader = text_flags.reader()
    counts = learning_symbols.count(read(text_flags.units(), reader))
    vocabulary = learning_symbols.learn(
        counts, _VOCAB_SIZE.value, _MIN_FREQUENCY.value
    )
    warn_of_fewer(len(vocabulary.pieces))
    (data,) = vocabulary.files.values()
    write(path, data, len(vocabulary.pieces))
    total, unknown = learning_symbols.coverage(vocabulary, counts)
    logging.info(
        "The text: %s symbols, %s of them different, %.3f %% are [UNK].",
        f"{total:,}",
        f"{len(counts):,}",
        100 * unknown / total,
    )
    if counts.forgotten:
        logging.info(
            "There were too many different symbols to count: the rarest %s "
            "were dropped and become [UNK].",
            f"{counts.forgotten:,}",
        )


def check_kind() -> None:
    """Raises InputError for what the kind has not, before work."""
    kind, path = _KIND.value, epath.Path(_VOCAB_FILE.value)
    for name, kinds in _FLAGS.items():
        if kind not in kinds and flag_sections.is_given(flags.FLAGS[name]):
            raise InputError(
                f"--{name} is not used with --kind={kind}: leave it out, or "
                f"learn {' or '.join(kinds)}. Received: kind={kind}"
            )
    new_vocabulary.check_name(path, kind, _KINDS)
    if kind == _BYTES:
        learning_byte_pairs.check_room(_VOCAB_SIZE.value)
        byte_pairs.library()
    if kind == _SENTENCES:
        learning_sentence_pieces.check_room(_VOCAB_SIZE.value)
    if kind == _SYMBOLS:
        learning_symbols.check_room(_VOCAB_SIZE.value)
    new_vocabulary.check_folder(path, kind, _OVERWRITE.value)


def extend(
    base: Mapping[str, int], words: learning.Counts, appended: int
) -> list[str]:
    """Fills a vocabulary's [unused] rows, then appends `appended` rows."""
    report("With the vocabulary as it was", list(base), words)
    extended = learning.extend(list(base), words, learn(words, 0), appended)
    more = len(extended) - len(base)
    new = len(set(extended) - base.keys()) - more
    logging.info("Filled %s [unused] rows, appended %s.", f"{new:,}", more)
    lacking = len(learning.unused_rows(list(base))) + appended - new - more
    if lacking:
        logging.warning(
            "%d rows got no token: of the tokens learned from the text (at "
            "most --vocab_size=%d), no other makes it shorter.",
            lacking,
            _VOCAB_SIZE.value,
        )
    return extended


def report(title: str, pieces: Sequence[str], words: learning.Counts) -> None:
    """Logs how a vocabulary splits the text."""
    found = learning.coverage(pieces, words)
    logging.info(
        "%s: %s words, %.3f tokens per word, %.3f%% of the words are [UNK].",
        title,
        f"{found.words:,}",
        found.pieces / found.words,
        100 * found.unknown / found.words,
    )
    if words.forgotten:
        logging.info(
            "There were too many different words to count: the rarest %s are "
            "not included.",
            f"{words.forgotten:,}",
        )


def warn_of_characters(words: Mapping[str, int]) -> bool:
    """Warns of characters that are left out, and says if there are any."""
    frequency = learning.count_characters(words)
    most = _MAX_CHARACTERS.value
    if len(frequency) <= most:
        return False
    kept = learning.most_frequent(frequency, most)
    lost = sum(
        count for word, count in words.items() if not kept.issuperset(word)
    )
    share = lost / sum(words.values())
    logging.log(
        logging.WARNING if share > _FEW else logging.INFO,
        "The text has %s different characters, and --max_characters=%s keeps "
        "the most frequent ones: %.2f %% of the words become [UNK].",
        f"{len(frequency):,}",
        most,
        100 * share,
    )
    return True


def warn_of_fewer(number: int) -> None:
    """Warns if a vocabulary has fewer tokens than requested."""
    if number < _VOCAB_SIZE.value:
        often = f" that occur {_MIN_FREQUENCY.value} times"
        logging.warning(
            "The text has no more tokens%s: --vocab_size=%d is not reached.",
            often * (_KIND.value in _FLAGS["min_frequency"]),
            _VOCAB_SIZE.value,
        )


def write(
    path: str, data: bytes, count: int, others: Mapping[str, bytes] = {}
) -> None:
    """Writes a vocabulary of `count` tokens, and its other files by name.

    The specified file is written last: if it exists, all are complete.
    """
    folder = epath.Path(path).parent
    folder.mkdir(parents=True, exist_ok=True)
    for name, other in others.items():
        files.write_bytes(folder / name, other)
    files.write_bytes(path, data)
    logging.info("Wrote %s tokens to %s.", f"{count:,}", path)


# ---- Main -------------------------------------------------------------------


def base_of_flags() -> tuple[dict[str, int] | None, dict[str, Any]]:
    """Returns the vocabulary to extend, None for a new one, and the settings.

    Raises:
        InputError: It can't be extended, or a new one would have no room.
    """
    path, lower = _EXTEND_VOCAB.value, _DO_LOWER_CASE.value
    if path:
        base = tokenization.load_vocab(path, flag="extend_vocab")
    else:
        learning.check_room(_VOCAB_SIZE.value, _NUM_UNUSED.value)
    settings = new_vocabulary.settings_of(path, lower, _STRIP_ACCENTS.value)
    if not path:
        return None, settings
    vocab_files.check_casing(base, lower, path, settings.get("strip_accents"))
    if not _NUM_APPENDED.value and not learning.unused_rows(list(base)):
        raise InputError(
            f"{path} has no [unused] rows to fill. Append rows by "
            "--num_appended, or learn a new vocabulary, without "
            f"--extend_vocab. Received: {len(base)} tokens"
        )
    return base, settings


def learn_word_pieces(path: str) -> None:
    """Learns or extends a WordPiece vocabulary and writes its file."""
    # Else hours of work would end in an error.
    base, settings = base_of_flags()
    lower = _DO_LOWER_CASE.value
    new_vocabulary.check_settings(
        epath.Path(path), settings, lower, _OVERWRITE.value
    )
    if not base:
        extras.check("tokenizers", "data", "Vocabularies that are learned")
    reader = text_flags.reader()
    words = learning.count_words(
        read(text_flags.units(), reader), lower, **settings
    )
    if not words:
        raise InputError("The text holds no words. Is it in --input_format?")
    if base:
        pieces = extend(base, words, _NUM_APPENDED.value)
    else:
        pieces = learn(words, _NUM_UNUSED.value)
        if not warn_of_characters(words):
            warn_of_fewer(len(pieces))
    there = new_vocabulary.read_config(epath.Path(path), _WORDS)
    others = {}
    if tokenizer_config.meant(there.settings, lower) != settings:
        data = tokenizer_config.to_json((), settings)
        others[tokenizer_config.FILE] = data
    text = vocab_files.vocab_text(pieces)
    write(path, text.encode(), len(pieces), others)
    report("The text", pieces, words)


_LEARN = {
    _WORDS: learn_word_pieces,
    _BYTES: learn_byte_pairs,
    _SENTENCES: learn_sentence_pieces,
    _SYMBOLS: learn_symbols,
}


def main(_):
    """Counts the words, then learns the tokens and writes them."""
    command_line.unwind_at_signals()
    meter = phases.Meter()
    check_kind()
    if flag_sections.is_given(flags.FLAGS["language"]):
        logging.warning("Not used, as sentences are not split: --language.")
    _LEARN[_KIND.value](_VOCAB_FILE.value)
    logging.info("Took %.1f seconds.", meter.seconds)


if __name__ == "__main__":
    command_line.run(main)
