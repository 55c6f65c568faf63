"""Hugging Face weights in other files than a single safetensors file."""

import json
import pathlib
import re

from bert_tf.checkpoints import formats, huggingface_weights
from tests import interop_samples as samples

import h5py
import numpy as np
import pytest
from safetensors import numpy as safetensors_numpy

torch = pytest.importorskip("torch", reason="needs the extra `parity`")


@pytest.fixture
def folder(tmp_path, tf1):
    """Returns a Hugging Face folder with both pre-training heads."""
    samples.convert(tf1, "hf", tmp_path / "hf")
    return tmp_path / "hf"


def taken(folder):
    """Removes the tensors from a folder and returns them."""
    path = folder / "model.safetensors"
    tensors = safetensors_numpy.load_file(path)
    path.unlink()
    return tensors


def in_tensorflow(tensors):
    """Returns name in a TensorFlow model -> value.

    The names are those of TFBertForPreTraining of transformers 4.57.
    """
    found = {}
    for name, value in tensors.items():
        name = re.sub(r"layer/(\d+)/", r"layer_._\1/", name.replace(".", "/"))
        scopes, _, last = name.rpartition("/")
        if "LayerNorm" in name:
            last = {"weight": "gamma", "bias": "beta"}[last]
        elif scopes.endswith(("position_embeddings", "token_type_embeddings")):
            last = "embeddings"
        elif last == "weight" and not scopes.endswith("word_embeddings"):
            last, value = "kernel", value.T
        scopes = scopes.replace("cls/predictions", "mlm___cls/predictions")
        scopes = scopes.replace("cls/seq_rel", "nsp___cls/seq_rel")
        found[f"{scopes}/{last}:0"] = np.ascontiguousarray(value)
    return found


@pytest.mark.parametrize("ending", ["h5", "safetensors"])
def test_files_of_tensorflow(folder, tf1, ending):
    variables = in_tensorflow(taken(folder))
    if ending == "h5":
        with h5py.File(folder / "tf_model.h5", "w") as file:
            for name, value in variables.items():
                layers = {name.split("/")[0]}
                if "word_embeddings" in name:
                    # The masked-LM layer shares it.
                    layers.add("mlm___cls")
                for layer in layers:
                    file[f"{layer}/tf_bert_for_pre_training/{name}"] = value
    else:
        path = folder / "model.safetensors"
        safetensors_numpy.save_file(variables, path, {"format": "tf"})
    samples.convert(str(folder), "tf1", folder / "again")
    samples.assert_equal(str(folder / "again"), tf1)


def test_parts_of_pytorch(folder, tf1):
    tensors = taken(folder)
    names = sorted(tensors)
    weight_map: dict[str, str] = {}
    for number, half in enumerate((names[::2], names[1::2]), 1):
        file = f"pytorch_model-{number:05}-of-00002.bin"
        part = {name: torch.tensor(tensors[name]) for name in half}
        torch.save(part, folder / file)
        weight_map |= dict.fromkeys(half, file)
    index = folder / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    samples.convert(str(folder), "tf1", folder / "again")
    samples.assert_equal(str(folder / "again"), tf1)
    (folder / file).unlink()
    with pytest.raises(ValueError, match=f"names {file}, and there is no"):
        formats.open_checkpoint(str(folder))


def test_parameters_that_track_gradients(folder):
    tensors = {
        name: torch.nn.Parameter(torch.tensor(value))
        for name, value in taken(folder).items()
    }
    torch.save(tensors, folder / "pytorch_model.bin")
    source = formats.open_checkpoint(str(folder))
    assert source.read([*source.shapes]).keys() == source.shapes.keys()
    (name, value), *_ = tensors.items()
    tensors[name] = value.detach().to_sparse()
    torch.save(tensors, folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match=rf"{name}: Tensor torch.sparse_coo"):
        formats.open_checkpoint(str(folder))


@pytest.mark.parametrize(
    "inside", ["checkpoint-1500", "snapshots/0e5b57e", "0_Transformer"]
)
def test_a_folder_of_folders_names_them(folder, tmp_path, inside):
    path = tmp_path / "run" / inside
    path.parent.mkdir(parents=True)
    folder.rename(path)
    with pytest.raises(ValueError, match=f"Received: {path}$"):
        formats.open_checkpoint(str(tmp_path / "run"))


