"""The setup of fine-tuning scripts: weights, batches, an auxiliary loss."""

import contextlib
import dataclasses
import hashlib

from bert_tf import extras
from bert_tf.checkpoints import best, formats, tf1_files, trained_models
from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.flags import flagfiles
from bert_tf.setup import (
    auxiliary_lm,
    fine_tuning_setup,
    run_folder,
    run_setup,
    search_setup,
    trained_setup,
)
from bert_tf.training import distribution
from tests import interop_samples, tiny_files

import numpy as np
import pytest
import tensorflow as tf
from absl import flags
from absl.testing import flagsaver


@pytest.fixture
def run(tmp_path):
    """Returns a run that started from a released model."""
    (tmp_path / "run" / "best").mkdir(parents=True)
    (tmp_path / "model").mkdir()
    (tmp_path / "run" / "flags.txt").write_text(
        f"# python run_classifier.py\n--init_checkpoint={tmp_path}/model\n"
    )
    flags.FLAGS.mark_as_parsed()
    with flagsaver.flagsaver(output_dir=str(tmp_path / "run")):
        yield tmp_path


def test_own_weights_by_default_and_given_ones(run):
    assert run_setup.own_weights("own") == "own"
    with flagsaver.flagsaver(init_checkpoint="given"):
        assert run_setup.own_weights(None) == "given"
    with pytest.raises(ValueError, match=r"holds no checkpoint\. Train one"):
        run_setup.own_weights(None)


def test_a_folder_that_has_only_the_best_weights(run):
    """As after a search: the weights of init_checkpoint are not the run's."""
    (run / "run" / "best" / "model.ckpt-3.index").touch()
    results = run / "run" / "best" / "results.json"
    results.write_text('{"global_step": 3}')
    with (
        flagsaver.flagsaver(use_checkpoint="last", init_checkpoint="given"),
        pytest.raises(ValueError, match=r"Leave out use_checkpoint"),
    ):
        trained_setup.check_weights()
    best = f"{run}/run/best"
    with flagsaver.flagsaver(use_checkpoint="last", init_checkpoint=best):
        trained_setup.check_weights()
    # Pre-training has no best weights.
    with flagsaver.flagsaver(init_checkpoint="given"):
        assert run_setup.own_weights(None) == "given"


@pytest.mark.parametrize("name", ["model", "./model", "run/../model", "run"])
def test_what_the_run_started_from_may_be_said_again(run, name):
    # As with the training command, with --do_predict instead.
    with flagsaver.flagsaver(init_checkpoint=f"{run}/{name}"):
        assert run_setup.own_weights("own") == "own"


@pytest.mark.parametrize("name", ["model.ckpt-3", "best", "best/model.ckpt-3"])
def test_certain_weights_of_the_run(run, name):
    path = f"{run}/run/{name}"
    with flagsaver.flagsaver(init_checkpoint=path):
        assert run_setup.own_weights("own") == path


def test_weights_of_another_model_are_refused(run):
    with (
        flagsaver.flagsaver(init_checkpoint=f"{run}/other/model.ckpt"),
        pytest.raises(ValueError) as caught,
    ):
        run_setup.own_weights("own")
    assert str(caught.value) == (
        f"--output_dir={run}/run holds a run, whose weights are used, and "
        "--init_checkpoint names others. Leave it out, or choose another "
        f"--output_dir for theirs. Received: init_checkpoint={run}/other/"
        "model.ckpt"
    )


def test_files_of_best_weights_alone(run, monkeypatch):
    """A search has no others; a run resumes from its checkpoints only."""
    kept = run / "run" / "best"
    tiny_files.write_files(kept)
    monkeypatch.setattr(best, "checkpoint", lambda _: f"{kept}/model.ckpt-3")
    found = trained_setup.find_source(trains=False)
    assert found is not None and found.vocab is not None
    assert found.config == tiny_files.CONFIG
    assert list(found.vocab.contents) == ["vocab.txt"]
    assert trained_setup.find_source(trains=True) is None


