"""config.json of transformers: supported values and errors."""

import dataclasses
import json
from typing import Any

from bert_tf import configuration
from bert_tf.encoders import albert, families
from tests.test_configuration import written

import pytest

# Keys of bert-base-uncased on the Hub; of older files; of a classifier.
_THEIRS = {
    "architectures": ["BertForMaskedLM"],
    "gradient_checkpointing": False,
    "hidden_act": "gelu",
    "model_type": "bert",
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "transformers_version": "4.6.0.dev0",
    "use_cache": True,
    "attention_probs_dropout_prob": 0.1,
    "hidden_dropout_prob": 0.1,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
_OLDER = {
    "finetuning_task": "mrpc",
    "is_decoder": False,
    "num_labels": 2,
    "output_attentions": False,
    "output_hidden_states": False,
    "output_past": True,
    "pruned_heads": {},
    "torchscript": False,
    "xla_device": None,
}
_OF_A_CLASSIFIER = {
    "_name_or_path": "bert-base-uncased",
    "architectures": ["BertForSequenceClassification"],
    "chunk_size_feed_forward": 64,
    "classifier_dropout": None,
    "dtype": "float32",
    "id2label": {"0": "no", "1": "yes"},
    "label2id": {"no": 0, "yes": 1},
    "problem_type": "single_label_classification",
    "tie_word_embeddings": True,
    "torch_dtype": "float16",
}
_ALBERT: dict[str, Any] = {
    "vocab_size": 40,
    "embedding_size": 16,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
_BASE = configuration.BertConfig(vocab_size=30522, type_vocab_size=2)


class TestConfigOfTransformers:
    @pytest.mark.parametrize("more", [{}, _OLDER, _OF_A_CLASSIFIER])
    def test_is_taken(self, tmp_path, caplog, more):
        caplog.set_level("INFO", "absl")
        path = written(tmp_path, _THEIRS | more)
        for _ in range(2):
            assert configuration.BertConfig.from_json_file(path) == _BASE
        # Unused keys are named once; so are the two forms of GELU.
        unused, gelu = caplog.messages
        ours = dataclasses.asdict(_BASE).keys() - {"problem_type"}
        names = ", ".join(sorted((_THEIRS | more).keys() - ours))
        assert unused == f"{path}: not used, the model is the same: {names}."
        assert gelu.startswith(f"{path}: a config of Hugging Face, where gelu")
        assert "--init_checkpoint keeps erf" in gelu

    @pytest.mark.parametrize(
        ("act", "ours"),
        [
            ("gelu_new", "gelu"),
            ("gelu_pytorch_tanh", "gelu"),
            ("gelu_fast", "gelu"),
            ("relu", "relu"),
        ],
    )
    def test_other_activations(self, tmp_path, caplog, act, ours):
        caplog.set_level("INFO", "absl")
        path = written(tmp_path, _THEIRS | {"hidden_act": act})
        config = configuration.BertConfig.from_json_file(path)
        assert config.hidden_act == ours
        assert "gelu is the erf form" not in caplog.text

    @pytest.mark.parametrize(
        ("changes", "is_said"),
        [
            ({}, True),
            # The value that transformers uses, and the original's name.
            ({"hidden_act": "gelu_new"}, False),
            ({"architectures": None, "transformers_version": None}, False),
        ],
    )
    def test_gelu_of_an_albert(self, tmp_path, caplog, changes, is_said):
        transformers = pytest.importorskip("transformers")
        caplog.set_level("INFO", "absl")
        theirs = transformers.AlbertConfig(
            **_ALBERT, hidden_act="gelu", architectures=["AlbertForMaskedLM"]
        )
        values = theirs.to_dict() | changes
        values = {k: x for k, x in values.items() if x is not None}
        path = written(tmp_path, values)
        config = families.read_config(path)
        assert config.hidden_act == "gelu"
        notes = [x for x in caplog.messages if "gelu is the erf form" in x]
        assert len(notes) == is_said
        assert all(x.startswith(f"{path}: a config of Hug") for x in notes)

    def test_albert_of_ours_is_not_theirs(self, tmp_path, caplog):
        caplog.set_level("INFO", "absl")
        config = albert.AlbertConfig(vocab_size=40)
        path = written(tmp_path, json.loads(config.to_json()))
        assert families.read_config(path) == config
        assert "gelu" not in caplog.text

    @pytest.mark.parametrize(
        ("act", "ours"), [("gelu", "gelu_erf"), ("gelu_new", "gelu")]
    )
    @pytest.mark.parametrize("name", ["Roberta", "DistilBert"])
    def test_what_is_taken_as_theirs_needs_no_word(
        self, tmp_path, caplog, name, act, ours
    ):
        transformers = pytest.importorskip("transformers")
        caplog.set_level("INFO", "absl")
        kind = getattr(transformers, f"{name}Config")
        theirs = kind(architectures=[f"{name}Model"])
        key = "activation" if hasattr(theirs, "activation") else "hidden_act"
        path = written(tmp_path, theirs.to_dict() | {key: act})
        assert families.read_config(path).hidden_act == ours
        assert "gelu" not in caplog.text

    def test_dropout_of_a_classifier(self, tmp_path, caplog):
        caplog.set_level("INFO", "absl")
        for rate, said in ((0.1, 0), (0.25, 1)):
            path = written(tmp_path, _THEIRS | {"classifier_dropout": rate})
            configuration.BertConfig.from_json_file(path)
            note = "hidden_dropout_prob=0.1, not with classifier_dropout=0.25"
            assert caplog.text.count(note) == said

    @pytest.mark.parametrize(
        "changes",
        [
            {"position_embedding_type": "relative_key"},
            {"is_decoder": True},
            {"is_encoder_decoder": True},
            {"add_cross_attention": True},
            {"pruned_heads": {"0": [1]}},
            {"tie_word_embeddings": False},
        ],
        ids=str,
    )
    def test_another_form_is_refused(self, tmp_path, changes):
        ((name, value),) = changes.items()
        path = written(tmp_path, _THEIRS | changes)
        with pytest.raises(ValueError) as caught:
            configuration.BertConfig.from_json_file(path)
        assert str(caught.value).startswith(f"{path}: This BERT computes other")
        assert f"Received: {name}={value!r}" in str(caught.value)

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"model_type": "roberta"}, "a roberta model"),
            ({"model_type": "albert"}, "an albert model"),
            ({"model_type": "electra"}, "an electra model"),
            ({"model_type": "distilbert", "dim": 768}, "a distilbert model"),
            ({"model_type": "xlm-roberta"}, "a xlm-roberta model"),
            (
                {"model_type": None, "architectures": ["AlbertModel"]},
                "an AlbertModel",
            ),
        ],
        ids=str,
    )
    def test_another_model_is_refused_by_name(self, tmp_path, changes, said):
        path = written(tmp_path, _THEIRS | changes)
        with pytest.raises(ValueError) as caught:
            configuration.BertConfig.from_json_file(path)
        start = f"{path}: This is {said}, not BERT"
        assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("bert", "classifier_dropout"),
        ("distilbert", "seq_classif_dropout"),
        ("electra", "summary_last_dropout"),
        ("openai-gpt", "embd_pdrop"),
        ("xlnet", "summary_last_dropout"),
    ],
)
def test_rates_that_are_not_used(kind, key):
    config = families.FAMILIES[kind].config(40, hidden_dropout_prob=0.2)
    for rate in (None, 0.2):
        assert not configuration.rate_notes({key: rate}, config)
    (note,) = configuration.rate_notes({key: 0.3}, config)
    assert note.endswith(f"hidden_dropout_prob=0.2, not with {key}=0.3.")
