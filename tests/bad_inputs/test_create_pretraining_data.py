"""Bad inputs of create_pretraining_data.py."""

import gzip
import json
import os
import shutil
from typing import Any

from bert_tf import run_lock
from tests import scripts, tiny_files
from tests.bad_inputs import bad_models, matrix

import pytest
import tensorflow as tf

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


def _show(records: str, **changes: str | None) -> dict[str, str | None]:
    return {
        **dict.fromkeys(SCRIPT.good),
        "show": "1",
        "vocab_file": "{data}/vocab.txt",
        "input_file": f"{{data}}/{records}/*.tfrecord",
        **changes,
    }


CASES = {
    # text
    "no file": matrix.Case({"input_file": "{data}/none.txt"}, ""),
    "one of two missing": matrix.Case(
        {"input_file": "{data}/a.txt,{data}/none.txt"}, ""
    ),
    "glob of nothing": matrix.Case({"input_file": "{data}/none/*.txt"}, ""),
    "dangling": matrix.Case({"input_file": "{data}/dangling"}, ""),
    "empty": matrix.Case({"input_file": "{data}/empty"}, ""),
    "one empty": matrix.Case({"input_file": "{data}/a.txt,{data}/empty"}, ""),
    "folder": matrix.Case({"input_file": "{data}"}, ""),
    "empty string": matrix.Case({"input_file": ""}, ""),
    "trailing comma": matrix.Case({"input_file": "{data}/a.txt,"}, ""),
    "flag missing": matrix.Case({"input_file": None}, ""),
    "fifo": matrix.Case({"input_file": "{data}/fifo"}, ""),
    "device": matrix.Case({"input_file": "/dev/zero"}, ""),
    "null device": matrix.Case({"input_file": "/dev/null"}, ""),
    "blank": matrix.Case({"input_file": "{data}/blank"}, ""),
    "latin1": matrix.Case({"input_file": "{data}/latin1"}, ""),
    "utf16": matrix.Case({"input_file": "{data}/utf16"}, ""),
    "nul": matrix.Case({"input_file": "{data}/nul"}, ""),
    "binary": matrix.Case(
        {"input_file": "{data}/model/bert_model.ckpt.data-00000-of-00001"}, ""
    ),
    "records as text": matrix.Case(
        {"input_file": "{data}/records/*.tfrecord"}, ""
    ),
    "lfs": matrix.Case({"input_file": "{data}/lfs"}, ""),
    "lfs of two": matrix.Case({"input_file": "{data}/a.txt,{data}/lfs"}, ""),
    "one document": matrix.Case({"input_file": "{data}/one"}, ""),
    "gz cut": matrix.Case({"input_file": "{data}/cut.gz"}, ""),
    "gz flipped": matrix.Case({"input_file": "{data}/flipped.gz"}, ""),
    "gz not": matrix.Case({"input_file": "{data}/not.gz"}, ""),
    "bz2 not": matrix.Case({"input_file": "{data}/not.bz2"}, ""),
    "xz not": matrix.Case({"input_file": "{data}/not.xz"}, ""),
    "zst not": matrix.Case({"input_file": "{data}/not.zst"}, ""),
    "gz without ending": matrix.Case({"input_file": "{data}/gzipped"}, ""),
    "zip": matrix.Case({"input_file": "{data}/x.zip"}, ""),
    "jsonl is text": matrix.Case({"input_format": "jsonl"}, ""),
    "jsonl field": matrix.Case(
        {
            "input_file": "{data}/x.jsonl",
            "input_format": "jsonl",
            "text_field": "body",
        },
        "",
    ),
    "jsonl field empty": matrix.Case(
        {
            "input_file": "{data}/x.jsonl",
            "input_format": "jsonl",
            "text_field": "",
        },
        "",
    ),
    "jsonl number": matrix.Case(
        {"input_file": "{data}/number.jsonl", "input_format": "jsonl"}, ""
    ),
    "jsonl array": matrix.Case(
        {"input_file": "{data}/array.jsonl", "input_format": "jsonl"}, ""
    ),
    "jsonl cut": matrix.Case(
        {"input_file": "{data}/cut.jsonl", "input_format": "jsonl"}, ""
    ),
    "jsonl one array": matrix.Case(
        {"input_file": "{data}/pretty.json", "input_format": "jsonl"}, ""
    ),
    "jsonl surrogate": matrix.Case(
        {"input_file": "{data}/surrogate.jsonl", "input_format": "jsonl"}, ""
    ),
    "jsonl as lines of one document": matrix.Case(
        {"input_file": "{data}/x.jsonl"}, ""
    ),
    "wiki not": matrix.Case({"input_format": "wikiextractor"}, ""),
    "wiki cut": matrix.Case(
        {"input_file": "{data}/cut.wiki", "input_format": "wikiextractor"}, ""
    ),
    "tfds name": matrix.Case(
        {"input_format": "tfds", "input_file": "no_such_data"}, ""
    ),
    "tfds file": matrix.Case({"input_format": "tfds"}, ""),
    "files one": matrix.Case(
        {"input_file": "{data}/a.txt", "input_format": "files"}, ""
    ),
    "format unknown": matrix.Case({"input_format": "csv"}, ""),
    "on_bad_text": matrix.Case({"on_bad_text": "ignore"}, ""),
    "language": matrix.Case(
        {"input_format": "documents", "language": "English"}, ""
    ),
    "language empty": matrix.Case(
        {"input_format": "documents", "language": ""}, ""
    ),
    "language unused": matrix.Case({"language": "de"}, ""),
    "text_field unused": matrix.Case({"text_field": "body"}, ""),
    # vocab
    "vocab missing": matrix.Case({"vocab_file": None}, ""),
    "vocab not given a file": matrix.Case(
        {"vocab_file": "{data}/none.txt"}, ""
    ),
    "vocab folder": matrix.Case({"vocab_file": "{data}/model"}, ""),
    "vocab empty": matrix.Case({"vocab_file": "{data}/empty"}, ""),
    "vocab empty string": matrix.Case({"vocab_file": ""}, ""),
    "vocab dangling": matrix.Case({"vocab_file": "{data}/dangling"}, ""),
    "vocab fifo": matrix.Case({"vocab_file": "{data}/fifo"}, ""),
    "vocab is text": matrix.Case({"vocab_file": "{data}/a.txt"}, ""),
    "vocab is config": matrix.Case(
        {"vocab_file": "{data}/model/bert_config.json"}, ""
    ),
    "vocab is tokenizer": matrix.Case(
        {"vocab_file": "{data}/tokenizer.json"}, ""
    ),
    "vocab lfs": matrix.Case({"vocab_file": "{data}/lfs"}, ""),
    "vocab binary": matrix.Case(
        {"vocab_file": "{data}/model/bert_model.ckpt.data-00000-of-00001"}, ""
    ),
    "vocab utf16": matrix.Case({"vocab_file": "{data}/vocabs/utf16"}, ""),
    "vocab latin1": matrix.Case({"vocab_file": "{data}/vocabs/latin1"}, ""),
    "vocab twice": matrix.Case({"vocab_file": "{data}/vocabs/twice"}, ""),
    "vocab hole": matrix.Case({"vocab_file": "{data}/vocabs/hole"}, ""),
    "vocab without unk": matrix.Case(
        {"vocab_file": "{data}/vocabs/no_unk"}, ""
    ),
    "vocab without mask": matrix.Case(
        {"vocab_file": "{data}/vocabs/no_mask"}, ""
    ),
    "vocab without cls": matrix.Case(
        {"vocab_file": "{data}/vocabs/no_cls"}, ""
    ),
    "vocab without sep": matrix.Case(
        {"vocab_file": "{data}/vocabs/no_sep"}, ""
    ),
    "vocab without pad": matrix.Case(
        {"vocab_file": "{data}/vocabs/no_pad"}, ""
    ),
    "vocab pad not first": matrix.Case(
        {"vocab_file": "{data}/vocabs/pad_last"}, ""
    ),
    "vocab specials only": matrix.Case(
        {"vocab_file": "{data}/vocabs/specials"}, ""
    ),
    "vocab cased": matrix.Case({"vocab_file": "{data}/vocabs/cased"}, ""),
    "vocab uncased": matrix.Case({"do_lower_case": "false"}, ""),
    "vocab columns": matrix.Case({"vocab_file": "{data}/vocabs/columns"}, ""),
    "vocab glob": matrix.Case({"vocab_file": "{data}/vocab*.txt"}, ""),
    # numbers
    **{
        f"{flag}={value}": matrix.Case({flag: value}, "")
        for flag, value in [
            ("max_seq_length", "0"),
            ("max_seq_length", "-1"),
            ("max_seq_length", "4"),
            ("max_seq_length", "nan"),
            ("max_seq_length", "1e99"),
            ("max_seq_length", ""),
            ("max_seq_length", "128.0"),
            ("max_seq_length", "9223372036854775808"),
            ("max_seq_length", "1000000000"),
            ("max_predictions_per_seq", "0"),
            ("max_predictions_per_seq", "30"),
            ("max_predictions_per_seq", "-1"),
            ("max_predictions_per_seq", "x"),
            ("dupe_factor", "0"),
            ("dupe_factor", "-3"),
            ("dupe_factor", "inf"),
            ("dupe_factor", "9223372036854775808"),
            ("dupe_factor", "0.5"),
            ("random_seed", "-1"),
            ("random_seed", "9223372036854775808"),
            ("random_seed", "1e3"),
            ("random_seed", "abc"),
            ("short_seq_prob", "nan"),
            ("short_seq_prob", "-0.1"),
            ("short_seq_prob", "1.5"),
            ("short_seq_prob", "ten"),
            ("masked_lm_prob", "nan"),
            ("masked_lm_prob", "inf"),
            ("masked_lm_prob", "15"),
            ("masked_lm_prob", "-1"),
            ("masked_lm_prob", "0"),
            ("masked_lm_prob", "15%"),
            ("mask_share", "2"),
            ("mask_share", "nan"),
            ("mask_share", "0.95"),
            ("random_share", "-0.1"),
            ("random_share", "0.3"),
            ("num_shards", "0"),
            ("num_shards", "-1"),
            ("num_shards", "1000"),
            ("num_shards", "9223372036854775808"),
            ("num_shards", "1e3"),
            ("shard_size_mb", "0"),
            ("shard_size_mb", "nan"),
            ("shard_size_mb", "0.5"),
            ("num_workers", "0"),
            ("num_workers", "-2"),
            ("num_workers", "all"),
            ("max_sequences_per_row", "4"),
            ("show", "-1"),
            ("show", "all"),
            ("do_lower_case", "maybe"),
            ("pack", "2"),
            ("dynamic_masking", "yes please"),
            ("objective", "mlm"),
            ("masking", "words"),
            ("runner", "LocalRunner"),
        ]
    },
    "max_sequences_per_row=0": matrix.Case(
        {"pack": "true", "max_sequences_per_row": "0"}, ""
    ),
    "max_sequences_per_row=2**63": matrix.Case(
        {"pack": "true", "max_sequences_per_row": "9223372036854775808"}, ""
    ),
    # combinations
    "num_shards and size": matrix.Case(
        {"num_shards": "2", "shard_size_mb": "9"}, ""
    ),
    "num_shards of named": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x", "num_shards": "2"}, ""
    ),
    "overwrite of folder": matrix.Case({"overwrite": "true"}, ""),
    "whole word and span": matrix.Case(
        {"masking": "span", "do_whole_word_mask": "true"}, ""
    ),
    "word_list without": matrix.Case({"word_list": "{data}/words"}, ""),
    "segmenter without": matrix.Case({"segmenter": "json:loads"}, ""),
    "word_list and segmenter": matrix.Case(
        {
            "masking": "whole_word",
            "word_list": "{data}/words",
            "segmenter": "shlex:split",
        },
        "",
    ),
    "word_list missing": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/none"}, ""
    ),
    "word_list folder": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}"}, ""
    ),
    "word_list empty": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/empty"}, ""
    ),
    "word_list blank": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/blank"}, ""
    ),
    "word_list latin1": matrix.Case(
        {"masking": "span", "word_list": "{data}/latin1"}, ""
    ),
    "word_list fifo": matrix.Case(
        {"masking": "span", "word_list": "{data}/fifo"}, ""
    ),
    "segmenter no function": matrix.Case(
        {"masking": "span", "segmenter": "jieba"}, ""
    ),
    "segmenter no module": matrix.Case(
        {"masking": "span", "segmenter": "no_such_module:cut"}, ""
    ),
    "segmenter no such": matrix.Case(
        {"masking": "span", "segmenter": "json:no_such"}, ""
    ),
    "segmenter not callable": matrix.Case(
        {"masking": "span", "segmenter": "json:__name__"}, ""
    ),
    "segmenter raises": matrix.Case(
        {"masking": "span", "segmenter": "json:loads"}, ""
    ),
    "segmenter returns None": matrix.Case(
        {"masking": "span", "segmenter": "gc:set_debug"}, ""
    ),
    "segmenter returns numbers": matrix.Case(
        {"masking": "span", "segmenter": "builtins:len"}, ""
    ),
    "segmenter returns bytes": matrix.Case(
        {"masking": "span", "segmenter": "os:fsencode"}, ""
    ),
    "segmenter dots": matrix.Case({"masking": "span", "segmenter": ".:x"}, ""),
    "runner without beam": matrix.Case({"runner": "DirectRunner"}, ""),
    "runner and workers": matrix.Case(
        {"runner": "DirectRunner", "num_workers": "2"}, ""
    ),
    "beam_options alone": matrix.Case({"beam_options": "--region=x"}, ""),
    "beam options quote": matrix.Case(
        {"runner": "DirectRunner", "beam_options": "--region='x"}, ""
    ),
    # outputs
    "no output": matrix.Case({"output_dir": None}, ""),
    "both outputs": matrix.Case({"output_file": "{out}/x"}, ""),
    "output_dir empty": matrix.Case({"output_dir": ""}, ""),
    "output_file empty": matrix.Case(
        {"output_dir": None, "output_file": ""}, ""
    ),
    "output_file comma": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x,"}, ""
    ),
    "output_dir is a file": matrix.Case({"output_dir": "{data}/a.txt"}, ""),
    "output_dir below a file": matrix.Case(
        {"output_dir": "{data}/a.txt/x"}, ""
    ),
    "output_file below a file": matrix.Case(
        {"output_dir": None, "output_file": "{data}/a.txt/x/y"}, ""
    ),
    "output_file is a folder": matrix.Case(
        {"output_dir": None, "output_file": "{data}/model"}, ""
    ),
    "output_file is a folder of two": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x,{data}/model"}, ""
    ),
    "output_file input": matrix.Case(
        {"output_dir": None, "output_file": "{data}/a.txt"}, ""
    ),
    "output_file input overwrite": matrix.Case(
        {
            "output_dir": None,
            "output_file": "{data}/a.txt",
            "overwrite": "true",
        },
        "",
    ),
    "output_file input second": matrix.Case(
        {
            "output_dir": None,
            "output_file": "{out}/x,{data}/b.txt",
            "overwrite": "true",
        },
        "",
    ),
    "output_file input dots": matrix.Case(
        {
            "output_dir": None,
            "output_file": "{data}/model/../a.txt",
            "overwrite": "true",
        },
        "",
    ),
    "output_file input hard": matrix.Case(
        {
            "output_dir": None,
            "output_file": "{data}/hard.txt",
            "overwrite": "true",
        },
        "",
    ),
    "output_file input soft": matrix.Case(
        {
            "output_dir": None,
            "output_file": "{data}/soft.txt",
            "overwrite": "true",
        },
        "",
    ),
    "output_file input glob": matrix.Case(
        {
            "output_dir": None,
            "input_file": "{data}/?.txt",
            "output_file": "{data}/a.txt",
            "overwrite": "true",
        },
        "",
    ),
    "output_file vocab": matrix.Case(
        {
            "output_dir": None,
            "output_file": "{data}/vocab.txt",
            "overwrite": "true",
        },
        "",
    ),
    "output_file words": matrix.Case(
        {
            "output_dir": None,
            "output_file": "{data}/words",
            "overwrite": "true",
            "masking": "span",
            "word_list": "{data}/words",
        },
        "",
    ),
    "output_file foreign": matrix.Case(
        {"output_dir": None, "output_file": "{data}/foreign"}, ""
    ),
    "output_file of future glob": matrix.Case(
        {
            "output_dir": None,
            "input_file": "{data}/?.txt",
            "output_file": "{data}/x.txt",
        },
        "",
    ),
    "output_dir of future glob": matrix.Case(
        {"input_file": "{data}/texts/*", "output_dir": "{data}/texts"}, ""
    ),
    "output_file twice": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x,{out}/x"}, ""
    ),
    "output_file twice dots": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x,{out}/./x"}, ""
    ),
    "output_file its manifest": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x,{out}/x.manifest.json"}, ""
    ),
    "output_file its work": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x,{out}/x.work"}, ""
    ),
    "output_file device": matrix.Case(
        {"output_dir": None, "output_file": "/dev/null"}, ""
    ),
    "output_file fifo": matrix.Case(
        {"output_dir": None, "output_file": "{data}/fifo"}, ""
    ),
    "output_file too long": matrix.Case(
        {"output_dir": None, "output_file": "{out}/" + 300 * "x"}, ""
    ),
    "output_file manifest too long": matrix.Case(
        {"output_dir": None, "output_file": "{out}/" + 245 * "x"}, ""
    ),
    "output_file manifest foreign": matrix.Case(
        {"output_dir": None, "output_file": "{data}/beside/x"}, ""
    ),
    "output_dir other records": matrix.Case(
        {"output_dir": "{data}/others"}, ""
    ),
    "output_dir manifest foreign": matrix.Case(
        {"output_dir": "{data}/foreign_manifest"}, ""
    ),
    "output_dir manifest empty": matrix.Case(
        {"output_dir": "{data}/empty_manifest"}, ""
    ),
    "output_dir manifest binary": matrix.Case(
        {"output_dir": "{data}/binary_manifest"}, ""
    ),
    "output_dir manifest newer": matrix.Case(
        {"output_dir": "{data}/newer"}, ""
    ),
    "output_dir manifest folder": matrix.Case(
        {"output_dir": "{data}/manifest_folder"}, ""
    ),
    "output_dir another run": matrix.Case(
        {"output_dir": "{data}/records", "dupe_factor": "3"}, ""
    ),
    "output_dir another seed": matrix.Case(
        {"output_dir": "{data}/records", "random_seed": "1"}, ""
    ),
    "output_dir another text": matrix.Case(
        {"output_dir": "{data}/records", "input_file": "{data}/a.txt"}, ""
    ),
    "output_dir another length": matrix.Case(
        {"output_dir": "{data}/records", "max_seq_length": "16"}, ""
    ),
    "output_dir lost shard": matrix.Case({"output_dir": "{data}/lost"}, ""),
    "output_dir unfinished other": matrix.Case(
        {"output_dir": "{data}/unfinished", "dupe_factor": "3"}, ""
    ),
    "output_dir work is a file": matrix.Case(
        {"output_dir": "{data}/work_file"}, ""
    ),
    "output_dir run.json broken": matrix.Case(
        {"output_dir": "{data}/broken_run"}, ""
    ),
    "output_dir run.json list": matrix.Case(
        {"output_dir": "{data}/list_run"}, ""
    ),
    "output_dir counts broken": matrix.Case(
        {"output_dir": "{data}/broken_counts"}, ""
    ),
    "output_dir tokens broken": matrix.Case(
        {"output_dir": "{data}/broken_tokens"}, ""
    ),
    "output_dir sequences broken": matrix.Case(
        {"output_dir": "{data}/broken_sequences"}, ""
    ),
    "output_dir held": matrix.Case({"output_dir": "{data}/held"}, ""),
    "output_dir dangling": matrix.Case({"output_dir": "{data}/dangling"}, ""),
    "output_dir in proc": matrix.Case({"output_dir": "/proc/x"}, ""),
    "output_dir scheme": matrix.Case({"output_dir": "foo://bucket/x"}, ""),
    # command line
    "argument": matrix.Case({}, "", arguments=("{data}/b.txt",)),
    "misspelt": matrix.Case({}, "", arguments=("--dupe_facter=3",)),
    "flagfile missing": matrix.Case(
        {}, "", arguments=("--flagfile={data}/none.flags",)
    ),
    "flagfile binary": matrix.Case(
        {}, "", arguments=("--flagfile={data}/nul",)
    ),
    "flagfile folder": matrix.Case({}, "", arguments=("--flagfile={data}",)),
    "no value": matrix.Case({}, "", arguments=("--dupe_factor",)),
    "old flag": matrix.Case({}, "", arguments=("--output_files=x",)),
    "two mistakes": matrix.Case(
        {
            "input_file": "{data}/none.txt",
            "vocab_file": "{data}/none",
            "max_seq_length": "0",
        },
        "",
    ),
    # show
    "show no file": matrix.Case(_show("none"), ""),
    "show text": matrix.Case(_show("", input_file="{data}/a.txt"), ""),
    "show vocab none": matrix.Case(
        _show("records", vocab_file="{data}/none"), ""
    ),
    "show vocab missing": matrix.Case(_show("records", vocab_file=None), ""),
    "show vocab short": matrix.Case(
        _show("records", vocab_file="{data}/vocabs/specials"), ""
    ),
    "show vocab other": matrix.Case(
        _show("records", vocab_file="{data}/vocabs/turned"), ""
    ),
    "show vocab other no manifest": matrix.Case(
        _show("no_manifest", vocab_file="{data}/vocabs/specials"), ""
    ),
    "show cut": matrix.Case(_show("cut"), ""),
    "show cut at once": matrix.Case(_show("cut_soon"), ""),
    "show flipped": matrix.Case(_show("flipped"), ""),
    "show many": matrix.Case(_show("records", show="9223372036854775808"), ""),
    "show empty file": matrix.Case(_show("", input_file="{data}/empty"), ""),
    "show folder": matrix.Case(_show("", input_file="{data}/records"), ""),
    "show newer": matrix.Case(_show("newer"), ""),
    "show manifest broken": matrix.Case(_show("empty_manifest"), ""),
    "show manifest binary": matrix.Case(_show("binary_manifest"), ""),
    "show unmasked alone": matrix.Case(_show("unmasked"), ""),
    "show gz": matrix.Case(_show("", input_file="{data}/records.gz"), ""),
    **{
        f"show record {name}": matrix.Case(
            _show("odd", input_file=f"{{data}}/odd/{name}.tfrecord"), ""
        )
        for name in (
            "classifier",
            "negative",
            "beyond",
            "floats",
            "texts",
            "lengths",
            "places",
            "no_mask",
            "no_masks_ids",
            "no_label",
            "label",
            "empty",
            "nothing",
            "not_example",
            "uneven",
        )
    },
    "show and output": matrix.Case({"show": "1"}, ""),
}

