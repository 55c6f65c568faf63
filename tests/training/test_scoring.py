"""Evaluations of a run: when they are due, the best one, early stopping."""

import dataclasses

from bert_tf.checkpoints import best, tf1_files
from bert_tf.errors import InputError
from bert_tf.training import progress, scoring

import keras
import pytest

_STOP = 70


@pytest.fixture(name="model")
def _model():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.build((None, 1))
    return model


def _evaluations(folder, scores=(), counted_from=0, **options):
    """Returns evaluations that are due every 20 steps and at the end."""
    left = iter(scores)
    return scoring.Evaluations(
        evaluation=scoring.Evaluation(
            "eval_f1", lambda: {"eval_f1": next(left)}, **options
        ),
        folder=str(folder),
        kept=best.Best(str(folder), "eval_f1", {}),
        every=20,
        stop=_STOP,
        counted_from=counted_from,
    )


def _run(evaluations, model, steps):
    """Evaluates at steps, with weights equal to the step; returns the ends."""
    report = progress.Progress(evaluations.folder, 0, _STOP)
    evaluate = evaluations.hook(model, report)
    ends = []
    for step in steps:
        model.weights[0].assign([[step]])
        ends.append(evaluate(step))
    return ends


def test_one_is_due_each_so_many_steps_and_at_the_end(tmp_path, model):
    evaluations = _evaluations(tmp_path, [0.5, 0.6])
    due = [step for step in range(_STOP + 1) if evaluations.lacks(step)]
    assert due == [20, 40, 60, 70]
    _run(evaluations, model, [20, 40])
    due = [step for step in range(_STOP + 1) if evaluations.lacks(step)]
    assert due == [60, 70]


@pytest.mark.parametrize(
    "scores, options, ends",
    [
        ([0.5, 0.4, 0.3, 0.2], {}, [False] * 4),
        ([0.5, 0.4, 0.3], {"most_without_better": 2}, [False, False, True]),
        ([0.5, 0.5, 0.5], {"most_without_better": 2}, [False, False, True]),
        ([0.5, 0.4, 0.6, 0.1], {"most_without_better": 2}, [False] * 4),
        ([0.5, 0.4], {"most_without_better": 1}, [False, True]),
    ],
)
def test_too_many_no_better_ones_end_it(tmp_path, model, scores, options, ends):
    evaluations = _evaluations(tmp_path, scores, **options)
    steps = range(20, 20 * len(scores) + 1, 20)
    assert _run(evaluations, model, steps) == ends
    # A run that resumes after the last of them does not evaluate again.
    again = _evaluations(tmp_path, **options)
    again.take_up(steps[-1])
    assert again.is_over(steps[-1]) == ends[-1]


def test_going_on_before_the_best_goes_on_with_the_earlier_best(
    tmp_path, model
):
    _run(_evaluations(tmp_path, [0.6, 0.5, 0.9]), model, [20, 40, 60])
    again = _evaluations(tmp_path, [0.7])
    again.take_up(50)
    assert again.kept.results == {"eval_f1": 0.6, tf1_files.GLOBAL_STEP: 20}
    assert again.kept.no_better == 1
    _run(again, model, [60])
    assert again.kept.results == {"eval_f1": 0.7, tf1_files.GLOBAL_STEP: 60}


def test_going_on_without_scores_knows_the_loss_of_the_earlier_best(
    tmp_path, model
):
    def evaluations(losses):
        results = ({"eval_f1": 0.0, "eval_loss": loss} for loss in losses)
        made = _evaluations(tmp_path)
        changed = dataclasses.replace(
            made.evaluation, evaluate=lambda: next(results)
        )
        return dataclasses.replace(made, evaluation=changed)

    _run(evaluations([0.6, 0.4]), model, [20, 40])
    again = evaluations([0.7, 0.5])
    again.take_up(30)
    _run(again, model, [40])
    assert again.kept.results[tf1_files.GLOBAL_STEP] == 20
    _run(again, model, [60])
    assert again.kept.results[tf1_files.GLOBAL_STEP] == 60


def test_the_best_of_another_score(tmp_path, model):
    """An earlier version may have scored a tagger by another metric."""
    _run(_evaluations(tmp_path, [0.6]), model, [20])
    path = tmp_path / "best" / "results.json"
    path.write_text(path.read_text().replace("eval_f1", "eval_accuracy"))
    with pytest.raises(InputError, match="another score than eval_f1"):
        _evaluations(tmp_path).take_up(20)


def test_killed_again_and_again_the_count_is_that_of_an_unbroken_run(
    tmp_path, model
):
    """The evaluation after the newest checkpoint is repeated three times."""
    for _ in range(3):
        run = _evaluations(tmp_path, [0.6, 0.5], most_without_better=1)
        run.take_up(15)
        report = progress.Progress(run.folder, 15, _STOP)
        assert not run.hook(model, report)(20)
        # Its line is lost when the run is killed.
        progress.Progress(run.folder, 15, _STOP)
    # Killed after the best was kept and before its line was written.
    run = _evaluations(tmp_path, [0.6, 0.5], most_without_better=1)
    run.take_up(20)
    assert run.lacks(20)
    report = progress.Progress(run.folder, 20, _STOP)
    evaluate = run.hook(model, report)
    assert [evaluate(20), evaluate(40)] == [False, True]


def test_only_weights_from_a_step_on_may_be_the_best(tmp_path, model):
    evaluations = _evaluations(
        tmp_path, [0.9, 0.4, 0.5], counted_from=40, most_without_better=1
    )
    assert _run(evaluations, model, [20, 40, 60]) == [False] * 3
    path = best.checkpoint(str(tmp_path))
    assert path and path.endswith("model.ckpt-60")
    name = model.weights[0].path
    assert tf1_files.read(path, [name])[name] == 60


def test_checkpoints_before_the_best_are_complete_before_it(tmp_path, model):
    evaluations = _evaluations(tmp_path, [0.5])
    seen = []
    evaluate = evaluations.hook(
        model,
        progress.Progress(str(tmp_path), 0, _STOP),
        lambda step: seen.append((step, best.checkpoint(str(tmp_path)))),
    )
    evaluate(20)
    assert seen == [(20, None)]
    assert best.checkpoint(str(tmp_path)) is not None
