"""ELMo, compared with PyTorch in float64, and its files."""

import copy
import json
from typing import Any

from bert_tf import compiled, errors, vocabularies
from bert_tf.checkpoints import formats, names, restoring
from bert_tf.contrib import elmo, elmo_characters, elmo_config
from bert_tf.encoders import families, layers
from bert_tf.text import graph_offsets, text_graph
from tests.contrib import elmo_models as small

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")

VOCABULARY = elmo_characters.WordCharacters(elmo_characters.TOKENS)
# Of one word, with a word that is cut off, and with characters of many bytes.
SENTENCES = [
    ["Anna"],
    ["a", "b" * 60, "Zürich", "."],
    ["😀", "does", "not", "sleep", "!", "?", "a", "a"],
]


def _inputs(sentences, before=0, behind=3):
    """Returns padded rows, and the index of each word's first token."""
    template, tokenizer = VOCABULARY.template, VOCABULARY.tokenizer()
    rows = [
        template.row(
            tokenizer.convert_tokens_to_ids(tokenizer.tokenize(" ".join(x)))
        )[0]
        for x in sentences
    ]
    length = before + max(map(len, rows)) + behind
    ids = np.full([len(rows), length], VOCABULARY.special.pad.id, np.int32)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, before : before + len(row)] = row
        mask[i, before : before + len(row)] = 1
    return {"input_ids": ids, "input_mask": mask}


def _open(folder, options=small.OPTIONS, found=None):
    source = formats.open_checkpoint(str(small.write(folder, options, found)))
    assert source.config is not None
    model = families.make(source.config)
    restoring.restore_weights(model.variables, source)
    return model


def _weights(found, requires_grad=False):
    return {
        name: torch.tensor(x.astype(float), requires_grad=requires_grad)
        for name, x in found.items()
    }


def _changed(options, path, value):
    options = copy.deepcopy(options)
    part = options
    *keys, last = path.split("/")
    for key in keys:
        part = part[key]
    part[last] = value
    return options


@pytest.fixture(scope="module", name="model")
def _model(tmp_path_factory):
    return _open(tmp_path_factory.mktemp("elmo") / "released")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("lstm/n_layers", 2),
        pytest.param("lstm/use_skip_connections", False),
        pytest.param("lstm/cell_clip", None),
        pytest.param("char_cnn/activation", "tanh"),
        # The number in training, without padding of rows.
        pytest.param("char_cnn/n_characters", 261),
    ],
)
def test_layers_and_mixture(tmp_path, path, value):
    options = _changed(small.OPTIONS, path, value)
    found = small.tensors(options)
    model = _open(tmp_path, options, found)
    shares, gamma = np.array([0.2, -1.0, 0.7]), 1.7
    model.mixture.own_weights.assign(shares)
    model.mixture.own_gamma.assign([gamma])
    inputs = _inputs(SENTENCES, before=2)
    outputs = model(inputs)
    shares = np.exp(shares) / np.exp(shares).sum()
    for i, sentence in enumerate(SENTENCES):
        expected = [
            x.numpy() for x in small.layers(_weights(found), sentence, options)
        ]
        expected.append(gamma * np.tensordot(shares, expected, 1))
        ids, mask = inputs["input_ids"][i], inputs["input_mask"][i]
        number = np.cumsum(ids == elmo_characters.WORD) - 1
        for layer, wanted in zip(outputs.layers, expected, strict=True):
            np.testing.assert_allclose(
                layer[i].numpy()[mask > 0],
                wanted[number[mask > 0]],
                rtol=1e-6,
                atol=2e-6,
            )
        dense = {v.name: v.numpy() for v in model.pooler.variables}
        wanted = expected[-1][1:-1].mean(0) @ dense["kernel"] + dense["bias"]
        np.testing.assert_allclose(
            outputs.pooled[i], np.tanh(wanted), rtol=2e-6, atol=2e-6
        )
    np.testing.assert_array_equal(outputs.layers[-1], outputs.sequence)
    np.testing.assert_array_equal(outputs.layers[0], outputs.embeddings)
    places = np.array([[2, 5], [3, 7], [2, 2]], np.int32)
    read = model(inputs, positions=places).sequence
    np.testing.assert_array_equal(
        read, np.take_along_axis(outputs.sequence.numpy(), places[..., None], 1)
    )