GOOD = {
    "names": matrix.Case(
        {"input_file": "{data}/ä ö\n☃/*.txt", "output_dir": "{out}/é x\ny"}, ""
    ),
    "bom": matrix.Case({"input_file": "{data}/bom.txt"}, ""),
    "crlf": matrix.Case({"input_file": "{data}/crlf.txt"}, ""),
    "vocab crlf bom": matrix.Case({"vocab_file": "{data}/vocabs/windows"}, ""),
    "twice same": matrix.Case({"input_file": "{data}/a.txt,{data}/a.txt"}, ""),
    "replace": matrix.Case(
        {
            "input_file": "{data}/latin1,{data}/nul,{data}/a.txt",
            "on_bad_text": "replace",
        },
        "",
    ),
    "again": matrix.Case({"output_dir": "{data}/records"}, ""),
    "empty output file": matrix.Case(
        {"output_dir": None, "output_file": "{out}/x"}, ""
    ),
    "prob 0": matrix.Case({"masked_lm_prob": "0", "short_seq_prob": "0"}, ""),
    "tf_config": matrix.Case(
        {},
        "",
        environment={
            "TF_CONFIG": "{{",
            "KERAS_BACKEND": "torch",
            "MPLBACKEND": "nonsense",
        },
    ),
    "show": matrix.Case(_show("records"), ""),
    "show with other flags": matrix.Case(
        _show(
            "records",
            dupe_factor="3",
            input_format="jsonl",
            do_lower_case="false",
            num_workers="3",
            on_bad_text="replace",
        ),
        "",
    ),
}


