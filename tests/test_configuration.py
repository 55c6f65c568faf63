"""bert_config.json: the released shapes, defaults, and errors."""

import dataclasses
import json
import math
import pathlib
from typing import Any

from bert_tf import configuration
from bert_tf.encoders import families
from bert_tf.errors import InputError
from tests import interop_samples as samples

import pytest

_MODELS = pathlib.Path(__file__).resolve().parents[1] / "configs" / "models"

_TINY = samples.THREES

# google-research/bert, README: L, H, A. F is 4 H in all of them.
_NAMED = {
    "tiny": (2, 128, 2, 30522),
    "mini": (4, 256, 4, 30522),
    "small": (4, 512, 8, 30522),
    "medium": (8, 512, 8, 30522),
    "base": (12, 768, 12, 30522),
    "base_cased": (12, 768, 12, 28996),
    "base_chinese": (12, 768, 12, 21128),
    "base_multilingual_cased": (12, 768, 12, 119547),
    "large": (24, 1024, 16, 30522),
    "large_cased": (24, 1024, 16, 28996),
}
_MINIATURES = {
    f"uncased_L-{L}_H-{D}_A-{D // 64}": (L, D, D // 64, 30522)
    for L in (2, 4, 6, 8, 10, 12)
    for D in (128, 256, 512, 768)
}


def written(folder, values):
    """Returns the path of a file that contains a config."""
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    return str(path)


class TestConfig:
    @pytest.mark.parametrize("name", sorted(_NAMED | _MINIATURES))
    def test_released_shape(self, name):
        L, D, N, V = (_NAMED | _MINIATURES)[name]
        path = str(_MODELS / f"{name}.json")
        config = configuration.BertConfig.from_json_file(path)
        sizes: dict[str, Any] = {"num_hidden_layers": L, "type_vocab_size": 2}
        sizes |= {"num_attention_heads": N, "intermediate_size": 4 * D}
        assert config == configuration.BertConfig(V, D, **sizes)

    def test_defaults_are_the_originals(self):
        # google-research/bert, modeling.py, BertConfig.__init__.
        assert dataclasses.asdict(configuration.BertConfig(vocab_size=7)) == {
            "vocab_size": 7,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "hidden_act": "gelu",
            "hidden_dropout_prob": 0.1,
            "attention_probs_dropout_prob": 0.1,
            "max_position_embeddings": 512,
            "type_vocab_size": 16,
            "initializer_range": 0.02,
            # Constants in the original, which other libraries configure.
            "layer_norm_eps": 1e-12,
            "transform_act": None,
            "transform_layer_norm_eps": None,
            "pooler_act": "tanh",
            # As in transformers.
            "problem_type": None,
            "score_act": "linear",
            "splits_cjk": False,
        }

    def test_what_was_not_set_is_not_written(self):
        config = configuration.BertConfig(vocab_size=7)
        said = json.loads(config.to_json())
        assert not {"transform_act", "pooler_act"} & set(said)
        changed = dataclasses.replace(
            config, transform_act="gelu_erf", pooler_act="relu"
        )
        values = json.loads(changed.to_json())
        assert configuration.BertConfig.from_dict(values) == changed

    def test_released_files_load(self, shared_data):
        paths = [
            *shared_data.glob("tf1_index/*/bert_config.json"),
            shared_data / "tf1_checkpoint" / "bert_config.json",
        ]
        assert len(paths) == 3
        for path in paths:  # two of them have the keys about the pooler
            values = json.loads(path.read_text())
            config = configuration.BertConfig.from_json_file(str(path))
            known = dataclasses.asdict(config)
            added = {"layer_norm_eps": 1e-12, "pooler_act": "tanh"}
            added |= {"score_act": "linear", "splits_cjk": False}
            added |= dict.fromkeys(
                ("transform_act", "transform_layer_norm_eps", "problem_type")
            )
            said = {k: v for k, v in values.items() if k in known}
            assert said | added == known

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
    def test_json_round_trip(self, tmp_path, encoding):
        path = tmp_path / "bert_config.json"
        path.write_text(_TINY.to_json(), encoding=encoding)
        assert configuration.BertConfig.from_json_file(str(path)) == _TINY

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"hidden_sise": 8}, "hidden_sise (did you mean hidden_size?)"),
            (
                {"zzz": 1, "layer_norm_epsilon": 1e-5, "embedding_size": 128},
                "keys: embedding_size, layer_norm_epsilon (did you mean "
                "layer_norm_eps?), zzz. What",
            ),
            ({"hidden_size": 10}, "num_attention_heads=3"),
            ({"problem_type": "ranking"}, "multi_label_classification"),
            ({"splits_cjk": "yes"}, "`splits_cjk` must be true or false"),
            ({"transform_act": "gelu_new"}, "transform_act='gelu_new'"),
            ({"pooler_act": "none"}, "`pooler_act`"),
            ({"hidden_act": "swish"}, "gelu"),
            *(
                ({name: value}, "")
                for name, values in {
                    "hidden_size": (10, -12, 0, 12.0, None),
                    "vocab_size": ("50", [50]),
                    "num_hidden_layers": (True,),
                    "num_attention_heads": (0,),
                    "intermediate_size": (-1,),
                    "type_vocab_size": (0,),
                    "max_position_embeddings": (2.5,),
                    "hidden_dropout_prob": (1, "0.1", math.nan, False),
                    "attention_probs_dropout_prob": (-0.1,),
                    "initializer_range": ("small", -0.02, math.inf),
                    "layer_norm_eps": (0, None),
                    "problem_type": ("ranking",),
                    "transform_layer_norm_eps": ("x",),
                    "pooler_act": ("none",),
                    "hidden_act": ("swish", ["gelu"]),
                }.items()
                for value in values
            ),
        ],
        ids=str,
    )
    def test_bad_value_is_named(self, tmp_path, changes, words):
        path = tmp_path / "bert_config.json"
        path.write_text(json.dumps(dataclasses.asdict(_TINY) | changes))
        with pytest.raises(ValueError) as caught:
            configuration.BertConfig.from_json_file(str(path))
        if not words:  # What is wrong is said as it is.
            ((name, value),) = changes.items()
            words = f"{name}={value!r}"
        assert str(path) in str(caught.value)
        assert words in str(caught.value)
        assert "not in the file" not in str(caught.value)

    def test_a_default_is_named_as_such(self, tmp_path, caplog):
        caplog.set_level("INFO", "absl")
        path = written(tmp_path, {"vocab_size": 9, "hidden_size": 8})
        with pytest.raises(ValueError) as caught:
            configuration.BertConfig.from_json_file(path)
        assert str(caught.value).endswith(
            "Received: hidden_size=8, num_attention_heads=12 (not in the file, "
            "so the default)"
        )
        path = written(tmp_path, {"vocab_size": 9, "hidden_size": 24})
        configuration.BertConfig.from_json_file(path)
        assert caplog.messages == [
            f"{path}: not in the file, so the default: num_hidden_layers=12, "
            "num_attention_heads=12, intermediate_size=3072, "
            "max_position_embeddings=512, type_vocab_size=16."
        ]

    @pytest.mark.parametrize(
        ("act", "ours"),
        [
            ("GELU", "gelu"),
            ("Tanh", "tanh"),
            ("ReLU", "relu"),
            ("linear", "linear"),
            ("", "linear"),
            (None, "linear"),
        ],
    )
    def test_activations_as_the_originals(self, tmp_path, act, ours):
        # google-research/bert, modeling.py, get_activation.
        values = dataclasses.asdict(_TINY) | {"hidden_act": act}
        config = configuration.BertConfig.from_json_file(
            written(tmp_path, values)
        )
        assert config == dataclasses.replace(_TINY, hidden_act=ours)
        assert configuration.BertConfig(50, hidden_act=act).hidden_act == ours

    def test_released_files_need_no_words(self, caplog):
        caplog.set_level("INFO", "absl")
        for path in _MODELS.glob("*.json"):
            families.read_config(str(path))
        assert not caplog.messages

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b'{"hidden_size": 8}', ["vocab_size"]),
            (b"{'vocab_size': 8}", ["not JSON", "line 1"]),
            (b'{"vocab_size": 8', ["not JSON"]),
            (b"", ["not JSON"]),
            (b'{"vocab_size": "\xff"}', ["not JSON", "0xff"]),
            (b"[8]", ["one JSON object"]),
            (b"8", ["one JSON object"]),
        ],
    )
    def test_bad_file_is_named(self, tmp_path, content, words):
        path = tmp_path / "bert_config.json"
        path.write_bytes(content)
        with pytest.raises(ValueError) as caught:
            configuration.BertConfig.from_json_file(str(path))
        for word in [str(path), *words]:
            assert word in str(caught.value)

    def test_sequence_length_is_checked(self):
        _TINY.check_sequence_length(16)
        with pytest.raises(ValueError, match=r"max_seq_length=17.*=16"):
            _TINY.check_sequence_length(17)

    def test_second_texts_are_checked(self):
        one = dataclasses.replace(_TINY, type_vocab_size=1)
        _TINY.check_reads_pairs((0, 1))
        one.check_reads_pairs((0, 0))  # as RoBERTa's
        with pytest.raises(ValueError, match=r"type_vocab_size=1, .* type 1"):
            one.check_reads_pairs((0, 1))

    def test_vocabulary_is_checked(self):
        _TINY.check_vocab_size(50, "vocab.txt")
        with pytest.raises(ValueError, match=r"vocab\.txt.* 49 .*=50"):
            _TINY.check_vocab_size(49, "vocab.txt")

    @pytest.mark.parametrize(
        ("rows", "tokens", "fits"),
        [
            (30528, 30522, True),  # a multiple of 8
            (30592, 30522, True),  # of 64
            (30720, 30594, True),  # of 128
            (30720, 30592, False),  # 128 too many
            (30524, 30522, False),  # no multiple of 8
            (30528, 30529, False),  # too few
        ],
    )
    def test_padded_tables(self, rows, tokens, fits, caplog):
        config = dataclasses.replace(_TINY, vocab_size=rows)
        if fits:
            config.check_vocab_size(tokens, "vocab.txt")
            (line,) = caplog.messages
            assert f"{tokens} tokens, and the model has {rows} rows" in line
            assert f"the last {rows - tokens} are treated as" in line
            return
        with pytest.raises(ValueError, match="does not belong"):
            config.check_vocab_size(tokens, "vocab.txt")


def test_a_larger_vocabulary_may_replace_that_of_the_checkpoint():
    config = dataclasses.replace(_TINY, vocab_size=30_528)
    for size, is_larger in ((30_529, True), (20_000, False)):
        with pytest.raises(InputError, match=f"has {size} tokens") as caught:
            config.check_vocab_size(size, "it")
        assert ("--new_vocab_file." in str(caught.value)) == is_larger
