"""Encoder-decoders: numbers, texts and files of transformers."""

import dataclasses
import json

from bert_tf import modeling
from bert_tf.checkpoints import formats, names, opened, restoring
from bert_tf.contrib import encoder_decoders
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.seq2seq import (
    beam_search,
    decoder,
    warm_start,
)
from tests import interop_samples as samples
from tests import seq2seq_models as theirs
from tests import tiny_model

import keras
import numpy as np
import pytest
import tensorflow as tf

SEARCH = beam_search.Search(
    start=theirs.START,
    end=theirs.END,
    pad=theirs.PAD,
    tokens=theirs.SIZES["vocab_size"],
    max_length=8,
)


def restored(source):
    model = decoder.Seq2Seq(families.make(source.config))
    report = restoring.restore_weights(model.variables, source, "")
    assert not report.fresh and not report.unused
    return model


def inputs():
    ids, mask = theirs.sources()
    return {"input_ids": tf.constant(ids), "input_mask": tf.constant(mask)}


def found(model, **search):
    model.search = dataclasses.replace(SEARCH, **search)
    call = tf.function(model, autograph=False)
    rows = call(inputs())["target_ids"].numpy()
    return [theirs.trimmed(row) for row in rows]


@pytest.fixture(scope="module")
def bert2bert(tmp_path_factory):
    """Their model, and ours with the weights of its folder."""
    folder = tmp_path_factory.mktemp("bert2bert")
    other = theirs.bert2bert()
    other.save_pretrained(folder)
    return other, restored(formats.open_checkpoint(str(folder)))


@pytest.fixture(scope="module")
def transformer():
    """A MarianMTModel, and ours with its weights."""
    other = theirs.marian()
    config = encoder_decoders.VaswaniConfig(
        **theirs.SIZES | {"type_vocab_size": 0, "layer_norm_eps": 1e-5}
    )
    model = decoder.Seq2Seq(families.make(config))
    state = {k: v.numpy() for k, v in other.state_dict().items()}
    for variable in model.variables:
        variable.assign(_of_marian(variable.path, state))
    return other, model


_PARTS = {
    "attention/self/query": "self_attn.q_proj",
    "attention/self/key": "self_attn.k_proj",
    "attention/self/value": "self_attn.v_proj",
    "attention/output/dense": "self_attn.out_proj",
    "attention/output/LayerNorm": "self_attn_layer_norm",
    "intermediate/dense": "fc1",
    "output/dense": "fc2",
    "output/LayerNorm": "final_layer_norm",
}


def _of_marian(name, state):
    if name.endswith("word_embeddings"):
        return state["model.shared.weight"]
    if name.endswith("output_bias"):
        return state["final_logits_bias"][0]
    half = "encoder" if name.startswith("bert/") else "decoder"
    number, _, rest = name.partition("layer_")[2].partition("/")
    part, _, kind = rest.rpartition("/")
    is_cross = part.startswith("cross")
    other = _PARTS[part.removeprefix("cross")]
    if is_cross:
        other = other.replace("self_attn", "encoder_attn")
    end = "weight" if kind in ("kernel", "gamma") else "bias"
    value = state[f"model.{half}.layers.{number}.{other}.{end}"]
    return value.T if kind == "kernel" else value


@pytest.mark.parametrize("kind", ["bert2bert", "transformer"])
class TestAgainstTransformers:
    @pytest.mark.slow
    def test_logits(self, kind, request):
        other, model = request.getfixturevalue(kind)
        ids, mask = theirs.sources()
        target_ids = theirs.targets()
        expected = theirs.logits(other, ids, mask, target_ids)
        logits = model({**inputs(), "target_ids": tf.constant(target_ids)})
        np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-5)
        assert np.ptp(expected) > 1

    @pytest.mark.slow
    def test_targets(self, kind, request):
        other, model = request.getfixturevalue(kind)
        ids, mask = theirs.sources()
        one, four = (
            theirs.generated(other, ids, mask, beams, 8) for beams in (1, 4)
        )
        assert found(model, beams=4) == four
        with tiny_model.untraced():
            assert found(model, beams=4, caches=False) == four
            assert found(model, beams=1) == one
        for rows in (one, four):
            assert len({len(row) for row in rows}) > 1  # Some end early.


