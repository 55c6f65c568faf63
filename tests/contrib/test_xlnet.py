"""XLNet, compared with transformers.

Rows of transformers are padded at the left, ours at the right.
"""

import json

import bert_tf
from bert_tf import heads
from bert_tf.checkpoints import (
    formats,
    huggingface_names,
    names,
    restoring,
    smaller,
)
from bert_tf.contrib import xlnet, xlnet_config, xlnet_names
from bert_tf.encoders import families
from bert_tf.errors import InputError
from tests import interop_samples as samples
from tests.huggingface_models import torch, transformers

import numpy as np
import pytest
import tensorflow as tf

_SIZES = {
    "vocab_size": 40,
    "d_model": 32,
    "n_layer": 3,
    "n_head": 4,
    "d_inner": 48,
}
_LENGTHS = (9, 4, 1, 7)
_LENGTH = 10
_HEADS = {
    "encoder": "XLNetModel",
    "classification": "XLNetForSequenceClassification",
    "tagging": "XLNetForTokenClassification",
    "span": "XLNetForQuestionAnsweringSimple",
    "multiple_choice": "XLNetForMultipleChoice",
}

_TINY = xlnet_config.XlnetConfig(
    vocab_size=40,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=8,
)


def test_names_of_a_head_without_a_transform():
    model = heads.BertMaskedLM(families.make(_TINY))
    expected = names.shapes(_TINY, "masked_lm")
    assert {v.path: tuple(v.shape) for v in model.variables} == expected


