"""Hugging Face folders that are written, against transformers."""

import dataclasses

from bert_tf import heads, modeling, tokenization
from bert_tf.checkpoints import formats, huggingface_names
from bert_tf.encoders import families
from tests import huggingface_models as hf
from tests import interop_samples as samples

import pytest
from safetensors import numpy as safetensors_numpy

transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)

_CONFIG = modeling.BertConfig(**samples.SMALL)
_HEADS = huggingface_names.of(_CONFIG, "encoder").heads


class TestWriting:
    @pytest.mark.parametrize(
        "head, act",
        [
            *((head, "gelu") for head in _HEADS),
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
        has_pooler = huggingface_names.has_pooler(config, head)
        left_out = () if has_pooler else tuple(sorted(families.BERT.pooler))
        assert written.left_out == left_out
        architecture = getattr(transformers, _HEADS[head].architecture)
        theirs, info = architecture.from_pretrained(
            folder, output_loading_info=True
        )
        assert not any(info.values()), info
        hf.compare(model, head, theirs.eval(), samples.batch(config))

    @pytest.mark.parametrize("head", _HEADS)
    def test_names_in_the_file_are_theirs(self, tmp_path, head):
        config = modeling.BertConfig(**samples.SMALL)
        source = formats.open_checkpoint(
            samples.write_tf1(
                tmp_path / "tf1", samples.random_model(head, config)
            )
        )
        formats.write(str(tmp_path / "hf"), "hf", source)
        theirs = hf.make(_HEADS[head].architecture)
        hf.save(theirs, tmp_path / "theirs")
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
            hf.compare(model, "encoder", theirs.eval(), samples.batch(config))

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