@pytest.mark.slow
def test_gradients(model):
    found = small.tensors()
    weights = _weights(found, requires_grad=True)
    inputs, layer = _inputs(SENTENCES), -2  # The last of the LSTMs.
    factors = np.random.default_rng(1).normal(0, 1, [3, 12, 12])
    first = (inputs["input_ids"] == elmo_characters.WORD).astype(np.float32)
    with tf.GradientTape() as tape:
        y = model(inputs).layers[layer]  # [B, S, D]
        number = np.cumsum(first, axis=1).astype(int) - 1
        own = np.take_along_axis(factors, number[..., None], 1)
        loss = tf.reduce_sum(y * own * first[..., None])
    variables = [v for v in model.variables if "lstm" in v.path]
    variables += model.embeddings.variables
    gradients = tape.gradient(loss, [v.value for v in variables])
    total = torch.zeros([], dtype=torch.float64)
    clipped = []
    for row, sentence in zip(factors, SENTENCES, strict=True):
        y = small.layers(weights, sentence)
        total = total + (y[2] * torch.tensor(row)[: len(y[2])]).sum()
        clipped.append((y[1].abs() > 0.8 - 1e-9).numpy())
    # Outputs on both sides of the limit.
    assert 0 < np.concatenate(clipped).mean() < 1
    assert float(loss) == pytest.approx(total.item(), rel=1e-5)
    total.backward()
    theirs = {name: x.grad.numpy() for name, x in weights.items()}
    for variable, gradient in zip(variables, gradients, strict=True):
        wanted = _ours(variable.path, theirs)
        size = np.abs(wanted).max()
        np.testing.assert_allclose(
            tf.convert_to_tensor(gradient),
            wanted,
            atol=1e-5 * size,
            err_msg=variable.path,
        )


def _ours(path, theirs):
    """Returns tensors of the file in the form of our variable."""
    *_, layer, way, leaf = path.split("/")
    if "lstm" in path:
        kind = {"kernel": "W_0", "bias": "B", "projection": "W_P_0"}[leaf]
        number = ("forward", "backward").index(way)
        cell = f"Cell{layer.removeprefix('layer_')}/LSTMCell"
        return theirs[f"RNN_{number}/RNN/MultiRNNCell/{cell}/{kind}"]
    if leaf == "word_embeddings":
        return theirs["char_embed"]
    start, kind = leaf.split("_")
    letter = {"kernel": "W", "bias": "b"}[kind]
    if start == "projection":
        return theirs[f"CNN_proj/{letter}_proj"]
    if start in ("carry", "transform"):
        return np.stack(
            [theirs[f"CNN_high_{i}/{letter}_{start}"] for i in range(2)]
        )
    count = len(small.OPTIONS["char_cnn"]["filters"])
    filters = [theirs[f"CNN/{letter}_cnn_{i}"] for i in range(count)]
    if kind == "bias":
        return np.concatenate(filters)
    # [1, width, E, n] each: a row of all values for each number of a character.
    return np.stack(
        [
            np.concatenate([x[0, :, i].ravel() for x in filters])
            for i in range(filters[0].shape[2])
        ]
    )


def test_a_window_inside_a_word_and_an_empty_row(model):
    """Continued words are words, and rows of padding have no numbers."""
    whole = _inputs([["Anna", "sleeps"]], behind=0)["input_ids"]
    cut = whole[:, 4:]  # Behind <w> <S> <w> A.
    words = elmo.group(cut, np.ones_like(cut), length=8)
    np.testing.assert_array_equal(
        words.characters[0],
        [
            [*map(ord, "nna"), 259, 260, 260, 260, 260],
            [258, *map(ord, "sleeps"), 259],
            [258, 257, 259, 260, 260, 260, 260, 260],
        ],
    )
    np.testing.assert_array_equal(
        words.of_tokens, [[0] * 3 + [1] * 7 + [2] * 2]
    )
    empty = {"input_ids": whole, "input_mask": 0 * whole}
    outputs = model(empty)
    bias = model.pooler.dense.bias.numpy()
    np.testing.assert_array_equal(outputs.pooled[0], np.tanh(bias))


