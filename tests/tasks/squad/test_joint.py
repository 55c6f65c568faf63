"""The joint head for answers, against the original's formulas in NumPy.

These are those of create_v2_model in google-research/albert, squad_utils.py.
"""

import dataclasses

import bert_tf
from bert_tf import compiled, joint_answers, modeling
from bert_tf.checkpoints import names
from bert_tf.encoders import families, roberta
from bert_tf.tasks.squad import (
    squad_joint,
    squad_joint_export,
    squad_options,
    squad_questions,
    squad_windows,
)
from bert_tf.text import graph_windows
from tests import interop_samples as samples
from tests import tiny_model
from tests.tasks.squad import test_saved_model as independent
from tests.vocabularies import byte_pair_samples

import numpy as np
import pytest
import tensorflow as tf

CONFIG, VOCABULARY = independent.CONFIG, independent.VOCABULARY
LAYOUT = independent.LAYOUT
SEARCH = squad_options.JointSearch(5, 3, True, start_n_top=3, end_n_top=2)


@pytest.fixture(scope="module", name="model")
def _model():
    made = joint_answers.BertJointSpanFinder(modeling.Bert(CONFIG), 3, 2)
    samples.randomize(made.variables)
    return made


def _batch():
    """Two rows: [CLS] question [SEP] context [SEP], and padding."""
    mask = np.array([[1] * 9, [1] * 7 + [0] * 2], np.int32)
    segments = np.array([[0] * 4 + [1] * 5, [0] * 3 + [1] * 4 + [0] * 2])
    ids = np.random.default_rng(0).integers(5, len(independent.VOCAB), [2, 9])
    return {
        "input_ids": (ids * mask).astype(np.int32),
        "input_mask": mask,
        "segment_ids": segments.astype(np.int32),
    }


def _log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


class _Original:
    """Scores of one row, from the encoder's vectors [S, D].

    `may_be` [S] is 1 where answers may be, if token types do not show it. The
    token at `first` represents the row, and means no answer.
    """

    def __init__(self, model, batch, row, vectors=None, may_be=None, first=0):
        if vectors is None:
            vectors = model.bert(batch).sequence.numpy()[row]
        self.x = np.asarray(vectors, np.float64)
        self.w = {v.path: np.float64(v.numpy()) for v in model.variables}
        allowed = batch["segment_ids"][row] * batch["input_mask"][row]
        allowed = allowed if may_be is None else may_be
        allowed[first] = 1
        self.first = first
        self.masked = 1.0 - allowed
        logits = self._dense(self.x, "start_logits/dense")[:, 0]
        self.starts = self._mask(logits)

    def _dense(self, x, name):
        bias = self.w.get(f"{name}/bias", 0.0)
        return x @ self.w[f"{name}/kernel"] + bias

    def _mask(self, logits):
        return logits * (1 - self.masked) - 1e30 * self.masked

    def ends(self, start):
        """Logits [S] of ends, given the start."""
        state = np.tile(self.x[start], [len(self.x), 1])
        hidden = np.concatenate([self.x, state], -1)
        hidden = np.tanh(self._dense(hidden, "end_logits/dense_0"))
        mean = hidden.mean(-1, keepdims=True)
        normal = (hidden - mean) / np.sqrt(
            hidden.var(-1, keepdims=True) + 1e-12
        )
        normal = normal * self.w["end_logits/LayerNorm/gamma"]
        normal += self.w["end_logits/LayerNorm/beta"]
        return self._mask(self._dense(normal, "end_logits/dense_1")[:, 0])

    def no_answer(self):
        start = np.exp(_log_softmax(self.starts)) @ self.x
        hidden = np.concatenate([start, self.x[self.first]])
        hidden = np.tanh(self._dense(hidden, "answer_class/dense_0"))
        return self._dense(hidden, "answer_class/dense_1")[0]


def test_names_are_alberts(model):
    expected = names.shapes(CONFIG, "joint_span")
    assert {v.path: tuple(v.shape) for v in model.variables} == expected
    assert names.find_head(expected, "x") == "joint_span"
    assert "answer_class/dense_1/bias" not in expected


def test_scores_given_the_start(model):
    batch = _batch()
    starts = [5, 4]
    found = model(batch | {"start_positions": np.array(starts)})
    for row, start in enumerate(starts):
        original = _Original(model, batch, row)
        inside = original.masked == 0
        for ours, theirs in (
            (found.starts, original.starts),
            (found.ends, original.ends(start)),
        ):
            ours = ours[row].numpy()
            np.testing.assert_allclose(ours[inside], theirs[inside], atol=1e-5)
            assert (ours[~inside] < -1e29).all()
        assert float(found.no_answer[row]) == pytest.approx(
            original.no_answer(), abs=1e-5
        )


