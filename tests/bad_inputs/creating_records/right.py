"""What looks wrong to create_pretraining_data.py, and rightly works."""

from tests.bad_inputs import matrix
from tests.bad_inputs.creating_records.inputs import (
    file,
    folder,
    show,
    text,
    vocab,
)

RIGHT = {
    "names": text("ä ö ☃/*.txt", "", output_dir="{out}/é x"),
    "a byte order mark": text("bom.txt", ""),
    "lines as of Windows": text("crlf.txt", ""),
    "a vocabulary as of Windows": vocab("vocabs/windows", ""),
    "a vocabulary without padding": vocab("vocabs/no_pad", ""),
    "padding that is not the first": vocab("vocabs/pad_last", ""),
    "the same file twice": text("a.txt,{data}/a.txt", ""),
    "a link to it, too": text(
        "a.txt,{data}/soft.txt", "soft.txt is {data}/a.txt: it is read once."
    ),
    "JSON lines as text": text(
        "x.jsonl",
        "x.jsonl begins as --input_format=jsonl does, and is read as plain t",
        objective="none",
    ),
    "bad text, replaced": text(
        "latin1,{data}/nul,{data}/a.txt", "", on_bad_text="replace"
    ),
    "what is made": folder(
        "{data}/records", "This is done: see {data}/records/manifest.json."
    ),
    "a file": file("{out}/x", ""),
    "no masks": matrix.Case({"masked_lm_prob": "0", "short_seq_prob": "0"}, ""),
    "n-grams of whole words": matrix.Case(
        {"masking": "ngram", "ngram": "2", "do_whole_word_mask": "true"}, ""
    ),
    "variables of others": matrix.Case(
        {},
        "",
        environment={
            "TF_CONFIG": "{{",
            "KERAS_BACKEND": "torch",
            "MPLBACKEND": "nonsense",
        },
    ),
    "shown": show("{data}/records/*.tfrecord", ""),
    "shown by an odd name": show("{data}/records.gz", ""),
    "shown where the end is cut off": show("{data}/cut/*.tfrecord", ""),
    "shown, with flags of their making": show(
        "{data}/records/*.tfrecord",
        "",
        dupe_factor="3",
        input_format="jsonl",
        do_lower_case="false",
        num_workers="3",
        on_bad_text="replace",
    ),
}