def _example(**features: list[Any]) -> bytes:
    made = tf.train.Example()
    for name, values in features.items():
        kind = made.features.feature[name]
        if values and isinstance(values[0], float):
            kind.float_list.value.extend(values)
        elif values and isinstance(values[0], bytes):
            kind.bytes_list.value.extend(values)
        else:
            kind.int64_list.value.extend(values)
    return made.SerializeToString()


def _write_odd(folder):
    folder.mkdir()
    good: dict[str, list[Any]] = {
        "input_ids": [2, 5, 4, 3, 6, 3, 0, 0],
        "input_mask": [1] * 6 + [0, 0],
        "segment_ids": [0, 0, 0, 0, 1, 1, 0, 0],
        "masked_lm_positions": [2, 0],
        "masked_lm_ids": [7, 0],
        "masked_lm_weights": [1.0, 0.0],
        "next_sentence_labels": [0],
    }

    def write(name, *drop, **changes):
        values = {k: v for k, v in (good | changes).items() if k not in drop}
        with tf.io.TFRecordWriter(str(folder / f"{name}.tfrecord")) as w:
            w.write(_example(**values))

    write("good")
    write(
        "classifier",
        "masked_lm_positions",
        "masked_lm_ids",
        "masked_lm_weights",
        "next_sentence_labels",
        label_ids=[1],
    )
    write("negative", input_ids=[2, -5, 4, 3, 6, 3, 0, 0])
    write("beyond", input_ids=[2, 5000000000, 4, 3, 6, 3, 0, 0])
    write("floats", input_ids=[2.0, 5, 4, 3, 6, 3, 0, 0])
    write("texts", input_ids=[b"2", b"3"])
    write("lengths", input_mask=[1, 1])
    write("places", masked_lm_positions=[200, 0])
    write("no_mask", "input_mask")
    write("no_masks_ids", "masked_lm_ids")
    write("no_label", next_sentence_labels=[])
    write("label", next_sentence_labels=[7])
    write("uneven", masked_lm_ids=[7])
    with tf.io.TFRecordWriter(str(folder / "empty.tfrecord")) as w:
        w.write(b"")
    with tf.io.TFRecordWriter(str(folder / "nothing.tfrecord")) as w:
        w.write(_example())
    with tf.io.TFRecordWriter(str(folder / "not_example.tfrecord")) as w:
        w.write(b"hello world, this is no example")


