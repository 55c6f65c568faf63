"""The best weights of a run: which are kept, and the files next to them."""

import contextlib
import itertools
import json
import math

from bert_tf import files, heads, modeling
from bert_tf.checkpoints import best, formats, tf1_files, trained_models
from tests import interop_samples as samples

import numpy as np
import pytest
import tensorflow as tf

_CONFIG = samples.TINY
_FILES = {
    "bert_config.json": _CONFIG.to_json().encode(),
    **samples.vocab_files("abcdefghijk").contents,
}


@pytest.fixture(scope="module", name="model")
def _model():
    return heads.BertClassifier(modeling.Bert(_CONFIG), 2)


def _best(folder, **options):
    return best.Best(str(folder), "f1", _FILES, **options)


def _kept_steps(folder):
    return list(tf1_files.numbered(f"{folder}/best"))


def _offer(kept, model, scores):
    """Offers a score every third step; the weights are equal to the step."""
    for i, score in enumerate(scores, 1):
        model.output_bias.assign([3 * i, 3 * i])
        yield kept.offer(3 * i, {"f1": score, "x": 1}, model)


def test_keeps_the_highest_and_the_earlier(tmp_path, model):
    folder = str(tmp_path)
    assert best.checkpoint(folder) is None
    kept = _best(folder)
    found = list(_offer(kept, model, [0.5, 0.5, 0.7, 0.6]))
    assert found == [True, False, True, False]
    assert _kept_steps(folder) == [9]
    results = json.loads((tmp_path / "best" / "results.json").read_text())
    assert results == {"f1": 0.7, "x": 1, "global_step": 9}
    # A resumed run knows the best of the previous run.
    again = _best(folder)
    assert not again.offer(15, {"f1": 0.7}, model)
    path = trained_models.own_checkpoint(folder, use_best=True)
    assert path and path == best.checkpoint(folder)
    source = formats.open_checkpoint(path)
    assert source.config == _CONFIG
    assert source.vocab == samples.vocab_files("abcdefghijk")
    assert source.shapes == {v.path: tuple(v.shape) for v in model.variables}
    model.output_bias.assign([0, 0])
    assert trained_models.restore(model, source, "classification") == 9
    np.testing.assert_array_equal(model.output_bias, [9, 9])
    again.clear()
    assert not (tmp_path / "best").exists()
    assert again.offer(1, {"f1": 0.0}, model)


def test_counts_what_was_no_better_since(tmp_path, model):
    kept = _best(tmp_path)
    counts = [kept.no_better for _ in _offer(kept, model, [0.5, 0.4, 0.3, 0.6])]
    assert counts == [0, 1, 2, 0]


def test_the_same_step_again_is_the_best_again(tmp_path, model):
    list(_offer(_best(tmp_path), model, [0.5]))
    again = _best(tmp_path)
    # As on a machine with different rounding.
    assert again.offer(3, {"f1": 0.4999}, model)
    assert again.no_better == 0
    assert not again.offer(6, {"f1": 0.4998}, model)


def test_says_on_what_it_was_found(tmp_path, model):
    folder = str(tmp_path)
    assert best.chosen_on(folder) is None
    flags = {"eval_file": "x*", "eval_batch_size": "8"}
    kept = _best(folder, chosen_on=flags)
    assert best.chosen_on(folder) is None
    list(_offer(kept, model, [0.5]))
    assert best.chosen_on(folder) == flags


@pytest.mark.parametrize(
    "scores, better, kept_",
    [
        ([0.5, 0.5, 0.3, 0.4, math.nan], [1, 0, 1, 0, 0], 0.3),
        # Any score is better than NaN.
        ([math.nan, math.nan, 0.5], [1, 0, 1], 0.5),
    ],
)
def test_keeps_the_lowest(tmp_path, model, scores, better, kept_):
    kept = _best(tmp_path, lowest=True)
    assert list(_offer(kept, model, scores)) == list(map(bool, better))
    assert kept.results == {"f1": kept_, "x": 1, "global_step": 9}


