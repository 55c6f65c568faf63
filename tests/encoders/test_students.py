"""TextCNN and BiLSTM, compared with PyTorch layers with the same weights."""

import dataclasses
import json

from bert_tf import heads
from bert_tf.contrib import bilstm, textcnn
from bert_tf.encoders import families
from bert_tf.errors import InputError
from tests import reference

import keras
import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
torch_lstm = pytest.importorskip("tests.torch_lstm")
_TEXTCNN = textcnn.TextCnnConfig(
    vocab_size=20, embedding_size=5, hidden_size=8, filter_widths=(2, 4)
)
_BILSTM = bilstm.BiLstmConfig(vocab_size=20, embedding_size=5, hidden_size=6)
_CONFIGS = {"textcnn": _TEXTCNN, "bilstm": _BILSTM}
# One is shorter than the widest filter, one fills its row, one is empty.
_LENGTHS = (7, 1, 3, 9, 0, 2)
_TOLERANCE = 1e-5


@pytest.fixture(params=list(_CONFIGS))
def config(request):
    return _CONFIGS[request.param]


@pytest.fixture
def model(config):
    """Returns an encoder whose biases are not zero either."""
    keras.utils.set_random_seed(3)
    model = families.make(config)
    for variable in model.variables:
        variable.assign(np.random.default_rng(1).normal(size=variable.shape))
    return model


def _batch(after=0):
    """Returns rows of tokens, with padding that has separate ids."""
    rng = np.random.default_rng(0)
    S = max(_LENGTHS) + after
    ids, mask = (np.zeros([len(_LENGTHS), S], np.int32) for _ in range(2))
    for row, length in enumerate(_LENGTHS):
        ids[row, :length] = rng.integers(1, 20, length)
        mask[row, :length] = 1
    filling = np.random.default_rng(9).integers(0, 20, ids.shape)
    ids = np.where(mask, ids, filling).astype(np.int32)
    return {"input_ids": ids, "input_mask": mask}


def _alone(batch, row):
    """Returns the tokens of a row, without padding: [1, S]."""
    is_token = batch["input_mask"][row] > 0
    return {name: x[row, is_token][np.newaxis] for name, x in batch.items()}


# ---- PyTorch ----------------------------------------------------------------


class _Theirs:
    """The same model made of PyTorch layers, in float64."""

    def __init__(self, model):
        self.config = model.config
        self.weights = {
            name.partition("/")[2]: value
            for name, value in torch_lstm.weights_of(model).items()
        }

    def pooled(self, ids):
        """Returns [D] for the tokens of a row."""
        words = self.weights["embeddings/word_embeddings"][torch.tensor(ids)]
        if isinstance(self.config, textcnn.TextCnnConfig):
            return self._largest(words)
        ends = torch_lstm.ends(self.states(words))  # [D]
        kernel = self.weights["pooler/dense/kernel"]
        return torch.relu(ends @ kernel + self.weights["pooler/dense/bias"])

    def _largest(self, words):
        kernel, start, found = self.weights["windows/kernel"], 0, []
        biases = self.weights["windows/bias"].split(self.config.num_filters)
        for width, bias in zip(self.config.filter_widths, biases, strict=True):
            filters = kernel[:, start : start + width].permute(2, 0, 1)
            start += width
            short = max(width - len(words), 0)
            x = torch.nn.functional.pad(words.T[None], (0, short))
            y = torch.nn.functional.conv1d(x, filters, bias)  # [1, F, S]
            found.append(torch.relu(y).amax(dim=2)[0])
        return torch.cat(found)

    def states(self, words):
        """Returns [S, D]."""
        own = torch_lstm.part(self.weights, "lstm/")
        return torch_lstm.states(words, own)


@pytest.mark.slow
def test_outputs_and_gradients_are_those_of_pytorch(model):
    batch = _batch(after=2)
    D = model.config.hidden_size
    factors = np.random.default_rng(2).normal(size=[len(_LENGTHS), D])
    factors[_LENGTHS.index(0)] = 0  # PyTorch accepts no rows without tokens.
    theirs = _Theirs(model)
    total = torch.zeros((), dtype=torch.float64)
    with tf.GradientTape() as tape:
        pooled = model(batch).pooled
        loss = tf.reduce_sum(pooled * factors.astype(np.float32))
    for row, length in enumerate(_LENGTHS):
        if not length:
            continue
        wanted = theirs.pooled(_alone(batch, row)["input_ids"][0])
        np.testing.assert_allclose(
            pooled[row], wanted.detach().numpy(), atol=_TOLERANCE
        )
        total = total + (wanted * torch.tensor(factors[row])).sum()
    total.backward()
    variables = model.trainable_variables
    gradients = tape.gradient(loss, variables)
    reference.assert_same(
        {
            v.path.partition("/")[2]: tf.convert_to_tensor(x)
            for v, x in zip(variables, gradients, strict=True)
        },
        {name: x.grad.numpy() for name, x in theirs.weights.items()},
        _TOLERANCE,
    )


