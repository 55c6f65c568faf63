"""Models by name, from a server with the routes of the Hugging Face Hub."""

import contextlib
import json
import sys

import bert_tf
from bert_tf.checkpoints import formats, hub, sentence_transformers
from tests import hub_server, reference, scripts
from tests import huggingface_models as hf
from tests import interop_samples as samples

import pytest

constants = pytest.importorskip(
    "huggingface_hub.constants", reason="needs the extra `huggingface-hub`"
)
utils = pytest.importorskip("huggingface_hub.utils")
_NAME = "someone/tiny-bert"
_CONFIG = ["config.json", "tokenizer_config.json", "vocab.txt"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Returns the folder of a BERT saved by transformers in two formats."""
    folder = tmp_path_factory.mktemp("saved")
    model = hf.make("BertForMaskedLM")
    hf.save(model, folder)
    hf.torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "vocab.txt").write_text("".join(f"{x}\n" for x in samples.VOCAB))
    values = {"do_lower_case": True, "tokenizer_class": "BertTokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(values))
    (folder / "README.md").write_text("A model.")
    return folder


@pytest.fixture
def client(tmp_path, monkeypatch):
    """Points huggingface_hub to a test server, with an empty cache."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    @contextlib.contextmanager
    def client(server):
        hub._download.cache_clear()  # like a new process
        with hub_server.serve(server):
            _ask(server.address)
            yield
        utils.close_session()

    def _ask(address):
        route = "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + route
        )

    yield client
    hub._download.cache_clear()
    utils.close_session()


@pytest.fixture
def server(saved):
    return hub_server.Hub(models={_NAME: saved})


def _failed(name, kind=ValueError):
    """Returns the one-line error on opening a model."""
    hub._download.cache_clear()
    with pytest.raises(kind) as error:
        formats.open_checkpoint(name)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_same_as_the_local_folder(saved, server, client):
    with client(server):
        found = formats.open_checkpoint(_NAME)
    local = formats.open_checkpoint(str(saved))
    assert found.path == _NAME
    assert (found.config, found.vocab) == (local.config, local.vocab)
    assert found.do_lower_case is local.do_lower_case is True
    names = list(local.shapes)
    reference.assert_same(found.read(names), local.read(names))
    assert sorted(server.downloads) == sorted([*_CONFIG, "model.safetensors"])


def test_once_downloaded_no_server_is_needed(server, client, monkeypatch):
    with client(server):
        folder = hub.locate(_NAME)
    assert folder.endswith(hub_server.COMMIT)
    hub._download.cache_clear()
    assert hub.locate(_NAME) == folder
    hub._download.cache_clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert hub.locate(_NAME) == folder


def test_a_second_use_downloads_nothing(server, client):
    for _ in range(2):
        with client(server):
            formats.open_checkpoint(_NAME)
    assert len(server.downloads) == len({*server.downloads})


def test_one_process_asks_once(server, client):
    with client(server):
        folder = hub.locate(_NAME)
        server.models.clear()
        for address in ("", "hf://", "https://huggingface.co/"):
            assert hub.locate(f"{address}{_NAME}") == folder


def _copy(saved, folder, *names):
    """Makes a model of the Hub with some files of another model."""
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes((saved / name).read_bytes())
    return folder


def test_weights_of_pytorch_where_there_are_no_others(saved, client, tmp_path):
    files = [*_CONFIG, "pytorch_model.bin"]
    folder = _copy(saved, tmp_path / "model", *files)
    server = hub_server.Hub(models={_NAME: folder})
    with client(server):
        samples.assert_equal(_NAME, str(saved))
    assert sorted(server.downloads) == sorted(files)


def test_weights_in_parts(saved, client, tmp_path):
    folder = _copy(saved, tmp_path / "model", *_CONFIG, "pytorch_model.bin")
    hf.load(saved, "BertForMaskedLM").save_pretrained(
        folder, max_shard_size="20KB"
    )
    server = hub_server.Hub(models={_NAME: folder})
    with client(server):
        samples.assert_equal(_NAME, str(saved))
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert len({*index["weight_map"].values()} & {*server.downloads}) > 1
    assert "pytorch_model.bin" not in server.downloads