def test_files_of_other_weights_than_the_best(run, monkeypatch):
    kept = run / "run" / "best"
    tiny_files.write_files(kept)
    monkeypatch.setattr(best, "checkpoint", lambda _: f"{kept}/model.ckpt-3")
    monkeypatch.setattr(formats, "open_checkpoint", lambda path: path)
    with flagsaver.flagsaver(use_checkpoint="last", init_checkpoint="given"):
        assert trained_setup.find_source(trains=False) == "given"
    with flagsaver.flagsaver(init_checkpoint="given"):
        # Pre-training restores no best weights.
        assert run_setup.find_source() == "given"


def test_a_search_leaves_the_devices_to_its_trials(run, monkeypatch):
    """TensorFlow hides no device after it has read a tensor."""
    calls: list[object] = []
    space = {"learning_rate": ["1"]}

    def load_files():
        calls.append("read")
        raise InputError("enough")

    def hide(*given):
        calls.append(given)

    monkeypatch.setattr(tf.config, "set_visible_devices", hide)
    monkeypatch.setattr(fine_tuning_setup, "load_files", load_files)
    monkeypatch.setattr(search_setup, "find_space", lambda _: space)
    monkeypatch.setattr(extras, "check", lambda *_: None)
    with pytest.raises(InputError, match="enough"):
        search_setup.check()
    assert calls == [([], "GPU"), "read"]
    # With --check_only, this process has the model.
    calls.clear()
    with (
        flagsaver.flagsaver(check_only=True),
        pytest.raises(InputError, match="enough"),
    ):
        search_setup.check()
    assert calls == ["read"]


@pytest.mark.parametrize(
    ("before", "changed"),
    [
        ({"init_checkpoint": "a", "word_vectors": "b"}, None),
        # As kept by an earlier version.
        ({"init_checkpoint": "a"}, None),
        ({"init_checkpoint": "c"}, "init_checkpoint was c and is a"),
        ({"word_vectors": "b"}, "init_checkpoint was None and is a"),
        (
            {"init_checkpoint": "a", "word_vectors": "c"},
            "word_vectors was c and is b",
        ),
    ],
)
def test_scores_that_chose_the_best(run, monkeypatch, before, changed):
    monkeypatch.setattr(best, "checkpoint", lambda _: "kept")
    monkeypatch.setattr(best, "chosen_on", lambda _: before)
    monkeypatch.setattr(tf1_files, "latest", lambda _: "newest")
    now = {"init_checkpoint": "a", "word_vectors": "b"}
    monkeypatch.setattr(flagfiles, "_values", lambda: now)
    with flagsaver.flagsaver(**now):
        if changed is None:
            run_folder.check_same_evaluation([*now])
            return
        with pytest.raises(ValueError, match=f"by other scores: {changed}"):
            run_folder.check_same_evaluation([*now])


def test_a_folder_that_cannot_be_removed_is_logged(monkeypatch, caplog):
    def rmtree(path):
        raise tf.errors.PermissionDeniedError(None, None, "retained")

    monkeypatch.setattr(tf.io.gfile, "rmtree", rmtree)
    run_folder.remove_or_warn("gs://b/records.tmp")
    expected = "gs://b/records.tmp could not be removed: retained"
    assert caplog.messages == [expected]


def test_batches_of_many_shapes_are_not_for_tpus(monkeypatch):
    flags.FLAGS.mark_as_parsed()
    strategy = tf.distribute.get_strategy()
    assert not fine_tuning_setup.plan(strategy).group_by_length
    with flagsaver.flagsaver(group_by_length=True):
        assert fine_tuning_setup.plan(strategy).group_by_length
        # There is no TPU here.
        monkeypatch.setattr(distribution, "is_tpu", lambda strategy: True)
        with pytest.raises(ValueError, match="a TPU would compile each"):
            fine_tuning_setup.plan(strategy)