def test_states_of_tokens_are_those_of_pytorch():
    keras.utils.set_random_seed(3)
    model = families.make(_BILSTM)
    theirs, batch = _Theirs(model), _batch(after=1)
    sequence = model(batch).sequence.numpy()
    for row, length in enumerate(_LENGTHS):
        if not length:
            continue
        ids = torch.tensor(batch["input_ids"][row, :length])
        words = theirs.weights["embeddings/word_embeddings"][ids]
        wanted = theirs.states(words).detach().numpy()
        np.testing.assert_allclose(
            sequence[row, :length], wanted, atol=_TOLERANCE
        )
    np.testing.assert_array_equal(sequence[batch["input_mask"] == 0], 0)
    places = np.array([[0, 2]] * len(_LENGTHS), np.int32)
    read = model(batch, positions=places).sequence
    np.testing.assert_array_equal(read, sequence[:, [0, 2]])


# ---- Heads ------------------------------------------------------------------


def test_heads_over_texts(config):
    bert = families.make(config)
    assert heads.BertClassifier(bert, 3)(_batch()).shape == (6, 3)
    choices = {n: x.reshape(2, 3, -1) for n, x in _batch().items()}
    scores = heads.BertMultipleChoice(bert)(choices).numpy()
    assert scores.shape == (2, 3)
    assert scores[1, 1] < -1e8  # A row without tokens is not a choice.


_OF_TOKENS = {
    "tagger": lambda bert: heads.BertTagger(bert, 3),
    "span_finder": heads.BertSpanFinder,
    "masked_lm": heads.BertMaskedLM,
    "pretrainer": heads.BertPretrainer,
}


@pytest.mark.parametrize("name", _OF_TOKENS)
def test_heads_over_tokens(name):
    batch = _batch() | {"masked_lm_positions": np.zeros([6, 2], np.int32)}
    made = _OF_TOKENS[name](families.make(_BILSTM))
    for output in tf.nest.flatten(made(batch)):
        assert np.isfinite(output).all()
    with pytest.raises(InputError) as error:
        _OF_TOKENS[name](families.make(_TEXTCNN))
    assert str(error.value) == (
        "This encoder has a vector for each text, and none for its tokens, "
        f"which the head {name} needs: choose another encoder. "
        "Received: model_type=textcnn"
    )


# ---- Configs ----------------------------------------------------------------


# Encoders without layer norms with their epsilon, without a dense layer before
# the vocabulary product, and without token types.
_UNNORMALIZED = (
    *("textcnn", "esim", "awd_lstm"),
    *("elmo", "bilstm_attention", "bilstm_cove"),
)
_PLAIN = (*_UNNORMALIZED, "openai-gpt", "vaswani", "xlnet")
_WITHOUT_TYPES = (
    *(*_PLAIN, "bilstm", "bilstm_lm"),
    *("distilbert", "bert-generation"),
)


@pytest.mark.parametrize("name", ["textcnn", "esim", "awd_lstm"])
def test_configs_hold_what_is_read(name):
    """Files of older versions hold the defaults of all fields."""
    config = families.FAMILIES[name].config(vocab_size=20)
    values = json.loads(config.to_json())
    assert not values.keys() & {"hidden_act", "layer_norm_eps", "pooler_act"}
    older = dataclasses.asdict(config) | {"model_type": name}
    assert families.from_values(older) == config


@pytest.mark.parametrize(
    "values, line",
    [
        (
            {"model_type": "textcnn", "num_attention_heads": 2},
            "`num_attention_heads` has no effect in this model: leave it out.",
        ),
        *(
            ({"model_type": kind, name: value}, f"`{name}` has no effect in")
            for kinds, name, value in (
                (_UNNORMALIZED[:3], "pooler_act", "relu"),
                ((*_UNNORMALIZED[:3], "bilstm_cove"), "hidden_act", "relu"),
                (_UNNORMALIZED, "layer_norm_eps", 1e-5),
                (_PLAIN, "transform_act", "relu"),
                (_PLAIN, "transform_layer_norm_eps", 1e-5),
                (_WITHOUT_TYPES, "type_vocab_size", 3),
            )
            for kind in kinds
        ),
        (
            {"model_type": "textcnn", "filter_widths": []},
            "`filter_widths` must be a list of numbers of words",
        ),
        (
            {"model_type": "textcnn", "filter_widths": [3, "4"]},
            "Received: filter_widths=[3, '4']",
        ),
        (
            {"model_type": "textcnn", "filter_widths": 3},
            "Received: filter_widths=3",
        ),
        (
            {"model_type": "textcnn", "hidden_size": 100},
            "multiple of how many widths there are. Received: hidden_size=100",
        ),
        (
            {"model_type": "bilstm", "hidden_size": 7},
            "`hidden_size` must be even: each direction has half of it.",
        ),
        (
            {"model_type": "bilstm", "embedding_size": 0},
            "`embedding_size` must be a positive integer.",
        ),
        (
            {"model_type": "bilstm", "filter_widths": [3]},
            "The BERT config has unknown keys: filter_widths.",
        ),
    ],
)
def test_bad_configs(tmp_path, values, line):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"vocab_size": 261} | values))
    with pytest.raises(InputError) as error:
        families.read_config(str(path))
    assert line in str(error.value)
    assert "\n" not in str(error.value)