def _check_beams(found, row, original):
    starts = _log_softmax(original.starts)
    order = np.argsort(-starts)[:3]
    assert found.starts[row].numpy().tolist() == order.tolist()
    np.testing.assert_allclose(
        found.start_scores[row], starts[order], atol=1e-5
    )
    for number, start in enumerate(order):
        ends = _log_softmax(original.ends(start))
        best = np.argsort(-ends)[:2]
        assert found.ends[row, number].numpy().tolist() == best.tolist()
        np.testing.assert_allclose(
            found.end_scores[row, number], ends[best], atol=1e-5
        )
    assert float(found.no_answer[row]) == pytest.approx(
        original.no_answer(), abs=1e-5
    )


@pytest.mark.parametrize("architecture", ["RobertaModel", "DistilBertModel"])
def test_encoders_without_token_types(tmp_path, architecture):
    """From vectors of transformers.

    Rows of a RoBERTa have the same type in question and context, so all tokens
    may be answers. Those of a DistilBERT, whose vocabulary is BERT's, have two
    types, which the encoder does not read.
    """
    from tests import huggingface_models as hf

    theirs = hf.make(architecture)
    encoder = bert_tf.Bert.from_checkpoint(hf.save(theirs, tmp_path))
    model = joint_answers.BertJointSpanFinder(encoder, 3, 2)
    for part in (model.start_logits, model.end_logits, model.answer_class):
        samples.randomize(part.variables)
    batch, mask = _batch(), _batch()["input_mask"]
    if architecture == "RobertaModel":
        batch["segment_ids"] *= 0
        batch["input_ids"] = np.where(mask, batch["input_ids"], 1)
    found = model(batch)
    for row, count in enumerate(mask.sum(1)):
        own = {name: x[row : row + 1, :count] for name, x in batch.items()}
        vectors = np.zeros([mask.shape[1], encoder.config.hidden_size])
        vectors[:count] = hf.their_logits(theirs, own)[0][0]
        may_be = None if batch["segment_ids"].any() else mask[row].copy()
        _check_beams(found, row, _Original(model, batch, row, vectors, may_be))


# By family, p_mask of the original in the two rows of `_batch`, 1 where no
# answer may be, and cls_index: google-research/albert, squad_utils.py, and
# zihangdai/xlnet, run_squad.py.
_ORIGINALS = {
    "albert": (["011100001", "011000111"], [0, 0]),
    "xlnet": (["111100010", "111001011"], [8, 6]),
    "electra": (["011100000", "011000011"], [0, 0]),
}


@pytest.mark.parametrize("name", _ORIGINALS)
def test_masks_of_the_originals(name):
    config = families.FAMILIES[name].config(
        100,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
    )
    encoder = families.make(config)
    model = joint_answers.BertJointSpanFinder(encoder, 3, 2)
    samples.randomize(model.variables)
    batch = _batch()
    vectors = encoder(batch).sequence.numpy()
    found = model(batch)
    starts = np.array([0, 4])
    tensors = {k: tf.constant(v) for k, v in batch.items()} | {
        "start_positions": tf.constant(starts),
        "end_positions": tf.constant(starts),
        "row_weights": tf.ones([2]),
    }
    scores = model(tensors)
    sums = squad_joint.OBJECTIVE.sums(model, tensors, None)["span"]
    total = 0.0
    for row, (p_mask, first) in enumerate(zip(*_ORIGINALS[name], strict=True)):
        may_be = 1 - np.array([*map(int, p_mask)])
        original = _Original(model, batch, row, vectors[row], may_be, first)
        _check_beams(found, row, original)
        start = starts[row] or first
        logits = original.ends(start)
        inside = may_be == 1
        np.testing.assert_allclose(
            scores.ends[row][inside], logits[inside], atol=1e-5
        )
        total -= _log_softmax(original.starts)[start] / 2
        total -= _log_softmax(logits)[start] / 2
        sign = 1 if starts[row] else -1
        total += np.log1p(np.exp(sign * original.no_answer())) / 2
    assert float(sums["loss"]) == pytest.approx(total, abs=1e-4)


def test_the_loss(model):
    """Half of the two cross entropies, and half of that of the answer."""
    starts, ends = np.array([5, 0]), np.array([7, 0])
    rows = np.array([1.0, 1.0], np.float32)
    batch = _batch() | {
        "start_positions": starts,
        "end_positions": ends,
        "row_weights": rows,
    }
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    sums = squad_joint.OBJECTIVE.sums(model, tensors, None)["span"]
    total = 0.0
    for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
        original = _Original(model, _batch(), row)
        total -= _log_softmax(original.starts)[start] / 2
        total -= _log_softmax(original.ends(start))[end] / 2
        logit, label = original.no_answer(), float(start == 0)
        entropy = np.log1p(np.exp(-abs(logit))) + max(logit, 0) - logit * label
        total += entropy / 2
    assert float(sums["loss"]) == pytest.approx(total, abs=1e-4)
    weight = squad_joint.OBJECTIVE.weights(tensors)["span"]
    assert weight == 2
    assert set(sums) == {
        *("loss", "start_accuracy", "end_accuracy", "no_answer_accuracy")
    }