@pytest.mark.parametrize(
    "lowest, better", [(False, [1, 1, 0]), (True, [1, 0, 0])]
)
def test_without_scores_the_lower_loss_is_kept(tmp_path, model, lowest, better):
    """Undefined scores are 0.0; ties of other scores keep the earlier."""
    kept = _best(tmp_path, lowest=lowest)
    losses = enumerate([0.9, 0.7, 0.8], 1)
    found = [
        kept.offer(x, {"f1": 0.0, "eval_loss": loss}, model)
        for x, loss in losses
    ]
    assert found == list(map(bool, better))
    if not lowest:
        assert kept.offer(4, {"f1": 0.1, "eval_loss": 2.0}, model)
        assert not kept.offer(5, {"f1": 0.1, "eval_loss": 1.0}, model)


def test_rewound_it_is_compared_with_an_earlier_one(tmp_path, model):
    kept = _best(tmp_path)
    list(_offer(kept, model, [0.3, 0.5, 0.9]))
    again = _best(tmp_path)
    again.rewind(6, 0.5)
    # The files stay until a score is better than at step 6.
    assert list(_offer(again, model, [0.4])) == [False]
    assert _kept_steps(tmp_path) == [9]
    assert list(_offer(again, model, [0.4, 0.6])) == [False, True]
    assert _kept_steps(tmp_path) == [6]
    again.rewind(0, 0.0)
    assert list(_offer(again, model, [0.1])) == [True]


def test_removes_what_a_killed_run_left(tmp_path, model):
    kept = _best(tmp_path)
    assert list(_offer(kept, model, [0.5])) == [True]
    names = ("model.ckpt-6.tmp.data-00000-of-00001", "results.json.tmp")
    left = [tmp_path / "best" / name for name in names]
    for path in left:
        path.write_bytes(b"half")
    _best(tmp_path, write=False)
    assert all(path.exists() for path in left)
    _best(tmp_path)
    assert not any(path.exists() for path in left)
    assert best.checkpoint(str(tmp_path)) is not None


def test_a_worker_that_does_not_write_knows_the_best(tmp_path, model):
    kept = _best(tmp_path, write=False)
    assert list(_offer(kept, model, [0.5, 0.4])) == [True, False]
    assert kept.results == {"f1": 0.5, "x": 1, "global_step": 3}
    assert not list(tmp_path.iterdir())
    # It does not remove what the writing process has kept either.
    _best(tmp_path).offer(3, {"f1": 0.5}, model)
    kept.clear()
    assert best.checkpoint(str(tmp_path))
    assert kept.results is None


# ---- The file `checkpoint`, and kills ---------------------------------------


def _bias(prefix):
    return tf.train.load_checkpoint(prefix).get_tensor("output_bias")[0]


def test_tensorflow_finds_the_best(tmp_path, model):
    kept = _best(tmp_path)
    folder = str(tmp_path / "best")
    assert tf.train.latest_checkpoint(folder) is None
    for i, _ in enumerate(_offer(kept, model, [0.5, 0.4, 0.7]), 1):
        step = {1: 3, 2: 3, 3: 9}[i]
        found = tf.train.latest_checkpoint(folder)
        assert found == f"{folder}/model.ckpt-{step}"
        assert _bias(found) == step
    state = tf.train.get_checkpoint_state(folder)
    assert list(state.all_model_checkpoint_paths) == [found]
    # Folders of earlier versions have no such file.
    (tmp_path / "best" / "checkpoint").unlink()
    _best(tmp_path, write=False)
    assert tf.train.latest_checkpoint(folder) is None
    _best(tmp_path)
    assert tf.train.latest_checkpoint(folder) == found
    kept.clear()
    assert tf.train.latest_checkpoint(folder) is None


