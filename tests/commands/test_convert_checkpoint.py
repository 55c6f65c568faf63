"""Tests of the script, from its command line."""

import dataclasses
import shutil

from bert_tf import modeling, vocabularies
from bert_tf.checkpoints import (
    formats,
    names,
    original,
    tf1_files,
    trained_models,
)
from bert_tf.errors import InputError
from tests import interop_samples as samples
from tests import scripts, small_disks

import pytest

_CONFIG = modeling.BertConfig(**samples.SMALL)


def convert(source, output_format, path, *flags, code=0):
    log = path.parents[1] / f"{path.parent.name}-log"
    done = scripts.run_checked(
        *(log, "convert_checkpoint"),
        f"--input_checkpoint={source}",
        f"--output_format={output_format}",
        *(f"--output_path={path}", *flags),
        code=code,
    )
    return "\n".join(done.lines)


def _write_run(folder, head, *trained):
    """Writes a model with moments for the weights of these prefixes only."""
    model = samples.random_model(head, _CONFIG)
    samples.write_tf1(folder, model)
    tensors = {v.path: v.value for v in model.variables}
    for name, value in list(tensors.items()):
        if name.startswith(trained):
            tensors |= {f"{name}/adam_m": value, f"{name}/adam_v": value}
    tf1_files.write(str(folder / "bert_model.ckpt"), tensors)
    return folder


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory):
    """A classifier as training leaves it, with two moments per weight."""
    return _write_run(
        tmp_path_factory.mktemp("fine_tuned"), "classification", ""
    )


@pytest.mark.slow
def test_to_each_format_and_back(tmp_path, fine_tuned):
    said = convert(fine_tuned, "hf", tmp_path / "hf", "--labels=no,yes,so")
    assert f"{fine_tuned}/bert_model.ckpt: tf1, classification, L=3" in said
    assert f"Wrote 57 weights to {tmp_path}/hf, 0.1 MB." in said
    assert "WARNING" not in said
    said = convert(tmp_path / "hf", "keras_hub", tmp_path / "preset")
    assert f"{tmp_path}/hf: hf, classification" in said
    assert "WARNING: KerasHub's own tokenizer makes" in " ".join(said.split())
    convert(tmp_path / "preset", "tf1", tmp_path / "again")
    samples.assert_equal(str(fine_tuned), str(tmp_path / "again"))
    again = formats.open_checkpoint(f"{tmp_path}/again")
    assert again.vocab == vocabularies.find(fine_tuned)
    labels = formats.open_checkpoint(f"{tmp_path}/hf").labels
    assert labels == ("no", "yes", "so")


def test_strip_optimizer(tmp_path, fine_tuned):
    sizes = []
    for number, flags in enumerate(([], ["--strip_optimizer"])):
        path = tmp_path / str(number)
        convert(f"{fine_tuned}/bert_model.ckpt", "tf1", path, *flags)
        data = path / "bert_model.ckpt.data-00000-of-00001"
        sizes.append(data.stat().st_size)
    assert sizes[0] == 3 * sizes[1]
    samples.assert_equal(str(fine_tuned), str(path))


def test_an_untrained_head_is_not_written_as_a_trained_one(tmp_path):
    """As --distillation=minilm leaves it: only its missing moments show it."""
    run = _write_run(tmp_path / "run", "classification", "bert/")
    losing = ["hf"], ["keras_hub"], ["tf1", "--layers=0"]
    for number, (kind, *flags) in enumerate(losing):
        said = convert(run, kind, tmp_path / str(number), *flags, code=1)
        assert "has a classification head that its run did not train" in said
        assert not (tmp_path / str(number)).exists()
    convert(run, "hf", tmp_path / "encoder", "--head=encoder")
    # The moments stay, and show it still.
    convert(run, "tf1", tmp_path / "again")
    source = formats.open_checkpoint(f"{tmp_path}/again")
    assert not trained_models.is_trained(source, "classification")


def test_an_untrained_half_of_a_head_is_logged(tmp_path):
    run = tmp_path / "run"
    _write_run(run, "pretraining", "bert/", "cls/predictions/")
    said = convert(run, "hf", tmp_path / "hf")
    assert "trained masked_lm only." in " ".join(said.split())


