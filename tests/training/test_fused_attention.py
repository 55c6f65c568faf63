"""When attention is cuDNN's kernel, and the trial of the kernel."""

import dataclasses

from benchmarks import pretraining_step
from bert_tf import errors, heads
from bert_tf.encoders import cudnn_attention, families
from bert_tf.training import fused_attention
from tests import cudnn_formula, tiny_model

import keras
import pytest
import tensorflow as tf

_SHAPE = (2, 64, 2, 8)


def _batch(shape=(8, 128), **others):
    return {"input_ids": tf.TensorSpec(shape, tf.int32), **others}


def _model(dtype="mixed_bfloat16", family="bert", **changes):
    values = pretraining_step.config_of("tiny", family) | changes
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(dtype)
    try:
        return families.make(families.from_values(values))
    finally:
        keras.config.set_dtype_policy(before)


class TestAgainstBatch:
    def test_nothing(self):
        assert not fused_attention.against_batch(_model(), _batch())

    @pytest.mark.parametrize(
        ("batch", "reason"),
        [
            (_batch((8, 100)), "100 tokens, not a multiple of 64"),
            (_batch((8, None)), "differ in length"),
            (_batch((8, 4, 128)), "several sequences"),
            (_batch(sequence_ids=None), "several sequences"),
        ],
        ids=str,
    )
    def test_batches(self, batch, reason):
        assert reason in fused_attention.against_batch(_model(), batch)

    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            ({"dtype": "float32"}, "not float32"),
            ({"hidden_size": 36}, "18 values, not a multiple of 8"),
            ({"hidden_size": 272}, "136 values"),
            ({"family": "xlnet"}, "adds scores"),
        ],
        ids=str,
    )
    def test_models(self, model, reason):
        model = _model(**model)
        assert reason in fused_attention.against_batch(model, _batch())


class TestChoose:
    class _Dataset:
        element_spec = _batch()

    def test_an_impossible_wish_is_an_error(self, monkeypatch):
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: [])
        with pytest.raises(errors.InputError, match="there is no NVIDIA GPU"):
            fused_attention.choose(_model(), self._Dataset, True, True)

    @pytest.mark.parametrize("wanted", [None, False])
    def test_not_without_a_gpu(self, monkeypatch, wanted):
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda _: [])
        assert not fused_attention.choose(_model(), self._Dataset, True, wanted)

    def test_not_for_padding_before_tokens(self, monkeypatch):
        monkeypatch.setattr(fused_attention, "against_devices", lambda _: "")
        monkeypatch.setattr(fused_attention, "_against_kernel", lambda *_: "")
        choose = fused_attention.choose
        assert choose(_model(), self._Dataset, True)
        assert not choose(_model(), self._Dataset, True, against_data="any")


@pytest.mark.parametrize("check_only", [False, True])
@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        ("float32", "not float32"),
        ("mixed_bfloat16", "padding is not at the end of the rows of one[.]"),
    ],
)
def test_a_run_asks_before_it_begins(
    monkeypatch, tmp_path, check_only, dtype, reason
):
    # As on a GPU that has the kernel.
    monkeypatch.setattr(fused_attention, "against_devices", lambda _: "")
    model = heads.BertPretrainer(_model(dtype))
    begun = []
    run = tiny_model.session_of(
        model,
        tmp_path,
        lambda: begun.append(True),
        lambda records, step: TestChoose._Dataset(),
        fused_attention=True,
        check_only=check_only,
    )
    run = dataclasses.replace(run, padded_inside="one")
    with pytest.raises(errors.InputError, match=reason):
        run.train()
    assert not begun


@pytest.mark.usefixtures("untraced")
class TestTried:
    """The trial accepts the formula, and finds kernels that are wrong."""

    def _tried(self, monkeypatch, kernel, is_causal=False):
        monkeypatch.setattr(cudnn_attention, "_call", kernel)
        return fused_attention.tried(_SHAPE, "bfloat16", is_causal)

    @pytest.mark.slow
    @pytest.mark.parametrize("is_causal", [False, True])
    def test_the_formula(self, monkeypatch, is_causal):
        kernel = cudnn_formula.Formula()
        assert self._tried(monkeypatch, kernel, is_causal) == ""

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("options", "reason"),
        [({"lag": 1}, "passes drop different"), ({"counts": False}, "same")],
    )
    def test_dropout(self, monkeypatch, options, reason):
        kernel = cudnn_formula.Formula(**options)
        assert reason in self._tried(monkeypatch, kernel)

    @pytest.mark.slow
    def test_gradients(self, monkeypatch):
        formula = cudnn_formula.Formula()

        def swapped(target, *arguments):
            results = formula(target, *arguments)
            return results[::-1] if target.endswith("Backward") else results

        assert "gradient of q" in self._tried(monkeypatch, swapped)


@pytest.mark.skipif(
    bool(fused_attention.against_devices(True)),
    reason=fused_attention.against_devices(True),
)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("length", [128, 192, 512])
def test_the_kernel_computes_the_formula(length, is_causal, dtype):
    shape = (4, length, 16, 64)
    assert fused_attention.tried(shape, dtype, is_causal) == ""