def make(architecture, **changes):
    """Returns a transformers model with random weights."""
    torch.manual_seed(0)
    labels = 2 if "Question" in architecture else samples.NUM_LABELS
    config = transformers.XLNetConfig(
        num_labels=labels, **_SIZES | {"dropout": 0.0} | changes
    )
    model = getattr(transformers, architecture)(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.normal_(0, value.shape[0] ** -0.5)
            if "layer_norm.weight" in name:
                value.uniform_(0.5, 1.5)
    return model


def _rows():
    """Returns the same rows for us and for transformers: A <sep> B <sep> <cls>.

    Our <cls> has the segment of the text before it.
    """
    rng = np.random.default_rng(0)
    ours = np.zeros([3, len(_LENGTHS), _LENGTH], np.int32)
    ours[0], theirs = 5, ours.copy().astype(np.int64)
    theirs[0], theirs[2] = 5, 3
    for i, length in enumerate(_LENGTHS):
        ids = np.append(rng.integers(7, 40, length), [4, 3])[-length:]
        segments = np.sort(rng.integers(0, 2, length))
        ours[:, i, :length] = ids, np.ones(length), segments
        theirs[:, i, -length:] = ours[:, i, :length]
        theirs[2, i, -1] = 2
    own = ("input_ids", "input_mask", "segment_ids")
    other = ("input_ids", "attention_mask", "token_type_ids")
    return (
        dict(zip(own, ours, strict=True)),
        dict(zip(other, map(torch.tensor, theirs), strict=True)),
    )


def _assert_close(ours, theirs, tolerance=samples.TOLERANCE):
    """Compares the tokens of rows [B, S, ...]."""
    for i, length in enumerate(_LENGTHS):
        np.testing.assert_allclose(
            np.asarray(ours)[i, :length],
            theirs[i, -length:].detach().numpy(),
            rtol=0,
            atol=tolerance,
        )


def _load(folder, head):
    source = formats.open_checkpoint(str(folder))
    assert source.config is not None
    model = samples.model(head, source.config)
    unread = families.find(source.config).pooler - source.shapes.keys()
    found = [x for x in model.variables if x.path not in unread]
    restoring.restore_weights(found, source)
    return model


# ---- Values -----------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_hidden_states(tmp_path, activation):
    theirs = make("XLNetModel", ff_activation=activation)
    theirs.save_pretrained(tmp_path)
    ours = _load(tmp_path, "encoder")
    rows, their_rows = _rows()
    found = ours(rows)
    expected = theirs(**their_rows, output_hidden_states=True).hidden_states
    for one, other in zip(
        [found.embeddings, *found.layers], expected, strict=True
    ):
        _assert_close(one, other)
    some = ours(rows, positions=tf.constant([[2, 0]] * len(_LENGTHS)))
    expected = found.sequence.numpy()[:, [2, 0]]
    np.testing.assert_array_equal(some.sequence, expected)
    np.testing.assert_array_equal(some.pooled, found.pooled)


@pytest.mark.slow
@pytest.mark.parametrize("remat", [False, True])
def test_gradients(tmp_path, remat):
    theirs = make("XLNetModel")
    theirs.save_pretrained(tmp_path)
    ours = _load(tmp_path, "encoder")
    ours.encoder.remat = remat
    rows, their_rows = _rows()
    signs = np.random.default_rng(1).normal(size=[4, _LENGTH, 32])
    signs = signs.astype(np.float32) * rows["input_mask"][..., np.newaxis]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(ours(rows).sequence * signs)
    variables = [x for x in ours.trainable_variables if "summary" not in x.path]
    gradients = tape.gradient(loss, [x.value for x in variables])
    sequence = theirs(**their_rows).last_hidden_state
    for i, length in enumerate(_LENGTHS):
        own = torch.tensor(signs[i, :length])
        (sequence[i, -length:] * own).sum().backward(retain_graph=True)
    paths = [x.path for x in variables]
    found = dict(zip(paths, gradients, strict=True))
    assert_same_gradients(found, theirs, ours.config, "encoder")


def assert_same_gradients(ours, theirs, config, head):
    """Compares gradients by our names with those of a transformers model."""
    by_name = dict(theirs.named_parameters())
    prefix = "transformer." if head == "encoder" else ""
    table = {row.ours: row for row in huggingface_names.table(config, head)}
    tensors = {}
    for path, gradient in ours.items():
        row, value = table[path], np.asarray(gradient)
        tensors[row.theirs] = value.T if row.transposed else value
    for conversion in xlnet_names.HUGGINGFACE.conversions(config):
        arrays = conversion.to_theirs([tensors.pop(x) for x in conversion.ours])
        tensors.update(zip(conversion.theirs, arrays, strict=True))
    for name, value in tensors.items():
        expected = by_name[name.removeprefix(prefix)].grad.numpy()
        most = 1e-5 * (1 + np.abs(expected).max())
        np.testing.assert_allclose(value, expected, rtol=0, atol=most)


@pytest.mark.slow
@pytest.mark.parametrize("head", list(_HEADS)[1:])
def test_logits_of_heads(tmp_path, head):
    theirs = make(_HEADS[head])
    theirs.save_pretrained(tmp_path / "theirs")
    ours = _load(tmp_path / "theirs", head)
    rows, their_rows = _rows()
    if head == "multiple_choice":
        rows = {x: y.reshape(2, 2, -1) for x, y in rows.items()}
        their_rows = {x: y.reshape(2, 2, -1) for x, y in their_rows.items()}
    expected = theirs(**their_rows)
    found = ours(rows)
    if head == "span":
        _assert_close(found[0], expected.start_logits)
        _assert_close(found[1], expected.end_logits)
    elif head == "tagging":
        _assert_close(found, expected.logits)
    else:
        expected = expected.logits.detach().numpy()
        np.testing.assert_allclose(found, expected, atol=samples.TOLERANCE)
    # Back to transformers by way of TF1, bit for bit.
    path = str(tmp_path / "theirs")
    samples.convert(path, "tf1", str(tmp_path / "tf1"))
    samples.convert(str(tmp_path / "tf1"), "hf", str(tmp_path / "again"))
    kind = getattr(transformers, _HEADS[head])
    again, info = kind.from_pretrained(
        tmp_path / "again", output_loading_info=True
    )
    assert not any(info.values()), info
    assert again.config.ff_activation == "gelu"
    for name, value in theirs.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_unfreezing_does_not_train_the_masked_word():
    model = samples.random_model("encoder", _TINY)
    expected = [x.path for x in model.trainable_variables]
    model.trainable = False
    model.trainable = True
    assert [x.path for x in model.trainable_variables] == expected
    assert "model/transformer/mask_emb/mask_emb" not in expected


# ---- Files ------------------------------------------------------------------


def _base(folder, **changes):
    """Writes the released xlnet_config.json of the base model."""
    values = {
        "d_head": 64,
        "d_inner": 3072,
        "d_model": 768,
        "ff_activation": "gelu",
        "n_head": 12,
        "n_layer": 12,
        "n_token": 32000,
        "untie_r": True,
    }
    path = folder / "xlnet_config.json"
    path.write_text(json.dumps(values | changes))
    return str(path)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 116_718_336),
        (
            {"d_inner": 4096, "d_model": 1024, "n_head": 16, "n_layer": 24},
            360_268_800,
        ),
    ],
)
def test_parameters_of_the_released_models(tmp_path, changes, count):
    config = families.read_config(_base(tmp_path, **changes))
    assert config.hidden_act == "gelu"  # the tanh form
    size = config.hidden_size
    pooler = size * size + size
    assert names.parameters(config, "encoder") == count + pooler


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"untie_r": False}, "`untie_r` must be True"),
        ({"clamp_len": 256}, "`clamp_len` must be -1"),
        ({"d_head": 32}, "`d_head` must be `d_model` divided by `n_head`"),
        ({"n_heads": 4}, "unknown keys: n_heads"),
    ],
)
def test_other_architectures_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        families.read_config(_base(tmp_path, **changes))