def test_files_of_a_bare_checkpoint(tmp_path, fine_tuned):
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in fine_tuned.glob("bert_model.ckpt.*"):
        shutil.copy(path, bare)
    convert(
        *(bare, "hf", tmp_path / "hf", "--head=encoder"),
        f"--bert_config_file={fine_tuned}/bert_config.json",
        f"--vocab_file={fine_tuned}/vocab.txt",
    )
    source = formats.open_checkpoint(f"{tmp_path}/hf")
    assert source.shapes == names.shapes(_CONFIG, "encoder")
    # As the vocabulary looks.
    assert source.do_lower_case is True
    assert source.vocab == vocabularies.find(fine_tuned)


def test_a_prefix_is_what_the_original_names(tmp_path, fine_tuned):
    folder = tmp_path / "own"
    path = folder / "bert_model.ckpt"
    said = convert(fine_tuned, "tf1", path, "--labels=no,yes,so")
    sizes = [x.stat().st_size for x in folder.glob("bert_model.ckpt.*")]
    size = f"{sum(sizes) / 1e6:.1f} MB"
    assert f"Wrote 57 weights to {folder}/bert_model.ckpt, {size}." in said
    assert {path.name for path in folder.iterdir()} == {
        "bert_model.ckpt.index",
        "bert_model.ckpt.data-00000-of-00001",
        "bert_config.json",
        "vocab.txt",
        "labels.txt",
    }
    samples.assert_equal(str(fine_tuned), str(folder / "bert_model.ckpt"))


@pytest.mark.parametrize("size", [100, 3000])
def test_weights_that_can_not_be_replaced_keep_their_labels(
    size, tmp_path, fine_tuned
):
    """Where there is room for the labels, too, and for no weights."""
    source = formats.open_checkpoint(str(fine_tuned))
    config = source.config
    assert config
    folder = tmp_path / "model"
    folder.mkdir()
    prefix = str(folder / "bert_model.ckpt")
    old = dataclasses.replace(source, labels=("no", "yes", "so"))
    new = dataclasses.replace(source, labels=("so", "no", "yes"), vocab=None)
    original.write_prefix(prefix, old, config)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with (
        small_disks.limited(tmp_path / "limited", size / 1024),
        pytest.raises(OSError, match="bert_model"),
    ):
        original.write_prefix(prefix, new, config, overwrite=True)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    original.write_prefix(prefix, new, config, overwrite=True)
    found = formats.open_checkpoint(prefix)
    assert found.labels == new.labels
    assert not (folder / "vocab.txt").exists()


def test_a_prefix_in_a_folder_of_other_files(tmp_path, fine_tuned):
    (tmp_path / "notes.txt").write_text("mine")
    path = tmp_path / "bert_model.ckpt"
    convert(fine_tuned, "tf1", path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    before = (tmp_path / "bert_model.ckpt.index").read_bytes()
    said = convert(fine_tuned, "tf1", path, code=1)
    assert "bert_model.ckpt.index is there, and would be" in said
    assert (tmp_path / "bert_model.ckpt.index").read_bytes() == before
    convert(fine_tuned, "tf1", path, "--overwrite", "--strip_optimizer")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "bert_model.ckpt.index").read_bytes() != before


@pytest.mark.parametrize(
    ("there", "message"),
    [
        (("labels.txt",), "no checkpoint of this name: --overwrite replaces"),
        (
            ("vocab.txt", "model.ckpt-7.index"),
            "model.ckpt-7.index is there, and has the same files beside it",
        ),
        (
            ("labels.txt", "bert_model.ckpt.index", "model.ckpt-7.index"),
            "model.ckpt-7.index is there, and has the same files beside it",
        ),
    ],
)
def test_files_of_others_are_not_replaced(there, message, tmp_path, fine_tuned):
    for name in there:
        (tmp_path / name).write_text("of another model")
    source = formats.open_checkpoint(str(fine_tuned))
    with pytest.raises(InputError, match=message):
        formats.write(
            f"{tmp_path}/bert_model.ckpt", "tf1", source, overwrite=True
        )
    assert {path.name for path in tmp_path.iterdir()} == {*there}
    for name in there:
        assert (tmp_path / name).read_text() == "of another model"


def test_layers(tmp_path, fine_tuned):
    said = convert(
        *(fine_tuned, "tf1", tmp_path / "two"),
        *("--labels=no,yes,so", "--layers=0,2"),
    )
    assert "Keeps layers 0, 2 of 3." in said
    found = formats.open_checkpoint(f"{tmp_path}/two")
    assert found.config == modeling.BertConfig(
        **samples.SMALL | {"num_hidden_layers": 2}
    )
    assert found.labels == ("no", "yes", "so")
    assert found.vocab == vocabularies.find(fine_tuned)
    # No moments and no step: 16 variables of a layer went.
    assert len(found.shapes) == 57 - 16
    assert not found.state
