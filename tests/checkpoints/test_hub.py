"""Models by name, from a server with the routes of the Hugging Face Hub."""

import contextlib
import json
import sys

import bert_tf
from bert_tf.checkpoints import formats, hub, sentence_transformers
from tests import hub_server, reference
from tests import huggingface_models as hf
from tests import interop_samples as samples

import pytest

huggingface_hub = pytest.importorskip(
    "huggingface_hub", reason="needs the extra `huggingface-hub`"
)
_NAME = "someone/tiny-bert"
_CONFIG = ["config.json", "tokenizer_config.json", "vocab.txt"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a BERT that transformers wrote, in two formats."""
    folder = tmp_path_factory.mktemp("saved")
    model = hf.make("BertForMaskedLM")
    hf.save(model, folder)
    hf.torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "vocab.txt").write_text("".join(f"{x}\n" for x in samples.VOCAB))
    values = {"do_lower_case": False, "tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(values))
    (folder / "README.md").write_text("A model.")
    return folder


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Lets huggingface_hub ask a server that the test starts, or nothing."""
    constants = huggingface_hub.constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    @contextlib.contextmanager
    def client(server):
        hub._download.cache_clear()  # as in another process
        with hub_server.serve(server):
            _ask(server.address)
            yield
        huggingface_hub.close_session()

    def _ask(address):
        route = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + route
        )

    yield client
    hub._download.cache_clear()
    huggingface_hub.close_session()


@pytest.fixture
def server(saved):
    return hub_server.Hub(models={_NAME: saved})


def _failed(name, kind=ValueError):
    """Returns the one line that says why a model can't be opened."""
    hub._download.cache_clear()
    with pytest.raises(kind) as error:
        formats.open_checkpoint(name)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_same_as_the_local_folder(saved, server, client):
    with client(server):
        found = formats.open_checkpoint(_NAME)
    local = formats.open_checkpoint(str(saved))
    assert found.path.endswith(hub_server.COMMIT)
    assert (found.config, found.vocab) == (local.config, local.vocab)
    assert found.do_lower_case is local.do_lower_case is False
    names = list(local.shapes)
    reference.assert_same(found.read(names), local.read(names))
    assert sorted(server.downloads) == sorted([*_CONFIG, "model.safetensors"])
