"""Wrong texts of create_pretraining_data.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.creating_records.inputs import VALUES, folder, text

CASES = {
    **{
        f"{flag}={value}": matrix.Case({flag: value}, line)
        for flag, values, line in VALUES
        for value in values
    },
    # ---- Texts
    "no file": text(
        "none.txt", "No file matches. Received: '{data}/none.txt'. Give"
    ),
    "one of two missing": text(
        "a.txt,{data}/none.txt",
        "No file matches. Received: '{data}/none.txt'. Give",
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
    "one empty": text(
        "a.txt,{data}/empty",
        "empty is empty: leave it out, or bring back what it held",
    ),
    "folder": matrix.Case(
        {"input_file": "{data}"},
        "{data} is a folder. Give files or a glob, such as {data}/*",
    ),
    "name of two lines": text("a\nb.txt", "--input_file must be texts with"),
    "output_dir of two lines": folder(
        "{out}/a\nb", "--output_dir holds a line end"
    ),
    "empty string": matrix.Case(
        {"input_file": ""},
        "--input_file is empty. Is a variable of the shell not",
    ),
    "trailing comma": text(
        "a.txt,", "--input_file has a comma too many, or a variable of"
    ),
    "flag missing": matrix.Case(
        {"input_file": None},
        "Give --input_file (Text files or globs, comma separated,",
    ),
    "fifo": text(
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
    "blank": text("blank", "The text holds no words. Is it in --input_format?"),
    "documents of one token": text(
        "short",
        "The text gives no sequences for --objective=sop: its documents are",
        objective="sop",
    ),
    "latin1": text("latin1", "latin1, line 3: the text must be UTF-8 (invalid"),
    "utf16": text(
        "utf16", "utf16 is no text: it is UTF-16, not UTF-8. Convert it, as"
    ),
    "nul": text(
        "nul", "nul, line 2: no text has a NUL. Received: character 1."
    ),
    "binary": text(
        "model/bert_model.ckpt.data-00000-of-00001",
        "model/bert_model.ckpt.data-00000-of-00001, line 1: the",
    ),
    "records as text": text(
        "records/*.tfrecord",
        "records/part-00000-of-00001.tfrecord, line 1: the text",
    ),
    "lfs": text(
        "lfs", "lfs is no text: it is a pointer of git-lfs, not the file"
    ),
    "lfs of two": text(
        "a.txt,{data}/lfs",
        "lfs is no text: it is a pointer of git-lfs, not the file",
    ),
    "one document": text(
        "one", "The next-sentence task takes half of its second segments"
    ),
    "gz cut": text(
        "cut.gz", "cut.gz is truncated or corrupt, or not what its ending"
    ),
    "gz flipped": text(
        "flipped.gz", "flipped.gz is truncated or corrupt, or not what its"
    ),
    "gz not": text(
        "not.gz", "not.gz is truncated or corrupt, or not what its ending"
    ),
    "bz2 not": text(
        "not.bz2", "not.bz2 is truncated or corrupt, or not what its ending"
    ),
    "xz not": text(
        "not.xz", "not.xz is truncated or corrupt, or not what its ending"
    ),
    "zst not": text(
        "not.zst", "not.zst is truncated or corrupt, or not what its ending"
    ),
    "gz without ending": text(
        "gzipped", "gzipped is no text: it is compressed (gzip). Unpack it,"
    ),
    "zip": text(
        "x.zip", "x.zip is no text: it is compressed (zip, as also Excel"
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
    "jsonl field empty": text(
        "x.jsonl",
        "--text_field must be given or left out, and it is empty.",
        input_format="jsonl",
        text_field="",
    ),
    "jsonl number": text(
        "number.jsonl",
        "number.jsonl, line 1: the field 'text' must be a string.",
        input_format="jsonl",
    ),
    "jsonl array": text(
        "array.jsonl",
        "array.jsonl, line 1: not a JSON object. Received: ['the",
        input_format="jsonl",
    ),
    "jsonl cut": text(
        "cut.jsonl",
        "cut.jsonl, line 2: not JSON: Unterminated string starting",
        input_format="jsonl",
    ),
    "jsonl one array": text(
        "pretty.json",
        "pretty.json, line 1: not JSON: Expecting value: line 1",
        input_format="jsonl",
    ),
    "jsonl surrogate": text(
        "surrogate.jsonl",
        "surrogate.jsonl, line 1: the text must be UTF-8 (invalid",
        input_format="jsonl",
    ),
    "jsonl as lines of one document": text(
        "x.jsonl", "The next-sentence task takes half of its second segments"
    ),
    "wiki not": matrix.Case(
        {"input_format": "wikiextractor"},
        "a.txt, line 1: no text of WikiExtractor, which begins",
    ),
    "wiki cut": text(
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
    "files one": text(
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
}
