"""Bad inputs of create_pretraining_data.py."""

import pathlib
import shutil
from collections.abc import Iterator

from bert_tf import run_lock
from tests import tiny_files
from tests.bad_inputs import creation_inputs, matrix

import pytest

SCRIPT = matrix.Script(
    "create_pretraining_data",
    {
        "input_file": "{data}/a.txt,{data}/b.txt",
        "output_dir": "{out}",
        "vocab_file": "{data}/vocab.txt",
        "max_seq_length": "32",
        "max_predictions_per_seq": "5",
        "dupe_factor": "2",
    },
)


def _text(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a text that is wrong."""
    return matrix.Case({"input_file": f"{{data}}/{name}", **flags}, line)


def _vocab(name: str, line: str) -> matrix.Case:
    """Returns a case of a vocabulary that is wrong."""
    return matrix.Case({"vocab_file": f"{{data}}/{name}"}, line)


def _folder(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a folder that can't be written to."""
    return matrix.Case({"output_dir": path, **flags}, line)


def _file(paths: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of files that can't be written."""
    return matrix.Case(
        {"output_dir": None, "output_file": paths, **flags}, line
    )


def _show(records: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of records that can't be shown."""
    shown = dict.fromkeys(SCRIPT.good) | {
        "show": "1",
        "vocab_file": "{data}/vocab.txt",
        "input_file": records,
    }
    return matrix.Case({**shown, **flags}, line)


# A flag, values of it that are wrong, and what the error says.
_VALUES = (
    ("max_seq_length", ["0", "-1", "4"], "`max_seq_length` must be at least 5"),
    (
        "max_seq_length",
        ["nan", "1e99", "", "128.0", "9223372036854775808", "1000000000"],
        "--max_seq_length must be a whole number, at most 65536.",
    ),
    (
        "max_predictions_per_seq",
        ["0", "30", "-1"],
        "`max_predictions_per_seq` must be from 1 to 29: a",
    ),
    (
        "max_predictions_per_seq",
        ["x"],
        "--max_predictions_per_seq must be a whole number.",
    ),
    ("dupe_factor", ["0", "-3"], "`dupe_factor` must be at least 1"),
    (
        "dupe_factor",
        ["inf", "9223372036854775808", "0.5"],
        "--dupe_factor must be a whole number, at most 10000.",
    ),
    (
        "random_seed",
        ["-1", "1e3", "abc"],
        "--random_seed must be a whole number, at least 0.",
    ),
    (
        "random_seed",
        ["9223372036854775808"],
        "--random_seed must be a whole number, at least 0, at most",
    ),
    ("short_seq_prob", ["nan", "ten"], "--short_seq_prob must be a number"),
    ("short_seq_prob", ["-0.1", "1.5"], "`short_seq_prob` must be from 0 to 1"),
    (
        "masked_lm_prob",
        ["nan", "inf", "15%"],
        "--masked_lm_prob must be a number",
    ),
    ("masked_lm_prob", ["15", "-1"], "`masked_lm_prob` must be from 0 to 1"),
    ("mask_share", ["2"], "`mask_share` must be from 0 to 1"),
    ("mask_share", ["nan"], "--mask_share must be a number"),
    (
        "mask_share",
        ["0.95"],
        "`mask_share` and `random_share` are shares of the same",
    ),
    ("random_share", ["-0.1"], "`random_share` must be from 0 to 1"),
    (
        "random_share",
        ["0.3"],
        "`mask_share` and `random_share` are shares of the same",
    ),
    (
        "num_shards",
        ["0", "-1", "1e3"],
        "--num_shards must be a whole number, at least 1.",
    ),
    (
        "num_shards",
        ["1000"],
        "The text gives about 40 sequences, too few for so many",
    ),
    (
        "num_shards",
        ["9223372036854775808"],
        "--num_shards must be a whole number, at least 1, at most",
    ),
    (
        "shard_size_mb",
        ["0", "nan", "0.5"],
        "--shard_size_mb must be a whole number, at least 1.",
    ),
    (
        "num_workers",
        ["0", "-2", "all"],
        "--num_workers must be a whole number, at least 1 and at",
    ),
    (
        "max_sequences_per_row",
        ["4"],
        "--max_sequences_per_row goes with --pack: leave it out.",
    ),
    ("show", ["-1", "all"], "--show must be a whole number, at least 0"),
    ("do_lower_case", ["maybe"], "--do_lower_case must be true or false"),
    ("pack", ["2"], "--pack must be true or false"),
    (
        "dynamic_masking",
        ["yes please"],
        "--dynamic_masking must be true or false",
    ),
    ("objective", ["mlm"], "--objective must be one of nsp, sop, none"),
    ("masking", ["words"], "--masking must be one of token, whole_word, span."),
    (
        "runner",
        ["LocalRunner"],
        "--runner must be one of DirectRunner, FlinkRunner,",
    ),
)
CASES = {
    **{
        f"{flag}={value}": matrix.Case({flag: value}, line)
        for flag, values, line in _VALUES
        for value in values
    },
    # ---- Texts
    "no file": _text(
        "none.txt", "No file matches. Received: '{data}/none.txt'. Give"
    ),
    "one of two missing": _text(
        "a.txt,{data}/none.txt",
        "No file matches. Received: '{data}/none.txt'. Give",
    ),
    "glob of nothing": _text(
        "none/*.txt", "No file matches. Received: '{data}/none/*.txt'. Give"
    ),
    "dangling": _text(
        "dangling", "dangling is a link to what is not there: remove it, or"
    ),
    "empty": _text(
        "empty", "empty is empty: leave it out, or bring back what it held"
    ),
    "one empty": _text(
        "a.txt,{data}/empty",
        "empty is empty: leave it out, or bring back what it held",
    ),
    "folder": matrix.Case(
        {"input_file": "{data}"},
        "{data} is a folder. Give files or a glob, such as {data}/*",
    ),
    "name of two lines": _text("a\nb.txt", "--input_file must be texts with"),
    "output_dir of two lines": _folder(
        "{out}/a\nb", "--output_dir holds a line end"
    ),
    "empty string": matrix.Case(
        {"input_file": ""},
        "--input_file is empty. Is a variable of the shell not",
    ),
    "trailing comma": _text(
        "a.txt,", "--input_file has a comma too many, or a variable of"
    ),
    "flag missing": matrix.Case(
        {"input_file": None},
        "Give --input_file (Text files or globs, comma separated,",
    ),
    "fifo": _text(
        "fifo", "This file is read twice, which a pipe or a device can't"
    ),
    "device": matrix.Case(
        {"input_file": "/dev/zero"},
        "This file is read twice, which a pipe or a device can't",
    ),
    "null device": matrix.Case(
        {"input_file": "/dev/null"},
        "This file is read twice, which a pipe or a device can't",
    ),
    "blank": _text(
        "blank", "The text holds no words. Is it in --input_format?"
    ),
    "latin1": _text(
        "latin1", "latin1, line 3: the text must be UTF-8 (invalid"
    ),
    "utf16": _text(
        "utf16", "utf16 is no text: it is UTF-16, not UTF-8. Convert it, as"
    ),
    "nul": _text(
        "nul", "nul, line 2: no text has a NUL. Received: character 1."
    ),
    "binary": _text(
        "model/bert_model.ckpt.data-00000-of-00001",
        "model/bert_model.ckpt.data-00000-of-00001, line 1: the",
    ),
    "records as text": _text(
        "records/*.tfrecord",
        "records/part-00000-of-00001.tfrecord, line 1: the text",
    ),
    "lfs": _text(
        "lfs", "lfs is no text: it is a pointer of git-lfs, not the file"
    ),
    "lfs of two": _text(
        "a.txt,{data}/lfs",
        "lfs is no text: it is a pointer of git-lfs, not the file",
    ),
    "one document": _text(
        "one", "The next-sentence task takes half of its second segments"
    ),
    "gz cut": _text(
        "cut.gz", "cut.gz is truncated or corrupt, or not what its ending"
    ),
    "gz flipped": _text(
        "flipped.gz", "flipped.gz is truncated or corrupt, or not what its"
    ),
    "gz not": _text(
        "not.gz", "not.gz is truncated or corrupt, or not what its ending"
    ),
    "bz2 not": _text(
        "not.bz2", "not.bz2 is truncated or corrupt, or not what its ending"
    ),
    "xz not": _text(
        "not.xz", "not.xz is truncated or corrupt, or not what its ending"
    ),
    "zst not": _text(
        "not.zst", "not.zst is truncated or corrupt, or not what its ending"
    ),
    "gz without ending": _text(
        "gzipped", "gzipped is no text: it is compressed (gzip). Unpack it,"
    ),
    "zip": _text(
        "x.zip", "x.zip is no text: it is compressed (zip, as also Excel"
    ),
    "jsonl is text": matrix.Case(
        {"input_format": "jsonl"},
        "a.txt, line 1: not JSON: Expecting value: line 1 column 1",
    ),
    "jsonl field": _text(
        "x.jsonl",
        "x.jsonl, line 1: no field 'body': name the text's by",
        input_format="jsonl",
        text_field="body",
    ),
    "jsonl field empty": _text(
        "x.jsonl",
        "--text_field must be given or left out, and it is empty.",
        input_format="jsonl",
        text_field="",
    ),
    "jsonl number": _text(
        "number.jsonl",
        "number.jsonl, line 1: the field 'text' must be a string.",
        input_format="jsonl",
    ),
    "jsonl array": _text(
        "array.jsonl",
        "array.jsonl, line 1: not a JSON object. Received: ['the",
        input_format="jsonl",
    ),
    "jsonl cut": _text(
        "cut.jsonl",
        "cut.jsonl, line 2: not JSON: Unterminated string starting",
        input_format="jsonl",
    ),
    "jsonl one array": _text(
        "pretty.json",
        "pretty.json, line 1: not JSON: Expecting value: line 1",
        input_format="jsonl",
    ),
    "jsonl surrogate": _text(
        "surrogate.jsonl",
        "surrogate.jsonl, line 1: the text must be UTF-8 (invalid",
        input_format="jsonl",
    ),
    "jsonl as lines of one document": _text(
        "x.jsonl", "The next-sentence task takes half of its second segments"
    ),
    "wiki not": matrix.Case(
        {"input_format": "wikiextractor"},
        "a.txt, line 1: no text of WikiExtractor, which begins",
    ),
    "wiki cut": _text(
        "cut.wiki",
        "cut.wiki, line 1: the article that begins here has no",
        input_format="wikiextractor",
    ),
    "tfds name": matrix.Case(
        {"input_format": "tfds", "input_file": "no_such_data"},
        "There is no data set no_such_data in TensorFlow Datasets.",
    ),
    "tfds file": matrix.Case(
        {"input_format": "tfds"},
        "There is no data set {data}/a.txt in TensorFlow Datasets.",
    ),
    "files one": _text(
        "a.txt",
        "The next-sentence task takes half of its second segments",
        input_format="files",
    ),
    "format unknown": matrix.Case(
        {"input_format": "csv"},
        "--input_format must be one of lines, documents, files,",
    ),
    "on_bad_text": matrix.Case(
        {"on_bad_text": "ignore"},
        "--on_bad_text must be one of error, replace. Received:",
    ),
    "language": matrix.Case(
        {"input_format": "documents", "language": "English"},
        "`language` must be a code of ISO 639, such as en or de.",
    ),
    "language empty": matrix.Case(
        {"input_format": "documents", "language": ""},
        "--language must be given or left out, and it is empty. Is",
    ),
    "language unused": matrix.Case(
        {"language": "de"}, "--language goes with --input_format=documents or"
    ),
    "text_field unused": matrix.Case(
        {"text_field": "body"}, "--text_field goes with --input_format=jsonl or"
    ),
    # ---- Vocabularies
    "vocab missing": matrix.Case(
        {"vocab_file": None},
        "Give --vocab_file (The vocabulary, one piece per line).",
    ),
    "vocab not given a file": _vocab(
        "none.txt", "There is no such file. Received:"
    ),
    "vocab folder": _vocab("model", "This is a folder: give a file. Received:"),
    "vocab empty": _vocab(
        "empty", "empty is not a BERT vocabulary: it is empty."
    ),
    "vocab empty string": matrix.Case(
        {"vocab_file": ""},
        "--vocab_file is empty. Is a variable of the shell not",
    ),
    "vocab dangling": _vocab("dangling", "There is no such file. Received:"),
    "vocab fifo": _vocab(
        "fifo", "This file is read twice, which a pipe or a device can't"
    ),
    "vocab is text": _vocab(
        "a.txt", "a.txt is not a BERT vocabulary: it lacks the piece"
    ),
    "vocab is config": _vocab(
        "model/bert_config.json",
        "model/bert_config.json is not a BERT vocabulary: it lacks",
    ),
    "vocab is tokenizer": _vocab(
        "tokenizer.json",
        "tokenizer.json is not a BERT vocabulary: it lacks the",
    ),
    "vocab lfs": _vocab(
        "lfs", "lfs is not a BERT vocabulary: it is a pointer of git-lfs,"
    ),
    "vocab binary": _vocab(
        "model/bert_model.ckpt.data-00000-of-00001",
        "model/bert_model.ckpt.data-00000-of-00001, line 1: a",
    ),
    "vocab utf16": _vocab(
        "vocabs/utf16", "vocabs/utf16 can't be read: it is UTF-16, not UTF-8."
    ),
    "vocab latin1": _vocab(
        "vocabs/latin1",
        "vocabs/latin1, line 45: a vocabulary must be UTF-8 text.",
    ),
    "vocab twice": _vocab(
        "vocabs/twice",
        "vocabs/twice, line 45: this piece is already on line 8.",
    ),
    "vocab hole": _vocab(
        "vocabs/hole", "vocabs/hole, line 10: a vocabulary must not hold empty"
    ),
    "vocab without unk": _vocab(
        "vocabs/no_unk", "vocabs/no_unk is not a BERT vocabulary: it lacks the"
    ),
    "vocab without mask": _vocab(
        "vocabs/no_mask",
        "The vocabulary {data}/vocabs/no_mask lacks [MASK], which",
    ),
    "vocab without cls": _vocab(
        "vocabs/no_cls",
        "The vocabulary {data}/vocabs/no_cls lacks [CLS], which",
    ),
    "vocab without sep": _vocab(
        "vocabs/no_sep",
        "The vocabulary {data}/vocabs/no_sep lacks [SEP], which",
    ),
    "vocab specials only": _vocab(
        "vocabs/specials",
        "All words of the text are [UNK]: its language, or its",
    ),
    "vocab cased": _vocab(
        "vocabs/cased",
        "vocabs/cased is cased: lower-casing and accent stripping",
    ),
    "vocab uncased": matrix.Case(
        {"do_lower_case": "false"},
        "vocab.txt is uncased: none of its 31 pieces with letters",
    ),
    "vocab columns": _vocab(
        "vocabs/columns",
        "vocabs/columns is not a BERT vocabulary: it lacks the",
    ),
    "vocab glob": _vocab("vocab*.txt", "There is no such file. Received:"),
    # ---- Combinations
    "max_sequences_per_row=0": matrix.Case(
        {"pack": "true", "max_sequences_per_row": "0"},
        "`max_sequences_per_row` must be at least 1. Received:",
    ),
    "max_sequences_per_row=2**63": matrix.Case(
        {"pack": "true", "max_sequences_per_row": "9223372036854775808"},
        "--max_sequences_per_row must be a whole number, at most",
    ),
    "num_shards and size": matrix.Case(
        {"num_shards": "2", "shard_size_mb": "9"},
        "The size of a file follows from their number: give either",
    ),
    "num_shards of named": _file(
        "{out}/x",
        "--num_shards goes with --output_dir: leave it out.",
        num_shards="2",
    ),
    "overwrite of folder": matrix.Case(
        {"overwrite": "true"},
        "--overwrite goes with --output_file: leave it out.",
    ),
    "whole word and span": matrix.Case(
        {"masking": "span", "do_whole_word_mask": "true"},
        "--do_whole_word_mask means --masking=whole_word: leave",
    ),
    "word_list without": matrix.Case(
        {"word_list": "{data}/words"},
        "--word_list goes with --do_whole_word_mask or",
    ),
    "segmenter without": matrix.Case(
        {"segmenter": "json:loads"},
        "--segmenter goes with --do_whole_word_mask or",
    ),
    "word_list and segmenter": matrix.Case(
        {
            "masking": "whole_word",
            "word_list": "{data}/words",
            "segmenter": "shlex:split",
        },
        "Give either --word_list or --segmenter. Received:",
    ),
    "word_list missing": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/none"},
        "There is no such file. Received: word_list={data}/none",
    ),
    "word_list folder": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}"},
        "This is a folder: give a file. Received: word_list={data}",
    ),
    "word_list empty": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/empty"},
        "The word list {data}/empty holds no words: write one per",
    ),
    "word_list blank": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/blank"},
        "The word list {data}/blank holds no words: write one per",
    ),
    "word_list latin1": matrix.Case(
        {"masking": "span", "word_list": "{data}/latin1"},
        "The word list {data}/latin1 must be UTF-8 (invalid",
    ),
    "word_list fifo": matrix.Case(
        {"masking": "span", "word_list": "{data}/fifo"},
        "This file is read twice, which a pipe or a device can't",
    ),
    "segmenter no function": matrix.Case(
        {"masking": "span", "segmenter": "jieba"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter no module": matrix.Case(
        {"masking": "span", "segmenter": "no_such_module:cut"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter no such": matrix.Case(
        {"masking": "span", "segmenter": "json:no_such"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter not callable": matrix.Case(
        {"masking": "span", "segmenter": "json:__name__"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter raises": matrix.Case(
        {"masking": "span", "segmenter": "json:loads"},
        "The segmenter json:loads must make a list of words of a",
    ),
    "segmenter returns None": matrix.Case(
        {"masking": "span", "segmenter": "gc:set_debug"},
        "The segmenter gc:set_debug must make a list of words of a",
    ),
    "segmenter returns numbers": matrix.Case(
        {"masking": "span", "segmenter": "builtins:len"},
        "The segmenter builtins:len must make a list of words of a",
    ),
    "segmenter returns bytes": matrix.Case(
        {"masking": "span", "segmenter": "os:fsencode"},
        "The segmenter os:fsencode must return strings. Received:",
    ),
    "segmenter dots": matrix.Case(
        {"masking": "span", "segmenter": ".:x"},
        "The segmenter must be an importable module:function, such",
    ),
    "runner without beam": matrix.Case(
        {"runner": "DirectRunner"},
        "--runner needs Apache Beam, in an environment of its own:",
    ),
    "runner and workers": matrix.Case(
        {"runner": "DirectRunner", "num_workers": "2"},
        "--num_workers goes without --runner: leave it out.",
    ),
    "beam_options alone": matrix.Case(
        {"beam_options": "--region=x"},
        "--beam_options goes with --runner: leave it out.",
    ),
    "beam options quote": matrix.Case(
        {"runner": "DirectRunner", "beam_options": "--region='x"},
        "--beam_options must be written as in a shell (No closing",
    ),
    # ---- Outputs
    "no output": matrix.Case(
        {"output_dir": None},
        "Give either --output_file or --output_dir. Received:",
    ),
    "both outputs": matrix.Case(
        {"output_file": "{out}/x"},
        "Give either --output_file or --output_dir. Received:",
    ),
    "output_dir empty": matrix.Case(
        {"output_dir": ""},
        "--output_dir is empty. Is a variable of the shell not",
    ),
    "output_file empty": matrix.Case(
        {"output_dir": None, "output_file": ""},
        "--output_file is empty. Is a variable of the shell not",
    ),
    "output_file comma": _file(
        "{out}/x,", "--output_file has a comma too many, or a variable of"
    ),
    "output_dir is a file": _folder(
        "{data}/a.txt", "--output_dir must be a folder, and this is a file."
    ),
    "output_dir below a file": _folder(
        "{data}/a.txt/x",
        "--output_dir can't be made: {data}/a.txt is no folder.",
    ),
    "output_file below a file": _file(
        "{data}/a.txt/x/y",
        "--output_file can't be made: {data}/a.txt is no folder.",
    ),
    "output_file is a folder": _file(
        "{data}/model", "--output_file must name files: give a folder by"
    ),
    "output_file is a folder of two": _file(
        "{out}/x,{data}/model",
        "--output_file must name files: give a folder by",
    ),
    "output_file input": _file(
        "{data}/a.txt", "--output_file would be written over what --input_file"
    ),
    "output_file input overwrite": _file(
        "{data}/a.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input second": _file(
        "{out}/x,{data}/b.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input dots": _file(
        "{data}/model/../a.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input hard": _file(
        "{data}/hard.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input soft": _file(
        "{data}/soft.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input glob": _file(
        "{data}/a.txt",
        "--output_file would be written over what --input_file",
        input_file="{data}/?.txt",
        overwrite="true",
    ),
    "output_file vocab": _file(
        "{data}/vocab.txt",
        "--output_file would be written over what --vocab_file",
        overwrite="true",
    ),
    "output_file words": _file(
        "{data}/words",
        "--output_file would be written over what --word_list",
        overwrite="true",
        masking="span",
        word_list="{data}/words",
    ),
    "output_file foreign": _file(
        "{data}/foreign",
        "foreign exists, and its manifest does not: no run of ours",
    ),
    "output_file of future glob": _file(
        "{data}/x.txt",
        "--input_file would read what is written to --output_file",
        input_file="{data}/?.txt",
    ),
    "output_dir of future glob": matrix.Case(
        {"input_file": "{data}/texts/*", "output_dir": "{data}/texts"},
        "--input_file would read what is written to --output_dir",
    ),
    "output_file twice": _file(
        "{out}/x,{out}/x", "--output_file must name each file once. Received:"
    ),
    "output_file twice dots": _file(
        "{out}/x,{out}/./x", "--output_file must name each file once. Received:"
    ),
    "output_file its manifest": _file(
        "{out}/x,{out}/x.manifest.json",
        "{out}/x.manifest.json is kept for what belongs to the",
    ),
    "output_file its work": _file(
        "{out}/x,{out}/x.work",
        "{out}/x.work is kept for what belongs to the first file:",
    ),
    "output_file device": _file(
        "/dev/null", "--output_file must name files, and this is a pipe or a"
    ),
    "output_file fifo": _file(
        "{data}/fifo", "--output_file must name files, and this is a pipe or a"
    ),
    "output_file too long": _file(
        "{out}/" + 300 * "x",
        "--output_file can't be made: a name has at most 251 bytes",
    ),
    "output_file manifest too long": _file(
        "{out}/" + 245 * "x",
        "The name of --output_file is too long: that of its",
    ),
    "output_file manifest foreign": _file(
        "{data}/beside/x",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir other records": _folder(
        "{data}/others", "The folder {data}/others holds other records, such as"
    ),
    "output_dir manifest foreign": _folder(
        "{data}/foreign_manifest",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest empty": _folder(
        "{data}/empty_manifest",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest binary": _folder(
        "{data}/binary_manifest",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest newer": _folder(
        "{data}/newer",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest folder": _folder(
        "{data}/manifest_folder",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir another run": _folder(
        "{data}/records",
        "records/manifest.json is of another run: dupe_factor was",
        dupe_factor="3",
    ),
    "output_dir another seed": _folder(
        "{data}/records",
        "records/manifest.json is of another run: random_seed was",
        random_seed="1",
    ),
    "output_dir another text": matrix.Case(
        {"output_dir": "{data}/records", "input_file": "{data}/a.txt"},
        "records/manifest.json is of another run: input_file was 2",
    ),
    "output_dir another length": _folder(
        "{data}/records",
        "records/manifest.json is of another run: max_seq_length",
        max_seq_length="16",
    ),
    "output_dir lost shard": _folder("{data}/lost", "lost/manifest.json lists"),
    "output_dir unfinished other": _folder(
        "{data}/unfinished",
        "unfinished/.work holds the unfinished work of another",
        dupe_factor="3",
    ),
    "output_dir work is a file": _folder(
        "{data}/work_file",
        "work_file/.work must be the folder that the work is done",
    ),
    "output_dir run.json broken": _folder(
        "{data}/broken_run",
        "broken_run/.work/run.json, of the unfinished work of an",
    ),
    "output_dir run.json list": _folder(
        "{data}/list_run",
        "list_run/.work/run.json, of the unfinished work of an",
    ),
    "output_dir counts broken": _folder(
        "{data}/broken_counts",
        "broken_counts/.work/counts/tokens-0.json, of the",
    ),
    "output_dir tokens broken": _folder(
        "{data}/broken_tokens",
        "broken_tokens/.work/tokens/000000-0000.npy, of the",
    ),
    "output_dir sequences broken": _folder(
        "{data}/broken_sequences",
        "broken_sequences/.work/sequences/000000-0000-000.bin, of",
    ),
    "output_dir held": _folder("{data}/held", "held/.work is in use: process "),
    "output_dir dangling": _folder(
        "{data}/dangling",
        "--output_dir can't be made: {data}/dangling is a link to",
    ),
    "output_dir in proc": _folder(
        "/proc/x", "[Errno 2] No such file or directory: '/proc/x'"
    ),
    "output_dir scheme": _folder(
        "foo://bucket/x",
        "There is no file system foo:// here. Give a local path,",
    ),
    # ---- The command line
    "argument": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received:",
        arguments=("{data}/b.txt",),
    ),
    "misspelt": matrix.Case(
        {},
        "There is no flag --dupe_facter. Did you mean",
        arguments=("--dupe_facter=3",),
    ),
    "flagfile missing": matrix.Case(
        {},
        "A flagfile, or one that it names, can't be read: No such",
        arguments=("--flagfile={data}/none.flags",),
    ),
    "flagfile binary": matrix.Case(
        {},
        "Only flags are expected, as --name=value. Received: 'a'",
        arguments=("--flagfile={data}/nul",),
    ),
    "flagfile folder": matrix.Case(
        {},
        "A flagfile, or one that it names, can't be read: Is a",
        arguments=("--flagfile={data}",),
    ),
    "no value": matrix.Case(
        {}, "Missing value for flag --dupe_factor", arguments=("--dupe_factor",)
    ),
    "old flag": matrix.Case(
        {},
        "There is no flag --output_files. Did you mean",
        arguments=("--output_files=x",),
    ),
    "two mistakes": matrix.Case(
        {
            "input_file": "{data}/none.txt",
            "vocab_file": "{data}/none",
            "max_seq_length": "0",
        },
        "`max_seq_length` must be at least 5. Received:",
    ),
    # ---- Records to show
    "show no file": _show(
        "{data}/none/*.tfrecord",
        "No file matches. Received: '{data}/none/*.tfrecord'. Give",
    ),
    "show text": _show(
        "{data}/a.txt", "a.txt, record 1: truncated, corrupt or not a TFRecord"
    ),
    "show vocab none": _show(
        "{data}/records/*.tfrecord",
        "There is no such file. Received: vocab_file={data}/none",
        vocab_file="{data}/none",
    ),
    "show vocab missing": _show(
        "{data}/records/*.tfrecord",
        "Give --vocab_file (The vocabulary, one piece per line).",
        vocab_file=None,
    ),
    "show vocab short": _show(
        "{data}/records/*.tfrecord",
        "records/part-00000-of-00001.tfrecord was not made with",
        vocab_file="{data}/vocabs/specials",
    ),
    "show vocab other": _show(
        "{data}/records/*.tfrecord",
        "records/part-00000-of-00001.tfrecord was not made with",
        vocab_file="{data}/vocabs/turned",
    ),
    "show vocab other no manifest": _show(
        "{data}/no_manifest/*.tfrecord",
        "no_manifest/part-00000-of-00001.tfrecord holds the token",
        vocab_file="{data}/vocabs/specials",
    ),
    "show cut at once": _show(
        "{data}/cut_soon/*.tfrecord",
        "cut_soon/part-00000-of-00001.tfrecord, record 1:",
    ),
    "show flipped": _show(
        "{data}/flipped/*.tfrecord",
        "flipped/part-00000-of-00001.tfrecord, record 1:",
    ),
    "show many": _show(
        "{data}/records/*.tfrecord",
        "--show must be a whole number, at least 0, at most",
        show="9223372036854775808",
    ),
    "show empty file": _show(
        "{data}/empty",
        "empty is empty: leave it out, or bring back what it held",
    ),
    "show folder": _show(
        "{data}/records", "records is a folder. Give files or a glob, such as"
    ),
    "show newer": _show(
        "{data}/newer/*.tfrecord",
        "newer/manifest.json is of a newer format than this",
    ),
    "show manifest broken": _show(
        "{data}/empty_manifest/*.tfrecord",
        "empty_manifest/manifest.json is not JSON: it is empty.",
    ),
    "show manifest binary": _show(
        "{data}/binary_manifest/*.tfrecord",
        "binary_manifest/manifest.json is not JSON: Expecting",
    ),
    "show unmasked alone": _show(
        "{data}/unmasked/*.tfrecord",
        "unmasked/part-00000-of-00001.tfrecord holds text without",
    ),
    "show record classifier": _show(
        "{data}/odd/classifier.tfrecord",
        "odd/classifier.tfrecord does not hold pre-training",
    ),
    "show record negative": _show(
        "{data}/odd/negative.tfrecord",
        "odd/negative.tfrecord holds the token -5, the vocabulary",
    ),
    "show record beyond": _show(
        "{data}/odd/beyond.tfrecord",
        "odd/beyond.tfrecord holds the token 5000000000, the",
    ),
    "show record floats": _show(
        "{data}/odd/floats.tfrecord",
        "odd/floats.tfrecord, record 1: input_ids must hold some",
    ),
    "show record texts": _show(
        "{data}/odd/texts.tfrecord",
        "odd/texts.tfrecord, record 1: input_ids must hold some",
    ),
    "show record lengths": _show(
        "{data}/odd/lengths.tfrecord",
        "odd/lengths.tfrecord, record 1: input_mask must hold 8",
    ),
    "show record places": _show(
        "{data}/odd/places.tfrecord",
        "odd/places.tfrecord, record 1: masked_lm_positions must",
    ),
    "show record no_mask": _show(
        "{data}/odd/no_mask.tfrecord",
        "odd/no_mask.tfrecord does not hold pre-training records:",
    ),
    "show record no_masks_ids": _show(
        "{data}/odd/no_masks_ids.tfrecord",
        "odd/no_masks_ids.tfrecord does not hold pre-training",
    ),
    "show record no_label": _show(
        "{data}/odd/no_label.tfrecord",
        "odd/no_label.tfrecord, record 1: next_sentence_labels",
    ),
    "show record label": _show(
        "{data}/odd/label.tfrecord",
        "odd/label.tfrecord, record 1: next_sentence_labels must",
    ),
    "show record empty": _show(
        "{data}/odd/empty.tfrecord",
        "odd/empty.tfrecord does not hold pre-training records:",
    ),
    "show record nothing": _show(
        "{data}/odd/nothing.tfrecord",
        "odd/nothing.tfrecord does not hold pre-training records:",
    ),
    "show record not_example": _show(
        "{data}/odd/not_example.tfrecord",
        "odd/not_example.tfrecord, record 1: not a",
    ),
    "show record uneven": _show(
        "{data}/odd/uneven.tfrecord",
        "odd/uneven.tfrecord, record 1: masked_lm_ids must hold 2",
    ),
    "show and output": matrix.Case(
        {"show": "1"}, "a.txt, record 1: truncated, corrupt or not a TFRecord"
    ),
}

RIGHT = {
    "names": _text("ä ö ☃/*.txt", "", output_dir="{out}/é x"),
    "a byte order mark": _text("bom.txt", ""),
    "lines as of Windows": _text("crlf.txt", ""),
    "a vocabulary as of Windows": _vocab("vocabs/windows", ""),
    "a vocabulary without padding": _vocab("vocabs/no_pad", ""),
    "padding that is not the first": _vocab("vocabs/pad_last", ""),
    "the same file twice": _text("a.txt,{data}/a.txt", ""),
    "bad text, replaced": _text(
        "latin1,{data}/nul,{data}/a.txt", "", on_bad_text="replace"
    ),
    "what is made": _folder(
        "{data}/records", "This is done: see {data}/records/manifest.json."
    ),
    "a file": _file("{out}/x", ""),
    "no masks": matrix.Case({"masked_lm_prob": "0", "short_seq_prob": "0"}, ""),
    "variables of others": matrix.Case(
        {},
        "",
        environment={
            "TF_CONFIG": "{{",
            "KERAS_BACKEND": "torch",
            "MPLBACKEND": "nonsense",
        },
    ),
    "shown": _show("{data}/records/*.tfrecord", ""),
    "shown by an odd name": _show("{data}/records.gz", ""),
    "shown where the end is cut off": _show("{data}/cut/*.tfrecord", ""),
    "shown, with flags of their making": _show(
        "{data}/records/*.tfrecord",
        "",
        dupe_factor="3",
        input_format="jsonl",
        do_lower_case="false",
        num_workers="3",
        on_bad_text="replace",
    ),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    folder = tmp_path_factory.mktemp("data")
    tiny_files.write_model(folder / "model")
    shutil.copy(folder / "model" / "vocab.txt", folder / "vocab.txt")
    creation_inputs.write_texts(folder)
    creation_inputs.write_vocabularies(folder / "vocabs")
    creation_inputs.write_records(folder / "odd")
    matrix.make(SCRIPT, folder, folder / "records")
    matrix.make(SCRIPT, folder, folder / "unmasked", "--dynamic_masking")
    creation_inputs.write_outputs(folder)
    with run_lock.hold(folder / "held" / ".work", what="makes records"):
        yield folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)


@pytest.mark.parametrize("name", RIGHT)
def test_what_rightly_works(name, data, tmp_path):
    matrix.check_works(SCRIPT, RIGHT[name], data, tmp_path)