class TestFiles:
    def test_folder_for_transformers(self, bert2bert, tmp_path):
        other, model = bert2bert
        source = samples.source(tmp_path / "own", model)
        formats.write(str(tmp_path / "hf"), "hf", source)
        kind = theirs.transformers.EncoderDecoderModel
        again, info = kind.from_pretrained(
            tmp_path / "hf", output_loading_info=True
        )
        assert not info["missing_keys"] and not info["unexpected_keys"]
        own = (*theirs.sources(), theirs.targets())
        np.testing.assert_array_equal(
            theirs.logits(again.eval(), *own), theirs.logits(other, *own)
        )
        assert again.config.decoder_start_token_id == theirs.START
        assert again.config.eos_token_id == theirs.END

    def test_settings_of_generation(self, bert2bert, tmp_path, caplog):
        caplog.set_level("INFO", "absl")
        bert2bert[0].save_pretrained(tmp_path)
        text = "".join(f"{x}\n" for x in samples.VOCAB)
        (tmp_path / "vocab.txt").write_text(text)
        path = tmp_path / "generation_config.json"
        usual = json.loads(path.read_text())
        more = {"num_beams": 3, "min_length": 0, "eos_token_id": [theirs.END]}
        path.write_text(json.dumps(usual | more))
        formats.open_checkpoint(str(tmp_path))
        (line,) = [x for x in caplog.messages if "generation" in x]
        assert line.endswith("--beam_size: num_beams=3.")
        for key in ("decoder_start_token_id", "eos_token_id"):
            path.write_text(json.dumps(usual | {key: theirs.PAD}))
            with pytest.raises(InputError, match=f"Received: {key}=0"):
                formats.open_checkpoint(str(tmp_path))

    @pytest.mark.parametrize("shared", encoder_decoders.SHARED)
    def test_names_are_those_of_the_model(self, shared):
        bert = encoder_decoders.of_encoder(samples.TINY, shared)
        for config in (
            bert,
            encoder_decoders.VaswaniConfig(
                11, 4, 2, 2, 8, max_position_embeddings=8, shared=shared
            ),
        ):
            model = decoder.Seq2Seq(families.make(config))
            shapes = {v.path: tuple(v.shape) for v in model.variables}
            assert shapes == names.shapes(config, "seq2seq")
            text = config.to_json()
            again = families.of_values({"model_type": config.model_type})
            assert f'"shared": "{shared}"' in text and again.config is type(
                config
            )

    @pytest.mark.parametrize("head", ["encoder", "seq2seq"])
    def test_a_head_with_its_decoder(self, head):
        config = encoder_decoders.of_encoder(samples.TINY, "none")
        shapes = names.shapes(config, "seq2seq")
        source = opened.Checkpoint("there", "tf1", shapes, lambda _: {})
        kept = formats.with_head(source, head)
        assert kept.shapes == names.shapes(config, head)
        names.check(config, kept.shapes, "there")

    def test_a_head_without_its_decoder(self):
        config = encoder_decoders.of_encoder(samples.TINY, "none")
        shapes = names.shapes(config, "encoder")
        shapes["decoder/predictions/output_bias"] = (config.vocab_size,)
        with pytest.raises(InputError, match=r"decoder/emb.* is not there"):
            names.check(config, shapes, "there")

    def test_halves_of_different_sizes(self, tmp_path):
        sizes = theirs.SIZES
        kind = theirs.transformers.BertConfig
        config = theirs.transformers.EncoderDecoderConfig(
            encoder=kind(**sizes).to_dict(),
            decoder=kind(**sizes | {"num_hidden_layers": 2}).to_dict(),
        )
        config.architectures = ["EncoderDecoderModel"]
        config.save_pretrained(tmp_path)
        with pytest.raises(
            ValueError, match=r"same size.*num_hidden_layers is 3 and 2"
        ):
            formats.open_checkpoint(str(tmp_path))


