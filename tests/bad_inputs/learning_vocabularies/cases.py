"""Wrong texts, outputs and vocabularies of learn_vocabulary.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.learning_vocabularies.inputs import (
    VALUES,
    base,
    of_kind,
    out,
    text,
)

CASES = {
    "too few characters": matrix.Case(
        {"max_characters": "1"}, "No word of the text could be spelt: all are"
    ),
    "more pieces than can be": matrix.Case(
        {"vocab_size": "2147483647"},
        "--vocab_size must be a whole number, at least 1 and at most 4194304",
    ),
    **{
        f"{flag}={value}": matrix.Case({flag: value}, line)
        for flag, values, line in VALUES
        for value in values
    },
    # ---- Kinds
    "no such kind": matrix.Case(
        {"kind": "bpe"}, "--kind must be one of word_pieces, byte_pairs,"
    ),
    "byte pairs in a text": of_kind(
        "byte_pairs", "vocab.txt", "The name of a file of byte_pairs must end"
    ),
    "sentence pieces in a text": of_kind(
        "sentence_pieces", "vocab.txt", "The name of a file of sentence_pieces"
    ),
    "byte pairs by another name": of_kind(
        "byte_pairs", "x.json", "Byte pairs are written as vocab.json, with"
    ),
    "byte pairs without case": of_kind(
        "byte_pairs",
        "vocab.json",
        "--do_lower_case is not used with --kind=byte_pairs: leave it out, or",
        do_lower_case="false",
    ),
    "sentence pieces of frequent characters": of_kind(
        "sentence_pieces",
        "x.model",
        "--max_characters is not used with --kind=sentence_pieces: leave it",
        max_characters="9",
    ),
    "sentence pieces to extend": of_kind(
        "sentence_pieces",
        "x.model",
        "--extend_vocab is not used with --kind=sentence_pieces: leave it",
        extend_vocab="{data}/base.txt",
    ),
    "symbols in a text": of_kind(
        "symbols",
        "my_symbols.txt",
        "The name of a file of symbols must be symbols.txt or end in .symbols,",
    ),
    "symbols of frequent characters": of_kind(
        "symbols",
        "symbols.txt",
        "--max_characters is not used with --kind=symbols: leave it",
        max_characters="9",
    ),
    "no room for symbols": of_kind(
        "symbols",
        "symbols.txt",
        "A vocabulary of symbols has 6 at least: the special ones and one of",
        vocab_size="5",
    ),
    "symbols that are too rare": of_kind(
        "symbols",
        "x.symbols",
        "The text holds no symbol that occurs often enough. Make",
        min_frequency="1000000",
    ),
    "word pieces as symbols": out(
        "{out}/symbols.txt", "A file of this name is read as one of symbols:"
    ),
    "characters of word pieces": matrix.Case(
        {"character_coverage": "0.99"},
        "--character_coverage is not used with --kind=word_pieces: leave it",
    ),
    "too few sentence pieces": of_kind(
        "sentence_pieces",
        "x.model",
        "Sentence pieces are 14 at least. Make `vocab_size` larger. Received:",
        vocab_size="13",
    ),
    "no room for characters": of_kind(
        "sentence_pieces",
        "x.model",
        "sentencepiece can't learn a model of this text. Make `vocab_size`",
        vocab_size="14",
    ),
    "word pieces by another name": out(
        "{out}/vocab.json", "A file of this name is read as one of byte_pairs:"
    ),
    # ---- Texts
    "no file": text(
        "none.txt", "No file matches. Received: '{data}/none.txt'. Give"
    ),
    "flag missing": matrix.Case(
        {"input_file": None},
        "Give --input_file (Text files or globs, comma separated,",
    ),
    "both missing": matrix.Case(
        {"input_file": None, "vocab_file": None},
        "Give --vocab_file (The vocabulary to write, one piece per",
    ),
    "glob of nothing": text(
        "none/*.txt", "No file matches. Received: '{data}/none/*.txt'. Give"
    ),
    "dangling": text(
        "dangling", "dangling is a link to what is not there: remove it, or"
    ),
    "empty": text(
        "empty", "empty is empty: leave it out, or bring back what it held"
    ),
    "folder": matrix.Case(
        {"input_file": "{data}"},
        "{data} is a folder. Give files or a glob, such as {data}/*",
    ),
    "pipe": text(
        "fifo", "This file is read twice, which a pipe or a device can't"
    ),
    "empty string": matrix.Case(
        {"input_file": ""},
        "--input_file is empty. Is a variable of the shell not",
    ),
    "blank": text("blank", "The text holds no words. Is it in --input_format?"),
    "blank extend": text(
        "blank",
        "The text holds no words. Is it in --input_format?",
        extend_vocab="{data}/base.txt",
    ),
    "latin1": text("latin1", "latin1, line 2: the text must be UTF-8 (invalid"),
    "utf16": text(
        "utf16", "utf16 is no text: it is UTF-16, not UTF-8. Convert it, as"
    ),
    "nul": text(
        "nul", "nul, line 2: no text has a NUL. Received: character 1."
    ),
    "lfs": text(
        "lfs", "lfs is no text: it is a pointer of git-lfs, not the file"
    ),
    "html": text(
        "html", "html is no text: it is a web page, saved in the place of"
    ),
    "gz cut": text(
        "cut.gz", "cut.gz is truncated or corrupt, or not what its ending"
    ),
    "gz without ending": text(
        "gzipped", "gzipped is no text: it is compressed (gzip). Unpack it,"
    ),
    "gz not": text(
        "not.gz", "not.gz is truncated or corrupt, or not what its ending"
    ),
    "jsonl is text": matrix.Case(
        {"input_format": "jsonl"},
        "a.txt, line 1: not JSON: Expecting value: line 1 column 1",
    ),
    "jsonl field": text(
        "x.jsonl",
        "x.jsonl, line 1: no field 'body': name the text's by",
        input_format="jsonl",
        text_field="body",
    ),
    "wiki not": matrix.Case(
        {"input_format": "wikiextractor"},
        "a.txt, line 1: no text of WikiExtractor, which begins",
    ),
    "tfds": matrix.Case(
        {"input_format": "tfds"},
        "There is no data set {data}/a.txt in TensorFlow Datasets.",
    ),
    "format": matrix.Case(
        {"input_format": "csv"},
        "--input_format must be one of lines, documents, files,",
    ),
    "language": matrix.Case(
        {"input_format": "documents", "language": "English"},
        "`language` must be a code of ISO 639, such as en or de.",
    ),
    "text_field unused": matrix.Case(
        {"text_field": "body"}, "--text_field goes with --input_format=jsonl or"
    ),
    "language unused": matrix.Case(
        {"language": "de"}, "--language goes with --input_format=documents or"
    ),
    "long words": text(
        "long", "No word of the text could be spelt: all are longer than"
    ),
    "long words extend": text(
        "long",
        "No word of the text could be spelt: all are longer than",
        extend_vocab="{data}/base.txt",
    ),
    "scheme": matrix.Case(
        {"input_file": "foo://x/y"},
        "There is no file system foo:// here. Give a local path,",
    ),
    # ---- Outputs
    "out input": out(
        "{data}/a.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input hard": out(
        "{data}/hard.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input soft": out(
        "{data}/soft.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input dots": out(
        "{data}/model/../a.txt",
        "--vocab_file would be written over what --input_file",
        overwrite="true",
    ),
    "out input glob": out(
        "{data}/a.txt",
        "--vocab_file would be written over what --input_file",
        input_file="{data}/?.txt",
        overwrite="true",
    ),
    "out would be input": out(
        "{data}/x.txt",
        "--input_file would read what is written to --vocab_file",
        input_file="{data}/?.txt",
    ),
    "out base": out(
        "{data}/base.txt",
        "--vocab_file would be written over what --extend_vocab",
        extend_vocab="{data}/base.txt",
        overwrite="true",
    ),
    "out exists": out(
        "{data}/foreign",
        "foreign exists. Choose another --vocab_file, or replace",
    ),
    "out a model's": out(
        "{data}/model/vocab.txt",
        "model/vocab.txt exists. Choose another --vocab_file, or",
    ),
    "out folder": out(
        "{data}/model", "--vocab_file must name a file, and this is a folder."
    ),
    "out folder slash": out(
        "{out}/new/", "--vocab_file must name a file, and this is a folder."
    ),
    "out below file": out(
        "{data}/a.txt/vocab.txt",
        "--vocab_file can't be made: {data}/a.txt is no folder.",
    ),
    "out empty": matrix.Case(
        {"vocab_file": ""},
        "--vocab_file is empty. Is a variable of the shell not",
    ),
    "out dangling": out(
        "{data}/dangling",
        "--vocab_file can't be made: {data}/dangling is a link to",
    ),
    "out newline": out(
        "{out}/a\nb", "--vocab_file holds a line end, which flags.txt can't"
    ),
    "out too long": out(
        "{out}/" + 300 * "x",
        "--vocab_file can't be made: a name has at most 251 bytes",
    ),
    "out too long with tmp": out(
        "{out}/" + 253 * "x",
        "--vocab_file can't be made: a name has at most 251 bytes",
    ),
    # ---- Vocabularies to extend
    "base none": base(
        "none", "There is no such file. Received: extend_vocab={data}/none"
    ),
    "base model": base("model", "This is a folder: give a file. Received:"),
    "base empty": base("empty", "empty is not a BERT vocabulary: it is empty."),
    "base fifo": base(
        "fifo", "This file is read twice, which a pipe or a device can't"
    ),
    "base dangling": base("dangling", "There is no such file. Received:"),
    "base lfs": base(
        "lfs", "lfs is not a BERT vocabulary: it is a pointer of git-lfs,"
    ),
    "base a.txt": base(
        "a.txt", "a.txt is not a BERT vocabulary: it lacks the piece"
    ),
    "base utf16": base(
        "utf16", "utf16 can't be read: it is UTF-16, not UTF-8. Convert it,"
    ),
    "base bases/twice": base("bases/twice", "is already on line"),
    "base bases/hole": base(
        "bases/hole", "a vocabulary must not hold empty lines"
    ),
    "base bases/no_unk": base(
        "bases/no_unk", "is not a BERT vocabulary: it lacks the piece '[UNK]'"
    ),
    "base bases/full": base(
        "bases/full", "bases/full has no [unused] rows to fill. Append rows by"
    ),
    "base bases/cased": base(
        "bases/cased", "bases/cased is cased: lower-casing and accent stripping"
    ),
    "base bases/latin1": base(
        "bases/latin1",
        "bases/latin1, line 97: a vocabulary must be UTF-8 text.",
    ),
    "base uncased": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "do_lower_case": "false"},
        "base.txt is uncased: none of its",
    ),
    "base empty string": matrix.Case(
        {"extend_vocab": ""},
        "--extend_vocab is empty. Is a variable of the shell not",
    ),
    "appended alone": matrix.Case(
        {"num_appended": "5"},
        "--num_appended goes with --extend_vocab: leave it out.",
    ),
    "unused with extend": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "num_unused": "5"},
        "--num_unused goes without --extend_vocab: leave it out.",
    ),
    "appended -1": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "num_appended": "-1"},
        "--num_appended must be a whole number, at least 0 and at",
    ),
    "appended huge": matrix.Case(
        {"extend_vocab": "{data}/base.txt", "num_appended": "2000000000"},
        "--num_appended must be a whole number, at least 0 and at",
    ),
    # ---- The command line
    "misspelt": matrix.Case(
        {},
        "There is no flag --vocabsize. Did you mean --vocab_size?",
        arguments=("--vocabsize=3",),
    ),
    "argument": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received:",
        arguments=("{data}/b.txt",),
    ),
    "two": out(
        "{data}/foreign",
        "foreign exists. Choose another --vocab_file, or replace",
        input_file="{data}/none",
    ),
}
