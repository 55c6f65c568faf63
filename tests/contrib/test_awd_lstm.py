"""AWD-LSTM computes as fastai's, in PyTorch here, and its files are read."""

import json
import pickle
import types

from bert_tf import heads, vocabularies
from bert_tf.contrib import awd_lstm
from bert_tf.encoders import families, ops
from bert_tf.errors import InputError
from tests import interop_samples as samples
from tests import reference

import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")

V, E, H, D, L, S = 30, 6, 10, 5, 3, 9
CONFIG = awd_lstm.AwdLstmConfig(
    vocab_size=V,
    embedding_size=E,
    lstm_size=H,
    hidden_size=D,
    num_hidden_layers=L,
    max_position_embeddings=20,
    hidden_dropout_prob=0.3,
    embedding_dropout_prob=0.2,
    input_dropout_prob=0.25,
    recurrent_dropout_prob=0.5,
    output_dropout_prob=0.4,
)
LENGTHS = (9, 4, 1, 6, 7)
SEED = [3, 8]
HEADS = {
    "next_piece": "AwdLstmForLanguageModeling",
    "classification": "AwdLstmForSequenceClassification",
}

# ---- fastai 2 in PyTorch -----------------------------------------------------


def _state(head):
    """Returns a random state_dict, float64, with the names of fastai 2."""
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        values = torch.randn(*shape, generator=generator, dtype=torch.float64)
        # The values in the file are float32.
        return values.float().double() / max(shape[-1], 4) ** 0.5

    before = "0.module." if head == "classification" else "0."
    words = normal(V, E)
    state = {f"{before}encoder.weight": words}
    state[f"{before}encoder_dp.emb.weight"] = words
    sizes = [E, H, H, E]
    for i in range(L):
        own, gates = f"{before}rnns.{i}.", 4 * sizes[i + 1]
        state[f"{own}weight_hh_l0_raw"] = normal(gates, sizes[i + 1])
        state[f"{own}module.weight_ih_l0"] = normal(gates, sizes[i])
        for name in ("ih", "hh"):
            state[f"{own}module.bias_{name}_l0"] = normal(gates)
    if head == "next_piece":
        return state | {"1.decoder.weight": words, "1.decoder.bias": normal(V)}
    for i, (size, outputs) in enumerate(((3 * E, D), (D, samples.NUM_LABELS))):
        own = f"1.layers.{i}."
        state[f"{own}0.weight"] = 1 + normal(size) / 2
        state[f"{own}0.bias"] = normal(size)
        state[f"{own}0.running_mean"] = normal(size) / 4
        state[f"{own}0.running_var"] = 0.5 + normal(size) ** 2
        state[f"{own}0.num_batches_tracked"] = torch.tensor(7)
        state[f"{own}2.weight"] = normal(outputs, size)
    return state


def _of_torch(kernel):
    """Returns a mask of our recurrent kernel in PyTorch's order, [4 H, H]."""
    i, f, o, g = np.split(kernel, 4, axis=-1)
    return np.concatenate([i, f, g, o], axis=-1).T


class _Masks:
    """The dropout masks of a seed, or no dropout."""

    def __init__(self, seed, head):
        self.seeds = None
        if seed is not None:
            own = tf.constant(seed)
            self.head = None
            if head == "classification":
                own, self.head = ops.split_seed(own, 2)
            self.seeds = ops.split_seed(own, 4 + 2 * L)

    def __call__(self, seed, rate, *shape):
        if self.seeds is None:
            return torch.ones(1, dtype=torch.float64)
        seed = self.head if seed == "head" else self.seeds[seed]
        found = ops.dropout(tf.ones(shape), rate, seed).numpy()
        if len(shape) == 2 and shape[1] == 4 * shape[0]:
            found = _of_torch(found)
        return torch.tensor(found, dtype=torch.float64)