def test_a_model_that_reads_from_left_to_right(client, tmp_path):
    """Other keys than `model_type` tell its family."""
    folder = tmp_path / "model"
    hf.save(hf.make("BertLMHeadModel", is_decoder=True), folder)
    with client(hub_server.Hub(models={_NAME: folder})):
        samples.assert_equal(_NAME, str(folder))


def test_a_checkpoint_of_the_original(tf1, client, tmp_path):
    server = hub_server.Hub(models={_NAME: tmp_path / "tf1"})
    with client(server):
        samples.assert_equal(_NAME, tf1)


@pytest.mark.parametrize("address", ["hf://", "https://huggingface.co/"])
def test_the_card_of_what_is_written_names_it(
    address, saved, server, client, tmp_path
):
    with client(server):
        source = formats.open_checkpoint(f"{address}{_NAME}@main")
        formats.write(str(tmp_path / "hf"), "hf", source)
    card = (tmp_path / "hf" / "README.md").read_text()
    assert f"\nbase_model: {_NAME}\n" in card


@pytest.mark.slow
def test_a_preset_of_keras_hub(tf1, client, tmp_path):
    pytest.importorskip("keras_hub", reason="needs the extra `keras-hub`")
    preset = tmp_path / "preset"
    samples.convert(tf1, "keras_hub", preset)
    with client(hub_server.Hub(models={_NAME: preset})):
        samples.assert_equal(_NAME, str(preset))


def test_a_script(saved, server, client, tmp_path):
    def convert(name, out):
        hub._download.cache_clear()
        flags = ["--output_format=tf1", f"--output_path={tmp_path / out}"]
        flags.append(f"--input_checkpoint={name}")
        return scripts.run(tmp_path / "log", "convert_checkpoint", *flags)

    with client(server):
        done = convert(_NAME, "right")
        assert done.wait() == 0, done.stderr
        assert f"Downloading the weights of {_NAME}." in done.stderr
        samples.assert_equal(str(tmp_path / "right"), str(saved))
        assert "Downloading" not in convert(_NAME, "again").stderr
        done = convert("someone/else", "wrong")
    assert (done.wait(), len(done.lines)) == (1, 1)
    assert done.lines[0].startswith("error: There is no folder someone/else")


def test_a_revision(server, client):
    with client(server):
        folder = hub.locate(f"{_NAME}@{hub_server.COMMIT}")
        said = _failed(f"{_NAME}@v2")
    assert folder.endswith(hub_server.COMMIT)
    assert said == (
        f"The model {_NAME} has no such branch, tag or commit. Received: "
        "revision=v2"
    )


def test_how_vectors_are_made_comes_with_it(saved, client, tmp_path):
    folder = _copy(saved, tmp_path / "model", *_CONFIG, "model.safetensors")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true}'
    )
    types = {"": "Transformer", "1_Pooling": "Pooling", "2": "Normalize"}
    modules = [{"path": x, "type": y} for x, y in types.items()]
    (folder / "modules.json").write_text(json.dumps(modules))
    with client(hub_server.Hub(models={_NAME: folder})):
        model = bert_tf.Bert.from_checkpoint(_NAME)
    assert model.reading is not None
    # The path from which an export reads the model.
    found = sentence_transformers.read(model.reading.path)
    assert found == sentence_transformers.Vectors("cls", True, 20, "last")


@pytest.mark.slow
def test_a_tokenizer_needs_no_weights(saved, server, client):
    with client(server):
        ours = bert_tf.Tokenizer(_NAME, name="x")
    local = bert_tf.Tokenizer(saved, name="x")
    assert ours.get_config() == local.get_config()
    assert sorted(server.downloads) == sorted(_CONFIG)