class TestWarmStart:
    def test_decoder_starts_from_the_encoder(self, tmp_path):
        config = dataclasses.replace(samples.TINY, num_hidden_layers=2)
        made = samples.random_model("masked_lm", config)
        source = samples.source(
            tmp_path / "bert", made, vocab=samples.VOCAB[:11]
        )
        own = encoder_decoders.of_encoder(config, "none")
        model = decoder.Seq2Seq(families.make(own))
        report = restoring.restore_weights(
            model.variables, warm_start.with_decoder(source, own)
        )
        assert all("crossattention" in name for name in report.fresh)
        assert not any(name.startswith("cls/") for name in report.unused)
        read = source.read(sorted(source.shapes))
        values = {v.path: np.asarray(v) for v in model.variables}
        layer, head = "layer_1/output/dense/bias", "cls/predictions"
        for ours, origin in (
            (f"bert/encoder/{layer}", f"bert/encoder/{layer}"),
            (f"decoder/{layer}", f"bert/encoder/{layer}"),
            (
                "decoder/embeddings/position_embeddings",
                "bert/embeddings/position_embeddings",
            ),
            (
                "decoder/predictions/transform/dense/bias",
                f"{head}/transform/dense/bias",
            ),
            ("decoder/predictions/output_bias", f"{head}/output_bias"),
        ):
            np.testing.assert_array_equal(values[ours], read[origin])
            assert np.ptp(values[ours]) > 0

    def test_all_weights_but_the_cross_attention_are_shared(self):
        config = dataclasses.replace(samples.TINY, num_hidden_layers=2)
        own = encoder_decoders.of_encoder(config, "all")
        model = decoder.Seq2Seq(families.make(own))
        names_there = {v.path for v in model.decoder.variables}
        only = {x for x in names_there if x.startswith("decoder/layer")}
        assert only and all("crossattention" in x for x in only)
        layer = model.bert.encoder.layers[1]
        assert model.decoder.layers[1].attention is layer.attention

    @pytest.mark.parametrize("shared", encoder_decoders.SHARED)
    def test_trains_what_has_a_gradient(self, shared):
        own = encoder_decoders.of_encoder(samples.TINY, shared)
        model = decoder.Seq2Seq(families.make(own))
        ids = tf.constant([[1, 2, 3]])
        with tf.GradientTape() as tape:
            logits = model({"input_ids": ids, "target_ids": ids})
            loss = tf.reduce_sum(logits**2)
        values = [v.value for v in model.variables]
        gradients = tape.gradient(loss, values)
        found = {
            v.path
            for v, gradient in zip(model.variables, gradients, strict=True)
            if gradient is not None
        }
        assert found == {v.path for v in model.trained_variables}

    def test_config_of_a_resumed_run(self):
        encoder = modeling.BertConfig(11, 4, 2, 2, 8)
        config = encoder_decoders.of_encoder(encoder, "all")
        assert config.encoder(modeling.BertConfig) == encoder
        assert warm_start.find_config(encoder, config, None) == config
        with pytest.raises(ValueError, match=r"shared=all.*weights=none"):
            warm_start.find_config(encoder, config, "none")

    @pytest.mark.parametrize(
        "kind",
        ["albert", "distilbert", "electra", "left_to_right", "textcnn"],
    )
    def test_other_encoders(self, kind):
        config = families.FAMILIES[kind].config(11)
        with pytest.raises(ValueError, match=rf"must be BERTs.*{kind}"):
            encoder_decoders.of_encoder(config, "none")


def test_positions_by_the_formula():
    table = encoder_decoders.position_table(9, 6)
    for position in range(9):
        for i in range(3):
            angle = position / 10000 ** (2 * i / 6)
            assert table[position, i] == pytest.approx(np.sin(angle))
            assert table[position, 3 + i] == pytest.approx(np.cos(angle))


@pytest.mark.slow
def test_bfloat16_computes_nearly_the_same(bert2bert):
    _, model = bert2bert
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        other = decoder.Seq2Seq(families.make(model.bert.config))
    finally:
        keras.config.set_dtype_policy("float32")
    for ours, value in zip(other.variables, model.variables, strict=True):
        ours.assign(value)
    batch = {**inputs(), "target_ids": tf.constant(theirs.targets())}
    expected = model(batch)
    logits = other(batch)
    assert logits.dtype == tf.float32
    assert np.abs(logits - expected).mean() < 0.1 * np.std(expected)
    with tiny_model.untraced():
        assert len(found(other, beams=2)) == theirs.ROWS