def _states(state, ids, masks):
    """Returns the states of the last layer of each row, [S, E] each."""
    before = next(iter(state)).removesuffix("encoder.weight")
    B = len(LENGTHS)
    rows = masks(0, CONFIG.embedding_dropout_prob, V, 1)
    words = state[f"{before}encoder.weight"] * rows
    vectors = masks(1, CONFIG.input_dropout_prob, B, 1, E)
    masked = zip(ids, vectors.expand(B, 1, E), strict=True)
    layers = [words[row] * mask for row, mask in masked]
    sizes = [E, H, H, E]
    for i in range(L):
        if i:
            rate = CONFIG.hidden_dropout_prob
            mask = masks(5 + 2 * i, rate, B, 1, H).expand(B, 1, H)
            layers = [x * y for x, y in zip(layers, mask, strict=True)]
        size, own = sizes[i + 1], f"{before}rnns.{i}."
        lstm = torch.nn.LSTM(sizes[i], size, dtype=torch.float64)
        weights = {
            name: state[f"{own}module.{name}"]
            for name in ("weight_ih_l0", "bias_ih_l0", "bias_hh_l0")
        }
        rate = CONFIG.recurrent_dropout_prob
        kept = masks(4 + 2 * i, rate, size, 4 * size)
        weights["weight_hh_l0"] = state[f"{own}weight_hh_l0_raw"] * kept
        layers = [
            torch.func.functional_call(lstm, weights, (x[:, None],))[0][:, 0]
            for x in layers
        ]
    return layers


def _words(state, ids, masks):
    """Returns the logits of words of each row, [S, V] each."""
    states = _states(state, ids, masks)
    B = len(LENGTHS)
    mask = masks(2, CONFIG.output_dropout_prob, B, 1, E).expand(B, 1, E)
    words, bias = state["1.decoder.weight"], state["1.decoder.bias"]
    return [x * y @ words.T + bias for x, y in zip(states, mask, strict=True)]


def _classes(state, ids, masks, learns):
    """Returns logits [B, C]: PoolingLinearClassifier of fastai."""
    x = torch.stack(
        [
            torch.cat([x[-1], x.max(dim=0).values, x.mean(dim=0)])
            for x in _states(state, ids, masks)
        ]
    )
    for i in range(2):
        own = f"1.layers.{i}."
        names = ("running_mean", "running_var", "weight", "bias")
        norm = [state[f"{own}0.{name}"] for name in names]
        x = torch.nn.functional.batch_norm(x, *norm, learns, 0.1, 1e-5)
        rates = CONFIG.output_dropout_prob, CONFIG.classifier_dropout_prob
        x = x * masks((3, "head")[i], rates[i], *x.shape)
        x = x @ state[f"{own}2.weight"].T
        x = x if i else torch.relu(x)
    return x


# ---- Files -------------------------------------------------------------------


def _save(folder, state, head=None, **config):
    """Writes a folder with a state_dict, and returns its path."""
    folder.mkdir(exist_ok=True)
    values = json.loads(CONFIG.to_json()) | config
    if head:
        values["architectures"] = [HEADS[head]]
    (folder / "config.json").write_text(json.dumps(values))
    tensors = {
        name: x.float() if x.is_floating_point() else x
        for name, x in state.items()
    }
    torch.save(tensors, folder / "pytorch_model.bin")
    return str(folder)


def _batch():
    """Returns ids of rows, and a padded batch with other ids at padding."""
    rng = np.random.default_rng(0)
    shape = (len(LENGTHS), S)
    ids = rng.integers(0, V, shape).astype(np.int32)
    mask = np.arange(S) < np.array(LENGTHS)[:, np.newaxis]
    rows = [row[:n] for row, n in zip(ids, LENGTHS, strict=True)]
    return rows, {"input_ids": ids, "input_mask": mask.astype(np.int32)}


def _close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def _gradients(state):
    """Returns the gradients of a state_dict under our names."""
    before = next(iter(state)).removesuffix("encoder.weight")
    grads = {n: x.grad for n, x in state.items() if x.grad is not None}

    def gates(name):
        i, f, g, o = np.split(grads[name].numpy(), 4)
        return np.concatenate([i, f, o, g]).T

    words = "awd_lstm/embeddings/word_embeddings"
    found = {words: grads[f"{before}encoder.weight"].numpy()}
    for i in range(L):
        ours, theirs = f"awd_lstm/lstm/layer_{i}", f"{before}rnns.{i}."
        found[f"{ours}/kernel"] = gates(f"{theirs}module.weight_ih_l0")
        found[f"{ours}/recurrent_kernel"] = gates(f"{theirs}weight_hh_l0_raw")
        found[f"{ours}/bias"] = gates(f"{theirs}module.bias_hh_l0")
    if "1.decoder.bias" in grads:
        return found | {"cls/next_piece/output_bias": grads["1.decoder.bias"]}
    for i in range(2):
        ours, theirs = f"awd_lstm/pooler/batch_norm_{i}", f"1.layers.{i}.0."
        found[f"{ours}/gamma"] = grads[f"{theirs}weight"]
        found[f"{ours}/beta"] = grads[f"{theirs}bias"]
    found["awd_lstm/pooler/dense/kernel"] = grads["1.layers.0.2.weight"].T
    found["output_weights"] = grads["1.layers.1.2.weight"]
    return found


