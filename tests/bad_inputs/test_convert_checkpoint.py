"""Bad inputs of convert_checkpoint.py."""

import json
import os
import shutil

from bert_tf import checkpoints, heads, run_lock
from bert_tf.interop import formats
from tests import tiny_files
from tests.bad_inputs import bad_models, damaged, matrix

import numpy as np
import pytest

SCRIPT = matrix.Script(
    "convert_checkpoint",
    {
        "input_checkpoint": "{data}/model",
        "output_format": "hf",
        "output_path": "{out}",
    },
)


def _model(name, line="", **more):
    return matrix.Case({"input_checkpoint": f"{{data}}/{name}", **more}, line)


CASES = {
    "in missing": matrix.Case({"input_checkpoint": None}, ""),
    "all missing": matrix.Case(dict.fromkeys(SCRIPT.good), ""),
    "in empty": matrix.Case({"input_checkpoint": ""}, ""),
    "in none": _model("none"),
    "in none/bert_model.ckpt": _model("none/bert_model.ckpt"),
    "in dangling": _model("dangling"),
    "in dangling.index": _model("links/x"),
    "in text": _model("text.txt"),
    "in config": _model("model/bert_config.json"),
    "in vocab": _model("model/vocab.txt"),
    "in safetensors none": _model("model/model.safetensors"),
    "in meta": _model("none/x.meta"),
    "in hub": matrix.Case({"input_checkpoint": "bert-base-uncased"}, ""),
    "in hub 2": matrix.Case(
        {"input_checkpoint": "google-bert/bert-base-uncased"}, ""
    ),
    "in hub url": matrix.Case(
        {"input_checkpoint": "https://huggingface.co/bert-base-uncased"}, ""
    ),
    "in preset": matrix.Case({"input_checkpoint": "bert_small_en"}, ""),
    "in fifo": _model("fifo"),
    "in glob": _model("mod*"),
    "in scheme": matrix.Case({"input_checkpoint": "foo://x/y"}, ""),
    **{
        f"in wrong/{n}": _model(f"wrong/{n}")
        for n in (
            *bad_models._WRONG,
            "hf_no_weights",
            "hf_cut",
            "hf_lfs",
            "hf_no_config",
            "hf_roberta",
            "empty_folder",
        )
    },
    **{f"in configs/{n}": _model(f"configs/{n}") for n in damaged.CONFIGS},
    **{f"in vocabs/{n}": _model(f"vocabs/{n}") for n in damaged.VOCABS},
    **{
        f"in hf/{n}": _model(f"hfs/{n}")
        for n in (
            "no_weights",
            "cut",
            "cut_header",
            "binary",
            "empty",
            "lfs",
            "html",
            "config_cut",
            "config_list",
            "config_lfs",
            "config_html",
            "config_binary",
            "act",
            "layers",
            "shapes",
            "albert",
            "labels",
            "other_weights",
            "index_missing",
            "index_empty",
            "index_broken",
            "tokenizer_broken",
            "adapter",
            "tied",
            "decoder",
            "missing",
        )
    },
    **{
        f"in kh/{n}": _model(f"khs/{n}")
        for n in ("no_weights", "other", "cut", "lfs", "task")
    },
    "head missing": matrix.Case({"head": "span"}, ""),
    "head wrong": matrix.Case({"head": "lm"}, ""),
    "labels count": _model("classifier", labels="a,b"),
    "labels none": _model("model", labels="a,b"),
    "labels encoder": _model("classifier", labels="a,b,c", head="encoder"),
    "labels twice": _model("classifier", labels="a,a,b"),
    "labels hole": _model("classifier", labels="a,,b"),
    "labels empty": _model("classifier", labels=""),
    "labels newline": _model("classifier", labels="a,b\nc,d"),
    "labels file": _model("bad_labels"),
    "labels file twice": _model("twice_labels"),
    "two heads": _model("two_heads"),
    "format": matrix.Case({"output_format": "torch"}, ""),
    "format missing": matrix.Case({"output_format": None}, ""),
    "lower cased": _model("cased", do_lower_case="true"),
    "lower uncased": _model("model", do_lower_case="false"),
    "lower unused tf1": _model(
        "model", do_lower_case="true", output_format="tf1"
    ),
    "lower no vocab": _model(
        "bare",
        do_lower_case="true",
        bert_config_file="{data}/model/bert_config.json",
    ),
    "lower maybe": matrix.Case({"do_lower_case": "maybe"}, ""),
    "hf says other": _model("hfs/says_cased"),
    "config none": matrix.Case({"bert_config_file": "{data}/none"}, ""),
    "config folder": matrix.Case({"bert_config_file": "{data}/model"}, ""),
    "config empty": matrix.Case({"bert_config_file": ""}, ""),
    "config text": matrix.Case({"bert_config_file": "{data}/text.txt"}, ""),
    "config fifo": matrix.Case({"bert_config_file": "{data}/fifo"}, ""),
    "config other": matrix.Case(
        {"bert_config_file": "{data}/configs/config_deep/bert_config.json"}, ""
    ),
    "config other of bare": _model(
        "bare", bert_config_file="{data}/configs/config_wide/bert_config.json"
    ),
    "config missing of bare": _model("bare"),
    "vocab none": matrix.Case({"vocab_file": "{data}/none"}, ""),
    "vocab folder": matrix.Case({"vocab_file": "{data}/model"}, ""),
    "vocab short": matrix.Case(
        {"vocab_file": "{data}/vocabs/vocab_short/vocab.txt"}, ""
    ),
    "vocab other": matrix.Case({"vocab_file": "{data}/other_vocab.txt"}, ""),
    "vocab short of bare": _model(
        "bare",
        bert_config_file="{data}/model/bert_config.json",
        vocab_file="{data}/vocabs/vocab_short/vocab.txt",
    ),
    "new none": matrix.Case({"new_vocab_file": "{data}/none"}, ""),
    "new folder": matrix.Case({"new_vocab_file": "{data}/model"}, ""),
    "new empty": matrix.Case(
        {"new_vocab_file": "{data}/vocabs/vocab_empty/vocab.txt"}, ""
    ),
    "new twice": matrix.Case(
        {"new_vocab_file": "{data}/vocabs/vocab_twice/vocab.txt"}, ""
    ),
    "new no unk": matrix.Case(
        {"new_vocab_file": "{data}/vocabs/vocab_no_unk/vocab.txt"}, ""
    ),
    "new no cls": matrix.Case(
        {"new_vocab_file": "{data}/vocabs/vocab_no_cls/vocab.txt"}, ""
    ),
    "new no cls tf1": matrix.Case(
        {
            "output_format": "tf1",
            "new_vocab_file": "{data}/vocabs/vocab_no_cls/vocab.txt",
        },
        "",
    ),
    "new cased": matrix.Case(
        {"new_vocab_file": "{data}/vocabs/vocab_cased/vocab.txt"}, ""
    ),
    "new of bare": _model(
        "bare",
        bert_config_file="{data}/model/bert_config.json",
        new_vocab_file="{data}/other_vocab.txt",
    ),
    "new other language": matrix.Case(
        {"new_vocab_file": "{data}/russian.txt"}, ""
    ),
    "new and strip": matrix.Case(
        {
            "output_format": "tf1",
            "new_vocab_file": "{data}/long_vocab.txt",
            "strip_optimizer": "true",
        },
        "",
    ),
    "strip hf": matrix.Case({"strip_optimizer": "true"}, ""),
    # outputs
    "out missing": matrix.Case({"output_path": None}, ""),
    "out empty": matrix.Case({"output_path": ""}, ""),
    "out model": matrix.Case({"output_path": "{data}/model"}, ""),
    "out model overwrite": matrix.Case(
        {"output_path": "{data}/model", "overwrite": "true"}, ""
    ),
    "out model overwrite prefix": matrix.Case(
        {
            "input_checkpoint": "{data}/model/bert_model.ckpt",
            "output_path": "{data}/model",
            "overwrite": "true",
        },
        "",
    ),
    "out model overwrite link": matrix.Case(
        {"output_path": "{data}/model_link", "overwrite": "true"}, ""
    ),
    "out model overwrite dots": matrix.Case(
        {"output_path": "{data}/wrong/../model", "overwrite": "true"}, ""
    ),
    "out holds vocab": matrix.Case(
        {
            "input_checkpoint": "{data}/bare",
            "bert_config_file": "{data}/model/bert_config.json",
            "output_path": "{data}/model",
            "overwrite": "true",
        },
        "",
    ),
    "out holds new": matrix.Case(
        {
            "new_vocab_file": "{data}/model2/vocab.txt",
            "output_path": "{data}/model2",
            "overwrite": "true",
        },
        "",
    ),
    "out parent": matrix.Case(
        {"output_path": "{data}", "overwrite": "true"}, ""
    ),
    "out another": matrix.Case({"output_path": "{data}/classifier"}, ""),
    "out foreign overwrite": matrix.Case(
        {"output_path": "{data}/foreign", "overwrite": "true"}, ""
    ),
    "out foreign": matrix.Case({"output_path": "{data}/foreign"}, ""),
    "out run overwrite": matrix.Case(
        {"output_path": "{data}/run", "overwrite": "true"}, ""
    ),
    "out file": matrix.Case({"output_path": "{data}/text.txt"}, ""),
    "out file overwrite": matrix.Case(
        {"output_path": "{data}/text.txt", "overwrite": "true"}, ""
    ),
    "out below file": matrix.Case({"output_path": "{data}/text.txt/x"}, ""),
    "out dangling": matrix.Case({"output_path": "{data}/dangling"}, ""),
    "out root": matrix.Case({"output_path": "/"}, ""),
    "out dots": matrix.Case({"output_path": "{out}/.."}, ""),
    "out new dots": matrix.Case({"output_path": "{out}/x/.."}, ""),
    "out newline": matrix.Case({"output_path": "{out}/x\ny"}, ""),
    "out long": matrix.Case({"output_path": "{out}/" + 300 * "x"}, ""),
    "out lock long": matrix.Case({"output_path": "{out}/" + 252 * "x"}, ""),
    "out held": matrix.Case({"output_path": "{data}/places/held"}, ""),
    "out proc": matrix.Case({"output_path": "/proc/x"}, ""),
    "out scheme": matrix.Case({"output_path": "foo://x/y"}, ""),
    "misspelt": matrix.Case({}, "", arguments=("--output_dir=x",)),
    "argument": matrix.Case({}, "", arguments=("x",)),
    "flagfile": matrix.Case({}, "", arguments=("--flagfile={data}/none",)),
    "two": matrix.Case(
        {"input_checkpoint": "{data}/none", "output_path": "{data}/text.txt"},
        "",
    ),
    "strip maybe": matrix.Case({"strip_optimizer": "2"}, ""),
}
GOOD = {
    "names": matrix.Case(
        {"input_checkpoint": "{data}/mödel ☃", "output_path": "{out}/é x"}, ""
    ),
    "slash": matrix.Case({"output_path": "{out}/x/"}, ""),
    "windows": _model("windows"),
    "env": matrix.Case(
        {},
        "",
        environment={
            "TF_CONFIG": "{{",
            "KERAS_BACKEND": "torch",
            "MPLBACKEND": "x",
        },
    ),
    "strip": matrix.Case(
        {"output_format": "tf1", "strip_optimizer": "true"}, ""
    ),
    "same new": matrix.Case({"new_vocab_file": "{data}/model/vocab.txt"}, ""),
    "overwrite new": matrix.Case({"overwrite": "true"}, ""),
    "overwrite own": matrix.Case(
        {"output_path": "{data}/out_own", "overwrite": "true"}, ""
    ),
    "labels keras": _model(
        "classifier", labels="a,b,c", output_format="keras_hub"
    ),
    "no pad": _model("no_pad"),
}