def test_adapters_are_not_applied(folder, tf1, caplog):
    """Which transformers does, where peft is installed."""
    for place in (pathlib.Path(tf1), folder):
        caplog.clear()
        (place / "adapter_config.json").write_text("{}")
        assert formats.open_checkpoint(str(place)).shapes
        assert "not used" in caplog.text and "merge_and_unload" in caplog.text
    (folder / "model.safetensors").unlink()
    for name in ("", "config.json"):
        if name:
            (folder / name).unlink()
        with pytest.raises(ValueError, match=r"adapter.*no model\..*load_lora"):
            formats.open_checkpoint(str(folder))
    settings = {"base_model_name_or_path": "owner/base"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"json\) of owner/base, and no model"):
        formats.open_checkpoint(str(folder))


def _save(path, tensors):
    if path.suffix == ".bin":
        torch.save({n: torch.tensor(x) for n, x in tensors.items()}, path)
    else:
        safetensors_numpy.save_file(tensors, path, {"format": "pt"})


@pytest.mark.parametrize(
    "start, end", [("pytorch_model", "bin"), ("model", "safetensors")]
)
def test_parts_that_are_not_of_one_model(folder, start, end):
    tensors = taken(folder)
    first, *names = sorted(tensors)
    files = [f"{start}-0000{i}-of-00002.{end}" for i in (1, 2)]
    weight_map = {first: files[0], **dict.fromkeys(names, files[1])}
    index = folder / f"{start}.{end}.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    rest = {name: tensors[name] for name in names}
    _save(folder / files[1], rest)
    _save(folder / files[0], {"other": tensors[first]})
    with pytest.raises(ValueError, match=f"{first} is in {files[0]}, and it"):
        formats.open_checkpoint(str(folder))
    _save(folder / files[0], {n: tensors[n] for n in (first, names[0])})
    message = f"{names[0]} is in {files[0]} and in {files[1]}"
    with pytest.raises(ValueError, match=message):
        formats.open_checkpoint(str(folder))
    _save(folder / files[0], {first: tensors[first]})
    formats.open_checkpoint(str(folder))


def test_a_tied_tensor_that_only_the_index_names(folder):
    """As the converter of PyTorch's shards leaves it out of the file."""
    tensors = taken(folder)
    file, tied = "model-00001-of-00001.safetensors", "cls.decoder.weight"
    words = "bert.embeddings.word_embeddings.weight"
    weight_map = dict.fromkeys([*tensors, tied], file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    for found in folder.glob("*.safetensors"):
        found.unlink()
    safetensors_numpy.save_file(tensors, folder / file, {tied: words})
    formats.open_checkpoint(str(folder))
    safetensors_numpy.save_file(tensors, folder / file)
    with pytest.raises(ValueError, match=f"{tied} is in {file}, and it is not"):
        formats.open_checkpoint(str(folder))


def test_an_index_without_its_files(folder, tf1):
    _save(folder / "pytorch_model.bin", taken(folder))
    part = "model-00001-of-00001.safetensors"
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": part}}))
    samples.convert(str(folder), "tf1", folder / "again")
    samples.assert_equal(str(folder / "again"), tf1)
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(ValueError, match=f"names {part}, and there is no"):
        formats.open_checkpoint(str(folder))


def test_biases_of_tensorflow_s_gpt(tmp_path):
    """TFConv1D of transformers 4.57 has biases of shape [1, n]."""
    bias = np.arange(3.0)
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        path = "transformer/tf_open_aigpt_model/transformer/h_._0/attn/c_attn"
        file[f"{path}/bias:0"] = bias[np.newaxis]
        file[f"{path}/weight:0"] = np.ones([2, 3])
    shapes, read = huggingface_weights.open_files(str(tmp_path))
    name = "transformer.h.0.attn.c_attn"
    assert shapes == {f"{name}.bias": (3,), f"{name}.weight": (2, 3)}
    np.testing.assert_array_equal(read(f"{name}.bias"), bias)