# Of fastai 2, whose dense layers have none.
BIASES = {"awd_lstm/pooler/dense/bias", "output_bias"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [None, SEED], ids=["plain", "dropout"])
@pytest.mark.parametrize("head", HEADS)
def test_logits_and_gradients_are_fastais(tmp_path, head, seed):
    state = _state(head)
    model, found = samples.load(_save(tmp_path / "x", state, head))
    assert found == head
    for value in {id(x): x for x in state.values()}.values():
        if value.is_floating_point():
            value.requires_grad_("running" not in _name(state, value))
    rows, batch = _batch()
    masks, is_token = _Masks(seed, head), batch["input_mask"] > 0
    learns = seed is not None
    with tf.GradientTape() as tape:
        logits = model(batch, tf.constant(seed) if learns else None)
        own = logits[is_token] if head == "next_piece" else logits
        factors = np.random.default_rng(2).normal(size=own.shape)
        loss = tf.reduce_sum(own * factors.astype(np.float32))
    if head == "next_piece":
        expected = torch.cat(_words(state, rows, masks))
    else:
        expected = _classes(state, rows, masks, learns)
    _close(own, expected.detach().numpy())
    (expected * torch.tensor(factors)).sum().backward()
    variables = [v for v in model.trained_variables if v.path not in BIASES]
    gradients = tape.gradient(loss, [v.value for v in variables])
    reference.assert_same(
        {
            v.path: tf.convert_to_tensor(x)
            for v, x in zip(variables, gradients, strict=True)
        },
        _gradients(state),
        1e-5,
    )
    moving = {v.path: v for v in model.variables if "moving" in v.path}
    for i in range(2) if head == "classification" else ():
        for ours, theirs in (("mean", "mean"), ("variance", "var")):
            _close(
                moving[f"awd_lstm/pooler/batch_norm_{i}/moving_{ours}"],
                state[f"1.layers.{i}.0.running_{theirs}"],
            )


def _name(state, value):
    return next(name for name, other in state.items() if other is value)


def test_a_language_model_leaves_moving_statistics_as_they_are():
    model = samples.model("next_piece", CONFIG)
    model(_batch()[1], tf.constant(SEED))
    for variable in model.bert.pooler.variables:
        if "moving" in variable.path:
            assert len({*variable.numpy()}) == 1, variable.path


def test_an_encoder_alone_of_fastai_1(tmp_path):
    state = _state("next_piece")
    encoder = {}
    for name in (x for x in state if x.startswith("0.")):
        encoder[name.removeprefix("0.")] = state[name]
        if name.endswith("_raw"):  # The weights after dropout.
            copy = name.replace("weight_hh_l0_raw", "module.weight_hh_l0")
            encoder[copy.removeprefix("0.")] = 2 * state[name]
    model, head = samples.load(_save(tmp_path / "encoder", encoder))
    assert head == "encoder"
    whole, _ = samples.load(_save(tmp_path / "whole", state))
    rows = [x(_batch()[1]).sequence for x in (model, whole.bert)]
    np.testing.assert_array_equal(*rows)


@pytest.mark.parametrize("places", [(0,), (0, 1)])
def test_a_classifier_of_fastai_without_dropout(tmp_path, places):
    """Its layers are batch normalization and dense, without a number between.

    See LinBnDrop of fastai: only a rate that is not 0 makes a dropout layer.
    """
    state = _state("classification")
    rows, batch = _batch()
    expected = _classes(state, rows, _Masks(None, "classification"), False)
    for i in places:
        own = f"1.layers.{i}."
        state[f"{own}1.weight"] = state.pop(f"{own}2.weight")
    model, _ = samples.load(_save(tmp_path / "x", state, "classification"))
    _close(model(batch), expected.numpy())


@pytest.mark.parametrize(
    ("change", "config", "message"),
    [
        ({}, {"num_hidden_layers": 2}, "num_hidden_layers=2, and there is"),
        ({}, {"lstm_size": 8}, r"kernel is \[6, 40\] there and \[6, 32\] by"),
        ({"1.decoder.weight": 2}, {}, "1.decoder.weight is another tensor"),
    ],
)
def test_other_models_are_an_error(tmp_path, change, config, message):
    state = _state("next_piece")
    state |= {name: factor * state[name] for name, factor in change.items()}
    with pytest.raises(InputError, match=message):
        samples.load(_save(tmp_path / "x", state, **config))