def test_the_folder_of_a_run_names_its_best(tmp_path, model, caplog):
    for path, content in _FILES.items():
        (tmp_path / path).write_bytes(content)
    kept = _best(tmp_path)
    for step, is_named in ((3, False), (6, True)):
        kept.offer(step, {"f1": 1 / step}, model)
        tensors = {v.path: tf.convert_to_tensor(v) for v in model.variables}
        prefix = str(tmp_path / f"model.ckpt-{step}")
        tf1_files.write(prefix, {**tensors, "global_step": np.int64(step)})
        tf1_files.write_state(str(tmp_path), [prefix])
        with caplog.at_level("INFO", "absl"):
            for _ in range(2):  # As a training does with --init_checkpoint.
                assert formats.open_checkpoint(tmp_path).path == prefix
        best_one = f"evaluation (model.ckpt-3), pass {tmp_path}/best."
        assert caplog.text.count(best_one) == is_named
    caplog.clear()
    formats.open_checkpoint(tmp_path / "best")
    assert not caplog.text


class _KilledError(BaseException):
    """Simulates a kill: error handlers do not catch it."""


def _calls(monkeypatch, limit):
    """Ends the process before the `limit`-th change of a file."""
    count = 0

    def counted(function):
        def call(*arguments, **options):
            nonlocal count
            count += 1
            if count > limit:
                raise _KilledError
            return function(*arguments, **options)

        return call

    for module, name in (
        (tf1_files, "write"),
        (tf1_files, "write_state"),
        (tf1_files, "remove"),
        (files, "write_text"),
        (tf.io.gfile, "rmtree"),
        (tf.io.gfile, "remove"),
    ):
        monkeypatch.setattr(module, name, counted(getattr(module, name)))
    return lambda: count


def _check_consistent(folder):
    """Checks that the checkpoint our and TensorFlow's files name is whole."""
    prefix = best.checkpoint(str(folder))
    found = tf.train.latest_checkpoint(str(folder / "best"))
    for path in (prefix, found):
        if path is not None:
            step = tf1_files.read(path, ["global_step"])["global_step"]
            assert _bias(path) == step
    return prefix, found


def _better_until_killed(folder, model, patch, limit):
    """Offers a better model; returns whether no kill occurred."""
    kept = _best(folder)
    assert list(_offer(kept, model, [0.5])) == [True]
    count = _calls(patch, limit)
    model.output_bias.assign([6, 6])
    with contextlib.suppress(_KilledError):
        kept.offer(6, {"f1": 0.7}, model)
    return count() <= limit


@pytest.mark.slow
def test_a_kill_leaves_a_consistent_folder(tmp_path, model, monkeypatch):
    seen = set()
    for limit in itertools.count():
        folder = tmp_path / str(limit)
        folder.mkdir()
        with monkeypatch.context() as patch:
            is_whole = _better_until_killed(folder, model, patch, limit)
        seen.add(tuple(prefix[-1] for prefix in _check_consistent(folder)))
        # The run resumes before the evaluation, and repeats it.
        again = _best(folder)
        ours, theirs = _check_consistent(folder)
        assert ours == theirs
        assert again.offer(6, {"f1": 0.7}, model)
        assert again.no_better == 0
        expected = f"{folder}/best/model.ckpt-6"
        assert _check_consistent(folder) == (expected, expected)
        if is_whole:
            break
    assert seen == {("3", "3"), ("3", "6"), ("6", "6")}
    assert _kept_steps(folder) == [6]


def test_a_kill_while_it_is_cleared(tmp_path, model, monkeypatch):
    for limit in range(3):
        folder = tmp_path / str(limit)
        folder.mkdir()
        kept = _best(folder)
        assert list(_offer(kept, model, [0.5])) == [True]
        with monkeypatch.context() as patch:
            _calls(patch, limit)
            with pytest.raises(_KilledError):
                kept.clear()
        _check_consistent(folder)
        assert (best.checkpoint(str(folder)) is None) == (limit > 0)