@pytest.mark.slow
def test_layers_are_normalized_on_demand(tmp_path):
    found, plain = small.tensors(), _open(tmp_path / "plain")
    own = _open(tmp_path / "own", small.OPTIONS | {"mixture_norm": True}, found)
    inputs = _inputs(SENTENCES)
    *layers, mixed = own(inputs).layers
    np.testing.assert_array_equal(layers[1], plain(inputs).layers[1])
    layers = [x.numpy().astype(float) for x in layers]
    units = [
        (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
        for x in layers
    ]
    is_token = inputs["input_mask"] > 0
    np.testing.assert_allclose(
        mixed.numpy()[is_token], np.mean(units, 0)[is_token], atol=1e-5
    )


def test_padding_is_normalized_in_float16():
    config = elmo_config.ElmoConfig(mixture_norm=True)
    with layers.of_policy(keras.DTypePolicy("mixed_float16")):
        mixture = elmo.Mixture(config)
    mixture.build()
    x = np.random.default_rng(1).normal(size=[2, 3, 8]).astype(np.float16)
    x[:, 2] = 0
    found = mixture([tf.constant(x)] * (1 + config.num_hidden_layers))
    exact = x.astype(float)
    units = exact - exact.mean(-1, keepdims=True)
    units /= np.maximum(exact.std(-1, keepdims=True), 1e-6)
    np.testing.assert_allclose(found, units, atol=1e-2)


@pytest.mark.slow
def test_compiled_steps_with_batches_of_several_lengths(model):
    inputs = _inputs([["a", "bc"], ["Anna"]])
    tensors = {name: tf.constant(x) for name, x in inputs.items()}
    is_token = tf.cast(tensors["input_mask"] > 0, tf.float32)

    def step(x):
        with tf.GradientTape() as tape:
            found = model(x).layers[-1] * tf.expand_dims(is_token, 2)
            total = tf.reduce_sum(tf.square(found))
        variables = model.encoder.trainable_variables
        return [found, *tape.gradient(total, [x.value for x in variables])]

    specs = {n: tf.TensorSpec([2, None], x.dtype) for n, x in tensors.items()}
    whole: Any = compiled.whole(step)
    compiled_step = whole.get_concrete_function(specs)
    found, expected = compiled_step(tensors), step(tensors)
    for one, other in zip(found, expected, strict=True):
        scale = max(np.abs(other).max(), 0.1)
        np.testing.assert_allclose(one, other, atol=1e-5 * scale, rtol=0)


def test_variables_and_rates(model):
    row = families.find(model.config)
    shapes = names.shapes(model.config, "encoder")
    assert {v.path: tuple(v.shape) for v in model.variables} == shapes
    rates = {name: row.depth(name, model.config) for name in shapes}
    assert rates["elmo/mixture/gamma"] == 0
    assert rates["elmo/lstm/layer_1/backward/projection"] == 1
    assert rates["elmo/embeddings/carry_kernel"] == 3


# ---- The vocabulary ----------------------------------------------------------

TEXTS = [
    "Anna sleeps.",
    " two\u00a0 Zürich\t😀\x1f e\u0301 ",
    "",
    "\n \u2003",
    "a",
]


def test_tokenizers_agree():
    tokenizer = VOCABULARY.tokenizer()
    expected = [tokenizer.tokenize_with_offsets(x) for x in TEXTS]
    for text, tokens in zip(TEXTS, expected, strict=True):
        ids = tokenizer.convert_tokens_to_ids([x.text for x in tokens])
        words = bytes(32 if i == elmo_characters.WORD else i for i in ids)
        assert words.decode().split(" ")[1:] == text.split()
        for token in tokens:
            char = text[token.start : token.end]
            index = elmo_characters.TOKENS.index(token.text)
            mark = index == elmo_characters.WORD
            assert mark or index in char.encode()
    wanted = [[VOCABULARY.ids[x.text] for x in row] for row in expected]
    for module in (text_graph, graph_offsets):
        made = module.make_tokenizer(VOCABULARY)
        assert made.tokenize(tf.constant(TEXTS)).to_list() == wanted
    pieces = made.tokenize_with_offsets(tf.constant(TEXTS))
    flat = [x for row in expected for x in row]
    assert pieces.starts.numpy().tolist() == [x.start for x in flat]
    assert pieces.ends.numpy().tolist() == [x.end for x in flat]
    assert made.tokenize(tf.constant([], tf.string)).to_list() == []
    joined, counts = VOCABULARY.bulk_tokenizer().tokenize(TEXTS)
    assert joined.tolist() == [x for row in wanted for x in row]
    assert counts.tolist() == [len(x) for x in wanted]


def test_the_vocabulary_is_one_of_a_kind(tmp_path):
    path = tmp_path / elmo_characters.FILE
    path.write_bytes(elmo_characters.CONTENTS[elmo_characters.FILE])
    files = vocabularies.open_files(path)
    assert vocabularies.read(files, True, "x") == VOCABULARY
    path.write_text("a\nb\n")
    with pytest.raises(errors.InputError, match="always the same 261 lines"):
        vocabularies.open(path, do_lower_case=True)


# ---- Bad files ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("lstm", [], "`lstm` must be an object with the keys dim, n_layers, "),
        ("lstm/n_layer", 2, "`lstm` must be an object with the keys"),
        ("char_cnn/embedding", {}, "`embedding_size` must be a positive int"),
        ("char_cnn/filters", [[1, 3, 2]], "`filters` of an ELMo must be pairs"),
        ("char_cnn/filters", [[51, 30]], "with widths up to `max_characters`"),
        ("char_cnn/filters", [[1, 6]], "that is more than half of `hidden_si"),
        ("char_cnn/n_characters", 300, "`vocab_size` of an ELMo must be 261."),
        ("char_cnn/n_highway", 10**9, "`num_highways` of an ELMo must be less"),
        ("char_cnn/activation", "gelu", "must be relu or tanh. Received: hid"),
        ("lstm/projection_dim", 9, "its half less than `cell_size`. Received"),
        ("lstm/projection_dim", "6", "`hidden_size` must be a positive integ"),
        ("lstm/cell_clip", -1, "`cell_clip` of an ELMo must be a positive nu"),
        ("lstm/use_skip_connections", 1, "must be true or false. Received: s"),
        ("bidirectional", False, "`bidirectional` must be True. Received: bi"),
        ("unknown", 1, "unknown keys: unknown"),
    ],
)
def test_bad_options(path, value, problem):
    options = _changed(small.OPTIONS, path, value)
    with pytest.raises(errors.InputError, match=problem) as found:
        elmo_config.ElmoConfig.from_dict(options)
    assert "\n" not in str(found.value)