def _write_texts(folder):
    sentence = "the cat sat on the old red bird ."
    document = "\n".join(
        [sentence, "anna sees bob .", "is it so ? yes !", "she ran in rome ."]
    )
    text = "\n\n".join([document] * 6) + "\n"
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(text)
    (folder / "bom.txt").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (folder / "crlf.txt").write_bytes(text.replace("\n", "\r\n").encode())
    os.link(folder / "a.txt", folder / "hard.txt")
    (folder / "soft.txt").symlink_to(folder / "a.txt")
    (folder / "dangling").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "fifo")
    (folder / "ä ö\n☃").mkdir()
    shutil.copy(folder / "a.txt", folder / "ä ö\n☃" / "日本.txt")
    (folder / "texts").mkdir()
    shutil.copy(folder / "a.txt", folder / "texts" / "a.txt")
    for name, data in {
        "empty": b"",
        "blank": b"\n\n  \n",
        "latin1": "ok\n\ncaf\xe9\n".encode("latin-1"),
        "utf16": text.encode("utf-16"),
        "nul": b"a\nb\0c\n",
        "lfs": bad_models.LFS,
        "one": document.encode(),
        "foreign": b"my thesis",
        "words": b"red bird\n",
        "not.gz": text.encode(),
        "not.bz2": text.encode(),
        "not.xz": text.encode(),
        "not.zst": text.encode(),
        "gzipped": gzip.compress(text.encode()),
        "x.zip": b"PK\x03\x04" + bytes(range(256)),
        "cut.gz": gzip.compress(text.encode())[:-30],
        "x.jsonl": b"".join(
            json.dumps({"text": document}).encode() + b"\n" for _ in range(6)
        ),
        "number.jsonl": b'{"text": 5}\n',
        "array.jsonl": b'["the cat"]\n',
        "cut.jsonl": b'{"text": "the cat"}\n{"text": "the c',
        "pretty.json": json.dumps([{"text": "the cat"}], indent=1).encode(),
        "surrogate.jsonl": b'{"text": "the \\ud800 cat"}\n',
        "cut.wiki": b'<doc id="1" title="x">\nx\n\nthe cat sat .\n',
        "tokenizer.json": b'{"version": "1.0", "model": {"type": "WordPiece", '
        b'"vocab": {"[UNK]": 0}}}',
    }.items():
        (folder / name).write_bytes(data)
    flipped = bytearray(gzip.compress(text.encode()))
    flipped[len(flipped) // 2] ^= 4
    (folder / "flipped.gz").write_bytes(bytes(flipped))


def _write_vocabs(folder):
    folder.mkdir()
    pieces = tiny_files.VOCAB

    def write(name, lines, encoding="utf-8"):
        (folder / name).write_bytes(
            "".join(f"{x}\n" for x in lines).encode(encoding)
        )

    write("utf16", pieces, "utf-16")
    write("latin1", [*pieces, "né"], "latin-1")
    write("twice", [*pieces, "cat"])
    write("hole", [*pieces[:9], "", *pieces[9:]])
    for name in ("unk", "mask", "cls", "sep", "pad"):
        write(f"no_{name}", [x for x in pieces if x != f"[{name.upper()}]"])
    write("pad_last", [*pieces[1:], pieces[0]])
    write("specials", pieces[:5])
    write("cased", [x.title() if x.isalpha() else x for x in pieces])
    write("columns", [f"{x}\t{i}" for i, x in enumerate(pieces)])
    write("turned", [*pieces[:5], *pieces[:4:-1]])
    (folder / "windows").write_bytes(
        b"\xef\xbb\xbf" + "".join(f"{x}\r\n" for x in pieces).encode()
    )


def _write_outputs(folder):
    def make(name, **changes):
        log = folder.parent / f"log_{name}"
        case = matrix.Case({"output_dir": f"{{data}}/{name}", **changes}, "")
        run = scripts.run(
            log, SCRIPT.name, *matrix.command(SCRIPT, case, folder, folder)
        )
        assert run.wait() == 0, run.stderr

    make("records")
    make("unmasked", dynamic_masking="true")
    (folder / "unmasked" / "manifest.json").unlink()

    def copy(name):
        shutil.copytree(folder / "records", folder / name)
        return folder / name

    record = "part-00000-of-00001.tfrecord"
    shutil.copy(folder / "records" / record, folder / "records.gz")
    (copy("lost") / record).unlink()
    (copy("no_manifest") / "manifest.json").unlink()
    bad_models.cut(copy("cut") / record)
    bad_models.cut(copy("cut_soon") / record, 0.001)
    bad_models.flip(copy("flipped") / record, 0.001)
    (copy("empty_manifest") / "manifest.json").write_bytes(b"")
    (copy("binary_manifest") / "manifest.json").write_bytes(b"\xff\x00")
    (copy("foreign_manifest") / "manifest.json").write_text(
        '{"name": "my app"}'
    )
    values = json.loads((folder / "records" / "manifest.json").read_text())
    (copy("newer") / "manifest.json").write_text(
        json.dumps(values | {"version": 99})
    )
    (copy("manifest_folder") / "manifest.json").unlink()
    (folder / "manifest_folder" / "manifest.json").mkdir()
    (folder / "manifest_folder" / "manifest.json" / "x").write_text("x")
    (folder / "others").mkdir()
    (folder / "others" / "part-00000-of-00009.tfrecord").write_bytes(b"x")
    (folder / "beside").mkdir()
    (folder / "beside" / "x.manifest.json").write_text('{"name": "my app"}')
    (folder / "work_file").mkdir()
    (folder / "work_file" / ".work").write_text("x")
    for name, text in (
        ("broken_run", '{"a"'),
        ("list_run", "[]"),
        ("unfinished", json.dumps(values["made_of"])),
    ):
        (folder / name / ".work").mkdir(parents=True)
        (folder / name / ".work" / "run.json").write_text(text)
    for name, files in {
        "broken_counts": {"counts/tokens-0.json": b"["},
        "broken_tokens": {
            "counts/tokens-0.json": json.dumps(
                [
                    values["statistics"]
                    | {"sequences_once": 100, "sequence_tokens_once": 1000}
                ]
            ).encode(),
            "tokens/000000-0000.npy": b"\x93NUMPY",
        },
        "broken_sequences": {
            "counts/tokens-0.json": json.dumps(
                [
                    values["statistics"]
                    | {"sequences_once": 100, "sequence_tokens_once": 1000}
                ]
            ).encode(),
            "sequences/000000-0000-000.bin": b"xx",
            "sequences/000000-0000-001.bin": b"xx",
        },
    }.items():
        work = folder / name / ".work"
        work.mkdir(parents=True)
        (work / "run.json").write_text(json.dumps(values["made_of"]))
        for file, data in files.items():
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_bytes(data)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    tiny_files.write_model(folder / "model")
    shutil.copy(folder / "model" / "vocab.txt", folder / "vocab.txt")
    _write_texts(folder)
    _write_vocabs(folder / "vocabs")
    _write_odd(folder / "odd")
    _write_outputs(folder)
    with run_lock.hold(folder / "held" / ".work", what="makes records"):
        yield folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)