@pytest.mark.slow
def test_compiled_steps_have_the_same_gradients(model):
    batch = _batch() | {
        "start_positions": np.array([5, 0]),
        "end_positions": np.array([7, 0]),
        "row_weights": np.array([1.0, 1.0], np.float32),
    }

    def gradients():
        tensors = {name: tf.constant(value) for name, value in batch.items()}
        with tf.GradientTape() as tape:
            loss = squad_joint.OBJECTIVE.sums(model, tensors, None)["span"]
        variables = [v.value for v in model.trained_variables]
        found = tape.gradient(loss["loss"], variables)
        return [tf.convert_to_tensor(x) for x in found]

    expected = gradients()
    for own in (compiled.whole(gradients), compiled.marked(gradients, "TPU")):
        for one, other in zip(own(), expected, strict=True):
            scale = max(np.abs(other).max(), 0.1)
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * scale)


# ---- Answers ----------------------------------------------------------------


_ROBERTA = byte_pair_samples.vocabulary(300)


@pytest.fixture(scope="module", params=["bert", "roberta"])
def texts(request, model):
    """Returns a model, its config and its vocabulary."""
    if request.param == "bert":
        return model, CONFIG, VOCABULARY
    changes = {"vocab_size": len(_ROBERTA.pieces), "type_vocab_size": 1}
    config = roberta.RobertaConfig(**dataclasses.asdict(CONFIG) | changes)
    made = joint_answers.BertJointSpanFinder(families.make(config), 3, 2)
    samples.randomize(made.variables)
    return made, config, _ROBERTA


def _windows(vocabulary, question, context):
    cutter = squad_windows.Cutter(vocabulary, LAYOUT)
    windows = cutter.cut(squad_questions.Question("q", question, context))
    return windows, cutter.features(windows)


def _answer(model, vocabulary, question, context):
    windows, features = _windows(vocabulary, question, context)
    found = squad_joint.padded(
        model({k: tf.constant(v) for k, v in features.items()}), SEARCH
    )
    return squad_joint.find(
        windows, {k: x.numpy() for k, x in found.items()}, SEARCH
    )


def test_answers_are_the_best_of_all_windows(texts):
    """By every start and end of every window, as the original's search."""
    model, _, vocabulary = texts
    for question, context in independent.PAIRS[:3]:
        windows, features = _windows(vocabulary, question, context)
        outputs = model(features)
        candidates = []
        most = windows.has_most_context()
        for row, (offset, length) in enumerate(windows.spans):
            for i in range(3):
                start = int(outputs.starts[row, i]) - windows.head
                for j in range(2):
                    end = int(outputs.ends[row, i, j]) - windows.head
                    if not 0 <= start <= end < length or end - start >= 3:
                        continue
                    if most[row][start]:
                        score = outputs.start_scores[row, i]
                        score += outputs.end_scores[row, i, j]
                        span = (start + offset, end + offset)
                        candidates.append((float(score), span))
        answer = _answer(model, vocabulary, question, context)
        null = float(outputs.no_answer.numpy().min())
        assert answer.null_odds == answer.null_score == pytest.approx(null)
        if candidates:
            score, span = max(candidates)
            assert answer.text == windows.text(*span)
            assert answer.score == pytest.approx(score, abs=1e-5)
            assert answer.n_best[0]["text"] == answer.text
        else:
            assert (answer.text, answer.score) == ("", answer.null_score)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("texts", "has_threshold"),
    [("bert", True), ("roberta", False)],
    indirect=["texts"],
)
def test_exported(texts, has_threshold, monkeypatch):
    model, config, vocabulary = texts
    if has_threshold:
        # Two windows fit at a time.
        of_row = SEARCH.start_n_top * LAYOUT.max_seq_length * config.hidden_size
        monkeypatch.setattr(graph_windows, "MOST_NUMBERS", 2 * of_row)
    pairs = independent.PAIRS[:10]
    answers = [_answer(model, vocabulary, *pair) for pair in pairs]
    odds = sorted(answer.null_odds for answer in answers)
    threshold = (odds[4] + odds[-1]) / 2 if has_threshold else None
    made = squad_joint_export.joint_span_finder(
        model, config, vocabulary, LAYOUT, SEARCH, threshold
    )
    serve = made.signatures["serving_default"]
    # The two differ in few operations: one is traced.
    with tiny_model.untraced(not has_threshold):
        found = serve(*map(tf.constant, zip(*pairs, strict=True)))
    nothing = 0
    for row, answer in enumerate(answers):
        text, start, end = answer.text, answer.start, answer.end
        if threshold is not None and answer.null_odds > threshold:
            text, start, end = "", 0, 0
            nothing += 1
        assert found["answer"][row].numpy().decode() == text
        assert (found["start"][row], found["end"][row]) == (start, end)
        for name in ("score", "null_score"):
            expected = getattr(answer, name)
            assert float(found[name][row]) == pytest.approx(expected, abs=1e-4)
    assert (0 < nothing < len(pairs)) == has_threshold
    ids = {k: tf.constant(v) for k, v in _batch().items()}
    if config.type_vocab_size == 1:
        ids["segment_ids"] *= 0
    beams = made.signatures["serve_ids"](**ids)
    np.testing.assert_array_equal(beams["starts"], model(ids).starts)