def _write_hf(folder, good, classifier):
    folder.mkdir()

    def copy(name, source=good):
        shutil.copytree(source, folder / name)
        return folder / name

    W = "model.safetensors"
    (copy("no_weights") / W).unlink()
    bad_models.cut(copy("cut") / W)
    bad_models.cut(copy("cut_header") / W, 0.01)
    for name, d in {
        "binary": damaged.BINARY,
        "empty": b"",
        "lfs": bad_models.LFS,
        "html": damaged.HTML,
    }.items():
        (copy(name) / W).write_bytes(d)
    for name, d in {
        "config_list": b"[1]",
        "config_lfs": bad_models.LFS,
        "config_html": damaged.HTML,
        "config_binary": damaged.BINARY,
    }.items():
        (copy(name) / "config.json").write_bytes(d)
    bad_models.cut(copy("config_cut") / "config.json")
    values = json.loads((good / "config.json").read_text())

    def change(name, source=good, **changes):
        f = copy(name, source)
        v = json.loads((source / "config.json").read_text()) | changes
        (f / "config.json").write_text(json.dumps(v))

    change("act", hidden_act="swiglu")
    change("layers", num_hidden_layers=1)
    change("shapes", hidden_size=16, num_attention_heads=2)
    change("albert", model_type="albert")
    change("decoder", is_decoder=True)
    change("labels", classifier, id2label={"a": "x", "b": "y", "c": "z"})
    (copy("other_weights") / W).rename(folder / "other_weights" / "tf_model.h5")
    for name, d in {
        "index_missing": b'{"weight_map": {"a": "model-1.safetensors"}}',
        "index_empty": b"{}",
        "index_broken": b'{"weight_map": ',
    }.items():
        (copy(name) / W).unlink()
        (folder / name / "model.safetensors.index.json").write_bytes(d)
    f = copy("tokenizer_broken")
    (f / "vocab.txt").unlink()
    (f / "tokenizer.json").write_text('{"model": ')
    f = copy("says_cased")
    (f / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    from safetensors import numpy as st

    t = st.load_file(good / W)
    st.save_file(
        {
            **t,
            "bert.encoder.layer.0.lora_A.weight": np.zeros([2, 2], np.float32),
        },
        copy("adapter") / W,
    )
    st.save_file(
        {**t, "cls.predictions.decoder.weight": np.zeros([44, 8], np.float32)},
        copy("tied") / W,
    )
    st.save_file(
        {n: x for n, x in t.items() if "layer.1.output" not in n},
        copy("missing") / W,
    )


def _write_kh(folder):
    for name, files in {
        "no_weights": {"config.json": b'{"class_name": "BertBackbone"}'},
        "other": {
            "config.json": b'{"class_name": "GemmaBackbone"}',
            "model.weights.h5": b"x",
        },
        "cut": {
            "config.json": b'{"class_name": "BertBackbone", "config": {}}',
            "model.weights.h5": b"\x89HDF\r\n",
        },
        "lfs": {
            "config.json": b'{"class_name": "BertBackbone"}',
            "model.weights.h5": bad_models.LFS,
        },
        "task": {
            "config.json": b'{"class_name": "BertBackbone"}',
            "model.weights.h5": b"x",
            "task.json": b'{"class_name": "BertTextClassifier"}',
        },
    }.items():
        (folder / name).mkdir(parents=True)
        for file, d in files.items():
            (folder / name / file).write_bytes(d)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    model = folder / "model"
    tiny_files.write_model(model)
    tiny_files.write_model(
        folder / "classifier", heads.BertClassifier(tiny_files.CONFIG, 3)
    )
    bad_models.write(*_made(folder / "wrong", model))
    damaged.write_changed(*_made2(folder / "configs", model), damaged.CONFIGS)
    damaged.write_changed(*_made2(folder / "vocabs", model), damaged.VOCABS)
    for n in ("mödel ☃", "model2", "windows", "no_pad", "cased", "run"):
        shutil.copytree(model, folder / n)
    (folder / "run" / "flags.txt").write_text("# python run_classifier.py\n")
    v = tiny_files.VOCAB
    (folder / "windows" / "vocab.txt").write_bytes(
        b"\xef\xbb\xbf" + "".join(f"{x}\r\n" for x in v).encode()
    )
    (folder / "no_pad" / "vocab.txt").write_text(
        "".join(f"{x}\n" for x in ["pad", *v[1:]])
    )
    (folder / "cased" / "vocab.txt").write_text(
        "".join(f"{x}\n" for x in [*v[:5], *(w.title() for w in v[5:])])
    )
    (folder / "bare").mkdir()
    for f in model.glob("bert_model*"):
        shutil.copy(f, folder / "bare")
    (folder / "other_vocab.txt").write_text(
        "".join(f"{x}\n" for x in [*v[:5], *v[:4:-1]])
    )
    (folder / "long_vocab.txt").write_text(
        "".join(f"{x}\n" for x in [*v, "more"])
    )
    (folder / "russian.txt").write_text(
        "".join(f"{x}\n" for x in [*v[:5], "да", "нет", "кот"])
    )
    for n, d in {"bad_labels": b"a\nb\n", "twice_labels": b"a\na\nb\n"}.items():
        shutil.copytree(folder / "classifier", folder / n)
        (folder / n / "labels.txt").write_bytes(d)
    shutil.copytree(model, folder / "two_heads")
    tensors = {
        v.path: v.value
        for v in heads.BertPretrainer(tiny_files.CONFIG).variables
    }
    tensors |= {
        v.path: v.value
        for v in heads.BertSpanFinder(tiny_files.CONFIG).variables
    }
    checkpoints.write(str(folder / "two_heads" / "bert_model.ckpt"), tensors)
    (folder / "text.txt").write_text("my thesis")
    (folder / "foreign").mkdir()
    (folder / "foreign" / "thesis.txt").write_text("x")
    (folder / "dangling").symlink_to(folder / "nowhere")
    (folder / "links").mkdir()
    (folder / "links" / "x.index").symlink_to(folder / "nowhere")
    (folder / "model_link").symlink_to(model)
    os.mkfifo(folder / "fifo")
    import dataclasses

    def to_hf(path, source):
        s = dataclasses.replace(
            formats.open_checkpoint(str(source)), do_lower_case=True
        )
        formats.write(str(path), "hf", s)

    to_hf(folder / "hf", model)
    to_hf(folder / "hf_classifier", folder / "classifier")
    _write_hf(folder / "hfs", folder / "hf", folder / "hf_classifier")
    _write_kh(folder / "khs")
    shutil.copytree(folder / "hf", folder / "out_own")
    (folder / "places").mkdir()
    with run_lock.hold(
        folder / "places",
        "held.lock",
        "writes",
        of=str(folder / "places" / "held"),
    ):
        yield folder


def _made(folder, good):
    folder.mkdir()
    return folder, good


def _made2(folder, good):
    folder.mkdir()
    return good, folder


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name, data, tmp_path):
    matrix.check(SCRIPT, CASES[name], data, tmp_path)


def test_the_good_command_is_good(data, tmp_path):
    matrix.check_good(SCRIPT, data, tmp_path)