def test_the_best_is_of_the_content_of_files(monkeypatch, tmp_path):
    """As of source and target texts: a change of either is another score."""
    flags.FLAGS.mark_as_parsed()
    strategy = tf.distribute.get_strategy()
    names = ("dev_file", "dev_target_file", "metric")

    def chosen_on(*contents):
        values = {"metric": "bleu"}
        for name, content in zip(names, contents, strict=False):
            (tmp_path / name).write_text(content)
            values[name] = str(tmp_path / name)
        monkeypatch.setattr(flagfiles, "_values", lambda: values)
        return fine_tuning_setup.plan(strategy, names).chosen_on

    assert best.EVALUATED_ON not in chosen_on("a")
    with flagsaver.flagsaver(do_train=True, do_eval=True):
        assert best.EVALUATED_ON not in chosen_on()
        digest = hashlib.sha256(b"a").hexdigest()
        assert chosen_on("a")[best.EVALUATED_ON] == digest
        pairs = [("a", "b"), ("b", "a"), ("a", "c"), ("ab", "")]
        digests = {chosen_on(*pair)[best.EVALUATED_ON] for pair in pairs}
        assert len({digest, *digests}) == 5
        # A file of GLUE is in --data_dir.
        (tmp_path / "dev.tsv").write_text("a")
        monkeypatch.setattr(flagfiles, "_values", dict)
        plan = fine_tuning_setup.plan(
            strategy, names, [str(tmp_path / "dev.tsv")]
        )
        assert plan.chosen_on == {best.EVALUATED_ON: digest}
        # A folder of files, as RACE's.
        (tmp_path / "dev_file").unlink()
        (tmp_path / "dev_file" / "high").mkdir(parents=True)
        folder = {"dev_file": str(tmp_path / "dev_file")}
        monkeypatch.setattr(flagfiles, "_values", lambda: folder)
        found = []
        for text in ("a", "b", "a"):
            (tmp_path / "dev_file" / "high" / "1.txt").write_text(text)
            chosen = fine_tuning_setup.plan(strategy, names).chosen_on
            found.append(chosen[best.EVALUATED_ON])
        assert found[0] == found[2] != found[1]


def test_fused_attention_is_for_pre_training():
    flags.FLAGS.mark_as_parsed()
    given = {"fused_attention": True, "deterministic_ops": False}
    with flagsaver.flagsaver(**given):
        # As flags.txt has it, of a run that is only evaluated.
        fine_tuning_setup.plan(fine_tuning_setup.set_up_distribution())
        with (
            flagsaver.flagsaver(do_train=True),
            pytest.raises(ValueError, match="is for pre-training"),
        ):
            fine_tuning_setup.plan(tf.distribute.get_strategy())


@pytest.mark.parametrize(
    "work, message",
    [
        ({}, None),
        ({"do_train": True}, "train_batch_size=9"),
        ({"do_eval": True}, "eval_batch_size=7"),
        ({"do_predict": True}, "predict_batch_size=5"),
    ],
)
def test_batch_sizes_that_the_run_takes_must_fit(work, message):
    flags.FLAGS.mark_as_parsed()
    two_replicas = {"distribution_strategy": "mirrored", "logical_cpus": 2}
    sizes = {"train_batch_size": 9, "eval_batch_size": 7}
    with flagsaver.flagsaver(
        **(two_replicas | sizes | work),
        predict_batch_size=5,
        deterministic_ops=False,  # would apply to all tests of the process
    ):
        if message is None:
            assert fine_tuning_setup.set_up_distribution()
            return
        with pytest.raises(ValueError, match=message):
            fine_tuning_setup.set_up_distribution()


def test_word_vectors_in_a_padded_table(tmp_path, caplog):
    caplog.set_level("INFO", logger="absl")
    flags.FLAGS.mark_as_parsed()
    pieces = tiny_files.VOCAB
    config = dataclasses.replace(tiny_files.CONFIG, vocab_size=len(pieces) + 6)
    model = families.make(config)
    words = model.embeddings.word_embeddings
    expected = np.asarray(words).copy()
    expected[pieces.index("cat")] = 1
    (tmp_path / "vectors.txt").write_text(f"cat{' 1' * 8}\nmouse{' 2' * 8}\n")
    files = trained_models.ModelFiles(
        config, interop_samples.vocab_files(pieces), True
    )
    with flagsaver.flagsaver(word_vectors=f"{tmp_path}/vectors.txt"):
        fine_tuning_setup.set_words(files, model)
    np.testing.assert_array_equal(words, expected)
    assert f"for 1 of {len(pieces)} tokens" in caplog.text