def test_fastai_files_are_not_written(tmp_path):
    source = _save(tmp_path / "x", _state("next_piece"))
    with pytest.raises(InputError, match="and not written for other libraries"):
        samples.convert(source, "hf", str(tmp_path / "theirs"))
    assert not (tmp_path / "theirs").exists()


# ---- Variables, padding, config ----------------------------------------------


@pytest.mark.slow
def test_statistics_of_a_compiled_step():
    pooler = samples.random_model("encoder", CONFIG).pooler
    x = tf.constant(np.random.default_rng(0).normal(size=[4, 3 * E]), "float32")
    moving = [v for v in pooler.variables if "moving" in v.path]
    values = []
    for compiles in (False, True):
        for variable in moving:
            variable.assign(tf.ones_like(variable))
        step = tf.function(
            lambda: pooler(x, None, learns=True),
            autograph=False,
            jit_compile=compiles,
        )
        values.append([step(), *map(tf.convert_to_tensor, moving)])
    for one, other in zip(*values, strict=True):
        _close(one, other)
    assert np.abs(values[0][1] - 1).max() > 0.01


@pytest.mark.slow
def test_several_replicas_are_an_error(monkeypatch):
    context = types.SimpleNamespace(num_replicas_in_sync=2)
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: context)
    model = samples.model("classification", CONFIG)
    with pytest.raises(InputError, match=r"on one device.*2 replicas"):
        model(_batch()[1], tf.constant(SEED))
    # Without statistics of a batch, and where words are predicted.
    model(_batch()[1])
    samples.model("next_piece", CONFIG)(_batch()[1], tf.constant(SEED))


def test_what_it_can_not_read():
    model, inputs = samples.model("classification", CONFIG), _batch()[1]
    one = {name: x[:1] for name, x in inputs.items()}
    with pytest.raises(InputError, match="several examples at a time"):
        model(one, tf.constant(SEED))
    model(one)  # By the moving statistics.
    vectors = tf.zeros([1, 4, CONFIG.embedding_size])
    with pytest.raises(InputError, match="reads `input_ids` only"):
        model({"inputs_embeds": vectors})


def test_bad_config_and_head():
    values = json.loads(CONFIG.to_json())
    with pytest.raises(InputError, match="`input_dropout_prob` must be a"):
        families.from_values(values | {"input_dropout_prob": 1.0})
    with pytest.raises(InputError, match="another one for the head tagger"):
        samples.model("tagging", CONFIG)
    bert = families.make(CONFIG)
    # Heads are known by their class, not by their name.
    heads.BertNextPiece(bert, name="words")
    with pytest.raises(InputError, match="another one for the head next_piece"):
        heads.BertTagger(bert, 2, name="next_piece")
    # Padding of choices would enter the statistics of a batch.
    with pytest.raises(InputError, match="the head multiple_choice"):
        heads.BertMultipleChoice(bert)


# ---- Words -------------------------------------------------------------------

ITOS = ["xxunk", "xxpad", "xxbos", "xxeos", "xxfld", "xxmaj", "the", "film"]
ITOS += ["\n", "good", "xxfake", "xxfake"]


def test_an_itos_is_a_vocabulary_of_symbols(tmp_path):
    for name in ("itos.pkl", "itos_wt103.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(ITOS))
    given = vocabularies.open_files(tmp_path / "itos_wt103.pkl")
    assert vocabularies.find(tmp_path) == given
    (tmp_path / "symbols.txt").write_bytes(given.contents["symbols.txt"])
    found = vocabularies.open(tmp_path / "symbols.txt", True)
    assert found == vocabularies.read(given, True, "x")
    assert found.pieces == (
        *("[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]", "xxmaj", "the", "film"),
        *("xxfake_8", "good", "xxfake_10", "xxfake_11"),
    )
    tokens = found.tokenizer().tokenize("xxmaj the\nfilm was  good xxbos")
    ids = found.tokenizer().convert_tokens_to_ids(tokens)
    assert ids == [5, 6, 7, 0, 9, 0]


class _Code:
    def __reduce__(self):
        return print, ("unpickled",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps(_Code()), r"nothing else is unpickled.*builtins\.print"),
        (pickle.dumps([1, 2]), r"Received: list \[1, 2\]"),
        (pickle.dumps(ITOS)[:-9], "Received: pickle data was truncated"),
        (pickle.dumps(ITOS[1:]), "without xxunk"),
        (pickle.dumps([*ITOS, "film"]), "line 13: this symbol is already on"),
    ],
    ids=["code", "numbers", "truncated", "no_special", "twice"],
)
def test_other_pickles_are_refused(tmp_path, content, message):
    path = tmp_path / "itos.pkl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        vocabularies.open(path, True)