def _cell(name):
    return f"RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell/{name}"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({_cell("B"): None}, f"{_cell('B')} is not there. Copy both"),
        ({"CNN": None}, "CNN/W_cnn_0 is not there; CNN/"),
        (
            {_cell("W_0"): np.zeros([12, 20])},
            r"W_0 is \[12, 20\] and must be \[12, 36\]\. Copy both",
        ),
        ({"char_embed": np.zeros([261, 4], int)}, "char_embed holds int64"),
        (
            {_cell("B").replace("Cell1", "Cell2"): np.zeros(36)},
            "Cell2/LSTMCell/B is one too many",
        ),
        (
            {"char_embed": h5py.ExternalLink("other.hdf5", "char_embed")},
            "char_embed is in another file",
        ),
    ],
)
def test_bad_weights(tmp_path, change, problem):
    small.write(tmp_path)
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["char_embed"] = np.zeros([261, 4])
    with h5py.File(tmp_path / "weights.hdf5", "a") as file:
        for name, value in change.items():
            if name in file:
                del file[name]
            if value is not None:
                file[name] = value
    with pytest.raises(errors.InputError, match=problem) as found:
        formats.open_checkpoint(str(tmp_path))
    assert "\n" not in str(found.value)


def test_a_remote_folder(tmp_path):
    remote = "ram://bucket/elmo"
    local = formats.open_checkpoint(str(small.write(tmp_path)))
    tf.io.gfile.makedirs(remote)
    for file in tmp_path.iterdir():
        tf.io.gfile.copy(str(file), f"{remote}/{file.name}", overwrite=True)
    found = formats.open_checkpoint(remote)
    assert found.shapes == local.shapes
    for name, value in local.read(list(local.shapes)).items():
        np.testing.assert_array_equal(found.read([name])[name], value)


def test_bad_folders(tmp_path):
    def refused(problem):
        with pytest.raises(errors.InputError, match=problem) as found:
            formats.open_checkpoint(str(tmp_path))
        assert "\n" not in str(found.value)

    small.write(tmp_path)
    whole = (tmp_path / "weights.hdf5").read_bytes()
    (tmp_path / "weights.hdf5").write_bytes(whole[:2000])
    refused("weights.hdf5 can't be read, it is truncated or no HDF5 file")
    options = tmp_path / "options.json"
    options.write_text(json.dumps({"vocab_size": 261}))
    refused("does not describe the weights next to it, weights.hdf5, which a")
    options.unlink()
    refused("has weights.hdf5 but no options.json, which says what it is")