def _originals(V=40, D=32, L=3, N=4, F=48):
    """Returns the variables of zihangdai/xlnet's graph, by its modeling.py.

    `transformer_xl` opens model/transformer, `embedding_lookup` the scope
    word_embedding, `rel_multihead_attn` rel_attn, `positionwise_ffn` ff, and
    `summarize_sequence` sequnece_summary; biases have one variable each if
    `untie_r` is set.
    """
    H, inside = D // N, "model/transformer"
    found = {
        f"{inside}/word_embedding/lookup_table": [V, D],
        f"{inside}/mask_emb/mask_emb": [1, 1, D],
        **{f"{inside}/r_{x}_bias": [L, N, H] for x in "wrs"},
        f"{inside}/seg_embed": [L, 2, N, H],
        "model/sequnece_summary/summary/kernel": [D, D],
        "model/sequnece_summary/summary/bias": [D],
    }
    for i in range(L):
        layer = f"{inside}/layer_{i}"
        for part in "qkvor":
            found[f"{layer}/rel_attn/{part}/kernel"] = [D, N, H]
        for part in ("rel_attn", "ff"):
            found[f"{layer}/{part}/LayerNorm/beta"] = [D]
            found[f"{layer}/{part}/LayerNorm/gamma"] = [D]
        for part, sizes in (("layer_1", [D, F]), ("layer_2", [F, D])):
            found[f"{layer}/ff/{part}/kernel"] = sizes
            found[f"{layer}/ff/{part}/bias"] = sizes[1:]
    return found


def test_the_vocabulary_of_another_model(tmp_path):
    # Its [SEP] has the ID of <cls>.
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *samples.VOCAB[4:]]
    model = samples.random_model("encoder", _TINY)
    folder = samples.write_tf1(tmp_path / "tf1", model, vocab=pieces)
    message = r"not belong to an XLNet.* word_pieces, whose .* with \[SEP\]$"
    with pytest.raises(InputError, match=message):
        bert_tf.load(folder, head="encoder")


def test_names_and_shapes_are_the_originals(tmp_path):
    theirs = make("XLNetLMHeadModel")
    theirs.save_pretrained(tmp_path / "theirs")
    path = str(tmp_path / "theirs")
    samples.convert(path, "tf1", str(tmp_path / "tf1"))
    found = tf.train.list_variables(str(tmp_path / "tf1" / "bert_model.ckpt"))
    expected = _originals()
    for name in list(expected):
        if "summary" in name:  # only after fine-tuning
            del expected[name]
    assert dict(found) == expected | {"model/lm_loss/bias": [40]}
    samples.convert(str(tmp_path / "tf1"), "hf", str(tmp_path / "again"))
    again = transformers.XLNetLMHeadModel.from_pretrained(tmp_path / "again")
    for name, value in theirs.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    config = families.read_config(str(tmp_path / "tf1" / "bert_config.json"))
    model = xlnet.Xlnet(config)
    shapes = {x.path: list(x.shape) for x in model.variables}
    assert shapes == _originals()


def test_layers_are_kept(tmp_path):
    """A model with some layers is the model without the others."""
    theirs = make("XLNetModel")
    theirs.save_pretrained(tmp_path / "all")
    source = formats.open_checkpoint(str(tmp_path / "all"))
    fewer = smaller.keep_layers(source, [0, 2])
    formats.write(str(tmp_path / "fewer"), "tf1", fewer)
    rows, their_rows = _rows()
    del theirs.layer[1]
    expected = theirs(**their_rows).last_hidden_state
    found = _load(tmp_path / "fewer", "encoder")(rows).sequence
    _assert_close(found, expected)