class TestErrors:
    """Errors are one line: the problem and the way out."""

    @pytest.mark.parametrize("status", [401, 404])
    def test_no_such_model(self, server, client, status):
        server.missing = status
        with client(server):
            assert _failed("someone/else") == (
                "There is no folder someone/else here, and no model "
                f"{server.address}/someone/else. Correct the path or the "
                "name; if the model is private, log in with `hf auth login`, "
                "or set HF_TOKEN."
            )

    def test_a_name_that_the_hub_refuses(self, server, client):
        with client(server):
            said = _failed("some--one/else..")
        assert said.startswith("There is no folder some--one/else.. here, and")

    def test_gated(self, server, client):
        server.gated.add(_NAME)
        with client(server):
            assert _failed(_NAME) == (
                f"The model {_NAME} is gated: accept its terms at "
                f"{server.address}/{_NAME}, and log in with `hf auth login`, "
                "or set HF_TOKEN."
            )

    def test_no_weights(self, saved, client, tmp_path):
        folder = _copy(saved, tmp_path / "model", *_CONFIG)
        (folder / "flax_model.msgpack").touch()
        server = hub_server.Hub(models={_NAME: folder})
        with client(server):
            said = _failed(_NAME)
        assert said.startswith(
            f"{_NAME} has no weights that can be read. Looked for: "
            "model.safetensors, model.safetensors.index.json, "
            "pytorch_model.bin, "
        )
        assert "flax_model.msgpack" not in server.downloads

    def test_no_config(self, saved, client, tmp_path):
        folder = _copy(saved, tmp_path / "model", "model.safetensors")
        server = hub_server.Hub(models={_NAME: folder})
        with client(server):
            assert _failed(_NAME).startswith(f"{_NAME} has no config.json")
        assert not server.downloads

    @pytest.mark.parametrize("with_config", [False, True])
    def test_an_adapter_of_peft(self, saved, client, tmp_path, with_config):
        names = _CONFIG if with_config else []
        folder = _copy(saved, tmp_path / "model", *names)
        settings = {"base_model_name_or_path": "owner/base"}
        (folder / "adapter_config.json").write_text(json.dumps(settings))
        with client(hub_server.Hub(models={_NAME: folder})):
            assert _failed(_NAME).startswith(
                f"{_NAME} holds an adapter (adapter_config.json) of owner/base,"
                " and no model. To use it, merge"
            )

    def test_another_kind_of_model(self, saved, client, tmp_path):
        files = [*_CONFIG, "model.safetensors"]
        folder = _copy(saved, tmp_path / "model", *files)
        (folder / "config.json").write_text('{"model_type": "gpt2"}')
        server = hub_server.Hub(models={_NAME: folder})
        with client(server):
            said = _failed(_NAME)
        assert said.startswith(f"{_NAME} can't be read. Its config.json: This")
        assert "gpt2" in said
        assert "model.safetensors" not in server.downloads

    def test_nothing_answers(self, server, client):
        with client(server):
            pass
        assert _failed(_NAME, OSError) == (
            f"There is no folder {_NAME} here, and {server.address}/{_NAME} "
            "can't be downloaded: [Errno 111] Connection refused. Where the "
            f"Hub can be reached, run `hf download {_NAME} --local-dir=DIR`; "
            "then pass DIR instead of the name."
        )

    def test_offline(self, client, monkeypatch):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        said = _failed(f"{_NAME}@v2", OSError)
        assert "offline mode is enabled" in said
        assert f"hf download {_NAME} --revision=v2 --local-dir=DIR" in said

    def test_cut_off_on_the_way(self, server, client, monkeypatch):
        """With a partial cache the error names the missing weights."""
        with client(server):
            hub.locate(_NAME, with_weights=False)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        said = _failed(_NAME, OSError)
        assert f"{_NAME} can't be downloaded: " in said


class TestPaths:
    """Paths are no names: huggingface_hub is not even imported."""

    @pytest.fixture(autouse=True)
    def _no_library(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    @pytest.mark.parametrize(
        "path",
        [
            *("/some/one", "./some/one", "../one", "some/one/two", "some/"),
            *("one", "some/one.ckpt", "some/model.ckpt-3", "some/bert.json"),
            *("some/model.safetensors", "gs://some/one", "http://some/one"),
            "some/x.data-00000-of-00001",
        ],
    )
    def test_what_looks_like_a_path(self, path):
        assert hub.locate(path) == path

    def test_what_is_there(self, tf1, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        samples.convert("tf1", "hf", tmp_path / "google-bert" / "bert-base")
        samples.assert_equal("google-bert/bert-base", tf1)
        for ending in ("index", "data-00000-of-00001"):
            (tmp_path / "tf1" / f"bert_model.ckpt.{ending}").rename(
                tmp_path / "tf1" / f"model.{ending}"
            )
        samples.assert_equal("tf1/model", tf1)
