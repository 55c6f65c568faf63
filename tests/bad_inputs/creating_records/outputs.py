"""Wrong outputs and command lines of create_pretraining_data.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.creating_records.inputs import file, folder, show

CASES = {
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
    "output_file comma": file(
        "{out}/x,", "--output_file has a comma too many, or a variable of"
    ),
    "output_dir is a file": folder(
        "{data}/a.txt", "--output_dir must be a folder, and this is a file."
    ),
    "output_dir below a file": folder(
        "{data}/a.txt/x",
        "--output_dir can't be made: {data}/a.txt is no folder.",
    ),
    "output_file below a file": file(
        "{data}/a.txt/x/y",
        "--output_file can't be made: {data}/a.txt is no folder.",
    ),
    "output_file is a folder": file(
        "{data}/model", "--output_file must name files: give a folder by"
    ),
    "output_file is a folder of two": file(
        "{out}/x,{data}/model",
        "--output_file must name files: give a folder by",
    ),
    "output_file input": file(
        "{data}/a.txt", "--output_file would be written over what --input_file"
    ),
    "output_file input overwrite": file(
        "{data}/a.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input second": file(
        "{out}/x,{data}/b.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input dots": file(
        "{data}/model/../a.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input hard": file(
        "{data}/hard.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input soft": file(
        "{data}/soft.txt",
        "--output_file would be written over what --input_file",
        overwrite="true",
    ),
    "output_file input glob": file(
        "{data}/a.txt",
        "--output_file would be written over what --input_file",
        input_file="{data}/?.txt",
        overwrite="true",
    ),
    "output_file vocab": file(
        "{data}/vocab.txt",
        "--output_file would be written over what --vocab_file",
        overwrite="true",
    ),
    "output_file words": file(
        "{data}/words",
        "--output_file would be written over what --word_list",
        overwrite="true",
        masking="span",
        word_list="{data}/words",
    ),
    "output_file foreign": file(
        "{data}/foreign",
        "foreign exists, and its manifest does not: no run of ours",
    ),
    "output_file of future glob": file(
        "{data}/x.txt",
        "--input_file would read what is written to --output_file",
        input_file="{data}/?.txt",
    ),
    "output_dir of future glob": matrix.Case(
        {"input_file": "{data}/texts/*", "output_dir": "{data}/texts"},
        "--input_file would read what is written to --output_dir",
    ),
    "output_file twice": file(
        "{out}/x,{out}/x", "--output_file must name each file once. Received:"
    ),
    "output_file twice dots": file(
        "{out}/x,{out}/./x", "--output_file must name each file once. Received:"
    ),
    "output_file its manifest": file(
        "{out}/x,{out}/x.manifest.json",
        "{out}/x.manifest.json is kept for what belongs to the",
    ),
    "output_file its work": file(
        "{out}/x,{out}/x.work",
        "{out}/x.work is kept for what belongs to the first file:",
    ),
    "output_file device": file(
        "/dev/null", "--output_file must name files, and this is a pipe or a"
    ),
    "output_file fifo": file(
        "{data}/fifo", "--output_file must name files, and this is a pipe or a"
    ),
    "output_file too long": file(
        "{out}/" + 300 * "x",
        "--output_file can't be made: a name has at most 251 bytes",
    ),
    "output_file manifest too long": file(
        "{out}/" + 245 * "x",
        "The name of --output_file is too long: that of its",
    ),
    "output_file manifest foreign": file(
        "{data}/beside/x",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir other records": folder(
        "{data}/others", "The folder {data}/others holds other records, such as"
    ),
    "output_dir manifest foreign": folder(
        "{data}/foreign_manifest",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest empty": folder(
        "{data}/empty_manifest",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest binary": folder(
        "{data}/binary_manifest",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest newer": folder(
        "{data}/newer",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir manifest folder": folder(
        "{data}/manifest_folder",
        "There is a file in the place of the manifest that is none",
    ),
    "output_dir another run": folder(
        "{data}/records",
        "records/manifest.json is of another run: dupe_factor was",
        dupe_factor="3",
    ),
    "output_dir another seed": folder(
        "{data}/records",
        "records/manifest.json is of another run: random_seed was",
        random_seed="1",
    ),
    "output_dir another text": matrix.Case(
        {"output_dir": "{data}/records", "input_file": "{data}/a.txt"},
        "records/manifest.json is of another run: input_file was 2",
    ),
    "output_dir another length": folder(
        "{data}/records",
        "records/manifest.json is of another run: max_seq_length",
        max_seq_length="16",
    ),
    "output_dir lost shard": folder("{data}/lost", "lost/manifest.json lists"),
    "output_dir unfinished other": folder(
        "{data}/unfinished",
        "unfinished/.work holds the unfinished work of another",
        dupe_factor="3",
    ),
    "output_dir work is a file": folder(
        "{data}/work_file",
        "work_file/.work must be the folder that the work is done",
    ),
    "output_dir run.json broken": folder(
        "{data}/broken_run",
        "broken_run/.work/run.json, of the unfinished work of an",
    ),
    "output_dir run.json list": folder(
        "{data}/list_run",
        "list_run/.work/run.json, of the unfinished work of an",
    ),
    "output_dir counts broken": folder(
        "{data}/broken_counts",
        "broken_counts/.work/counts/tokens-0.json, of the",
    ),
    "output_dir tokens broken": folder(
        "{data}/broken_tokens",
        "broken_tokens/.work/tokens/000000-0000.npy, of the",
    ),
    "output_dir sequences broken": folder(
        "{data}/broken_sequences",
        "broken_sequences/.work/sequences/000000-0000-000.bin, of",
    ),
    "output_dir held": folder("{data}/held", "held/.work is in use: process "),
    "output_dir dangling": folder(
        "{data}/dangling",
        "--output_dir can't be made: {data}/dangling is a link to",
    ),
    "output_dir in proc": folder(
        "/proc/x", "[Errno 2] No such file or directory: '/proc/x'"
    ),
    "output_dir scheme": folder(
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
        "There is no such file. Received: vocab_file=",
    ),
    # ---- Records to show
    "show no file": show(
        "{data}/none/*.tfrecord",
        "No file matches. Received: '{data}/none/*.tfrecord'. Give",
    ),
    "show text": show(
        "{data}/a.txt", "a.txt, record 1: truncated, corrupt or not a TFRecord"
    ),
    "show vocab none": show(
        "{data}/records/*.tfrecord",
        "There is no such file. Received: vocab_file={data}/none",
        vocab_file="{data}/none",
    ),
    "show vocab missing": show(
        "{data}/records/*.tfrecord",
        "Give --vocab_file (The vocabulary: a vocab.txt, a RoBERTa's vocab",
        vocab_file=None,
    ),
    "show vocab short": show(
        "{data}/records/*.tfrecord",
        "records/part-00000-of-00001.tfrecord was not made with",
        vocab_file="{data}/vocabs/specials",
    ),
    "show vocab other": show(
        "{data}/records/*.tfrecord",
        "records/part-00000-of-00001.tfrecord was not made with",
        vocab_file="{data}/vocabs/turned",
    ),
    "show vocab other no manifest": show(
        "{data}/no_manifest/*.tfrecord",
        "no_manifest/part-00000-of-00001.tfrecord holds the token",
        vocab_file="{data}/vocabs/specials",
    ),
    "show cut at once": show(
        "{data}/cut_soon/*.tfrecord",
        "cut_soon/part-00000-of-00001.tfrecord, record 1:",
    ),
    "show flipped": show(
        "{data}/flipped/*.tfrecord",
        "flipped/part-00000-of-00001.tfrecord, record 1:",
    ),
    "show many": show(
        "{data}/records/*.tfrecord",
        "--show must be a whole number, at least 0, at most",
        show="9223372036854775808",
    ),
    "show empty file": show(
        "{data}/empty",
        "empty is empty: leave it out, or bring back what it held",
    ),
    "show folder": show(
        "{data}/records", "records is a folder. Give files or a glob, such as"
    ),
    "show newer": show(
        "{data}/newer/*.tfrecord",
        "newer/manifest.json is of a newer format than this",
    ),
    "show manifest broken": show(
        "{data}/empty_manifest/*.tfrecord",
        "empty_manifest/manifest.json is not JSON: it is empty.",
    ),
    "show manifest binary": show(
        "{data}/binary_manifest/*.tfrecord",
        "binary_manifest/manifest.json is not JSON: Expecting",
    ),
    "show unmasked alone": show(
        "{data}/unmasked/*.tfrecord",
        "unmasked/part-00000-of-00001.tfrecord holds text without",
    ),
    "show record classifier": show(
        "{data}/odd/classifier.tfrecord",
        "odd/classifier.tfrecord does not hold pre-training",
    ),
    "show record negative": show(
        "{data}/odd/negative.tfrecord",
        "odd/negative.tfrecord holds the token -5, the vocabulary",
    ),
    "show record beyond": show(
        "{data}/odd/beyond.tfrecord",
        "odd/beyond.tfrecord holds the token 5000000000, the",
    ),
    "show record floats": show(
        "{data}/odd/floats.tfrecord",
        "odd/floats.tfrecord, record 1: input_ids must hold some",
    ),
    "show record texts": show(
        "{data}/odd/texts.tfrecord",
        "odd/texts.tfrecord, record 1: input_ids must hold some",
    ),
    "show record lengths": show(
        "{data}/odd/lengths.tfrecord",
        "odd/lengths.tfrecord, record 1: input_mask must hold 8",
    ),
    "show record places": show(
        "{data}/odd/places.tfrecord",
        "odd/places.tfrecord, record 1: masked_lm_positions must",
    ),
    "show record no_mask": show(
        "{data}/odd/no_mask.tfrecord",
        "odd/no_mask.tfrecord does not hold pre-training records:",
    ),
    "show record no_masks_ids": show(
        "{data}/odd/no_masks_ids.tfrecord",
        "odd/no_masks_ids.tfrecord does not hold pre-training",
    ),
    "show record no_label": show(
        "{data}/odd/no_label.tfrecord",
        "odd/no_label.tfrecord, record 1: next_sentence_labels",
    ),
    "show record label": show(
        "{data}/odd/label.tfrecord",
        "odd/label.tfrecord, record 1: next_sentence_labels must",
    ),
    "show record empty": show(
        "{data}/odd/empty.tfrecord",
        "odd/empty.tfrecord does not hold pre-training records:",
    ),
    "show record nothing": show(
        "{data}/odd/nothing.tfrecord",
        "odd/nothing.tfrecord does not hold pre-training records:",
    ),
    "show record not_example": show(
        "{data}/odd/not_example.tfrecord",
        "odd/not_example.tfrecord, record 1: not a",
    ),
    "show record uneven": show(
        "{data}/odd/uneven.tfrecord",
        "odd/uneven.tfrecord, record 1: masked_lm_ids must hold 2",
    ),
    "show and output": matrix.Case(
        {"show": "1"}, "a.txt, record 1: truncated, corrupt or not a TFRecord"
    ),
}