_READS_LEFT = {"model_type": "left_to_right", "vocab_size": 9}
_OF_LAYERS = r"--distillation=minilm trains layers and no head, so there is"


@pytest.mark.parametrize(
    "config, distillation, weight, refusal",
    [
        (_READS_LEFT, None, 0.5, None),
        (_READS_LEFT, "logits", 0.5, None),
        (_READS_LEFT, "minilm", 0.5, _OF_LAYERS),
        ({"vocab_size": 9}, None, 0.5, "for encoders that read from left to"),
    ],
)
def test_check(config, distillation, weight, refusal):
    flags.FLAGS.mark_as_parsed()
    asked: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if refusal:
        asked = pytest.raises(InputError, match=refusal)
    with flagsaver.flagsaver(distillation=distillation), asked:
        auxiliary_lm.check(weight, families.from_values(config))


@pytest.mark.parametrize(
    ("kept", "path", "changed"),
    [
        ("same", "elsewhere", None),
        ("other", "here", "eval_file had other content"),
        ("other", "elsewhere", "eval_file was elsewhere and is here"),
        (None, "here", None),
        (None, "elsewhere", "eval_file was elsewhere and is here"),
    ],
)
def test_the_data_that_chose_the_best(run, monkeypatch, kept, path, changed):
    before = {"eval_file": path} | ({best.EVALUATED_ON: kept} if kept else {})
    monkeypatch.setattr(best, "checkpoint", lambda _: "kept")
    monkeypatch.setattr(best, "chosen_on", lambda _: before)
    monkeypatch.setattr(tf1_files, "latest", lambda _: "newest")
    monkeypatch.setattr(flagfiles, "_values", lambda: {"eval_file": "here"})
    with (
        pytest.raises(ValueError, match=f"by other scores: {changed}[.]")
        if changed
        else contextlib.nullcontext()
    ):
        run_folder.check_same_evaluation(["eval_file"], evaluated_on="same")


def test_the_file_in_a_folder_that_chose_the_best(run, monkeypatch):
    """As of GLUE, whose files have no flags."""
    before = {best.EVALUATED_ON: "same"}
    monkeypatch.setattr(best, "checkpoint", lambda _: "kept")
    monkeypatch.setattr(best, "chosen_on", lambda _: before)
    monkeypatch.setattr(tf1_files, "latest", lambda _: "newest")
    monkeypatch.setattr(flagfiles, "_values", dict)
    for evaluated_on in ("same", None):
        run_folder.check_same_evaluation(["dev_file"], "", evaluated_on)
    message = "scores: the evaluation data had other content[.]"
    with pytest.raises(ValueError, match=message):
        run_folder.check_same_evaluation(["dev_file"], evaluated_on="other")


def test_the_pair_of_files_that_chose_the_best(run, monkeypatch):
    names = ["dev_file", "dev_target_file"]
    before = dict.fromkeys(names, "here") | {best.EVALUATED_ON: "same"}
    monkeypatch.setattr(best, "checkpoint", lambda _: "kept")
    monkeypatch.setattr(best, "chosen_on", lambda _: before)
    monkeypatch.setattr(tf1_files, "latest", lambda _: "newest")
    moved = dict.fromkeys(names, "elsewhere")
    monkeypatch.setattr(flagfiles, "_values", lambda: moved)
    run_folder.check_same_evaluation(names, evaluated_on="same")
    same = dict.fromkeys(names, "here")
    monkeypatch.setattr(flagfiles, "_values", lambda: same)
    message = "scores: dev_file or dev_target_file had other content[.]"
    with pytest.raises(ValueError, match=message):
        run_folder.check_same_evaluation(names, evaluated_on="other")
