"""Runs run_prediction.py's own main, on tiny models."""

import json
import os
import pathlib

from bert_tf import heads, modeling
from bert_tf.checkpoints import best, tf1_files
from bert_tf.tasks.features import layers as feature_layers
from tests import saved_models, scripts
from tests.exporting import test_saved_model as classifier
from tests.tasks.features import test_extraction as vectors
from tests.tasks.masked_words import test_saved_model as gaps
from tests.tasks.multiple_choice import test_saved_model as choices
from tests.tasks.squad import test_saved_model as spans
from tests.tasks.tagging import test_saved_model as tags

import numpy as np
import pytest
import tensorflow as tf

_ROOT = pathlib.Path(__file__).resolve().parents[2]


def write_run(folder, model, vocab, config, *flags, labels=()):
    """Writes what a run leaves, of word pieces or of a vocabulary's files."""
    if not isinstance(vocab, dict):
        vocab = {"vocab.txt": ("\n".join(vocab) + "\n").encode()}
    folder.mkdir()
    for name, data in vocab.items():
        (folder / name).write_bytes(data)
    (folder / "bert_config.json").write_text(config.to_json())
    (folder / "flags.txt").write_text("".join(f"{flag}\n" for flag in flags))
    if labels:
        (folder / "labels.txt").write_text("\n".join(labels) + "\n")
    prefix = str(folder / "model.ckpt-7")
    tf1_files.write(prefix, {v.path: v.value for v in model.variables})
    tf1_files.write_state(str(folder), [prefix])
    return folder


def write_scores(folder):
    """Writes the run of a regression of one text."""
    tf.keras.utils.set_random_seed(1)
    model = heads.BertClassifier(modeling.Bert(classifier.CONFIG), 1)
    return write_run(
        *(folder, model, classifier.VOCAB, classifier.CONFIG),
        *("--max_seq_length=12", "--text_a_column=x"),
    )


def predict(*arguments):
    """Runs the script in this process; returns its exit code."""
    return scripts.run_here("run_prediction", *arguments)


def answers(tmp_path, lines, *arguments):
    """Asks the lines of a file, and returns what is answered."""
    (tmp_path / "in.txt").write_text("\n".join(lines) + "\n")
    code = predict(
        f"--input_file={tmp_path}/in.txt",
        f"--output_file={tmp_path}/out.jsonl",
        "--overwrite",
        # Windows and batches of several lengths.
        *("--batch_size=3", "--sort_window=4"),
        *arguments,
    )
    assert not code
    assert sorted(os.listdir(tmp_path)).count("out.jsonl") == 1
    rows = (tmp_path / "out.jsonl").read_text("utf-8").split("\n")
    assert rows.pop() == ""
    return [json.loads(row) for row in rows]


def one_line(text):
    return " ".join(text.split())


# ---- Every head, against Python's own path ----------------------------------


def test_classes_and_their_export(tmp_path):
    tf.keras.utils.set_random_seed(1)
    model = heads.BertClassifier(modeling.Bert(classifier.CONFIG), 3)
    run = write_run(
        *(tmp_path / "run", model, classifier.VOCAB, classifier.CONFIG),
        *("--max_seq_length=12", "--text_b_column=b"),
        labels=["no", "yes, médium", "博"],
    )
    pairs = [tuple(map(one_line, pair)) for pair in classifier.PAIRS]
    pairs = [pair for pair in pairs if pair[0]]
    lines = ["\t".join(pair) if pair[1] else pair[0] for pair in pairs]
    found = answers(tmp_path, lines, f"--model_dir={run}")
    logits = [classifier.python_logits(model, *pair) for pair in pairs]
    for answer, row in zip(found, logits, strict=True):
        assert answer["label"] == ["no", "yes, médium", "博"][row.argmax()]
        assert list(answer["probabilities"]) == ["no", "yes, médium", "博"]
        np.testing.assert_allclose(
            list(answer["probabilities"].values()),
            saved_models.softmax(row),
            atol=1e-5,
        )
    code = scripts.run_here(
        "export_saved_model",
        *(f"--model_dir={run}", f"--export_dir={tmp_path}/export"),
    )
    assert not code
    assert answers(tmp_path, lines, f"--saved_model={tmp_path}/export") == found


def test_masked_words(tmp_path):
    tf.keras.utils.set_random_seed(1)
    model = heads.BertMaskedLM(modeling.Bert(gaps.CONFIG))
    run = write_run(
        *(tmp_path / "run", model, gaps.VOCAB),
        *(gaps.CONFIG, "--max_seq_length=12"),
    )
    texts = [one_line(text) for text in gaps.TEXTS if "[MASK]" in text]
    found = answers(tmp_path, texts, f"--model_dir={run}", "--top_k=4")
    for text, answer in zip(texts, found, strict=True):
        expected = gaps.python_masks(model, text)
        assert [[x["piece"] for x in m] for m in answer["masks"]] == [
            [piece for piece, _ in mask] for mask in expected
        ]
        np.testing.assert_allclose(
            [[x["score"] for x in m] for m in answer["masks"]],
            [[score for _, score in mask] for mask in expected],
            atol=1e-5,
        )


def test_next_sentences_of_a_pre_trained_model(tmp_path):
    tf.keras.utils.set_random_seed(1)
    model = heads.BertPretrainer(modeling.Bert(classifier.CONFIG))
    own = heads.BertNextSentence(modeling.Bert(classifier.CONFIG))
    theirs = {v.path: v for v in model.variables}
    for variable in own.variables:
        variable.assign(theirs[variable.path])
    run = write_run(
        *(tmp_path / "run", model, classifier.VOCAB, classifier.CONFIG),
        "--max_seq_length=12",
    )
    pairs = [("What a film.", "good, good Café"), ("bad", "Whatever good")]
    found = answers(
        tmp_path,
        ["\t".join(pair) for pair in pairs],
        *(f"--init_checkpoint={run}", "--head=next_sentence"),
        "--max_seq_length=12",
    )
    for pair, answer in zip(pairs, found, strict=True):
        logits = classifier.python_logits(own, *pair)
        assert answer["is_next"] == pytest.approx(
            saved_models.softmax(logits)[0], abs=1e-5
        )
    # The other head that it has is the one that is taken by itself.
    (answer,) = answers(tmp_path, ["a [MASK]"], f"--init_checkpoint={run}")
    assert len(answer["masks"][0]) == 5


def test_weights_of_a_run_are_read_as_the_run_says(tmp_path):
    """By whichever flag, and wherever in the run's folder they lie."""
    run = write_scores(tmp_path / "run")
    with (run / "flags.txt").open("a") as file:
        file.write("--max_seq_length=6\n--long_documents=windows\n")
    model = heads.BertClassifier(modeling.Bert(classifier.CONFIG), 1)
    texts = ["a b a b a b a b a b a b", "b"]
    expected = answers(tmp_path, texts, f"--model_dir={run}")
    found = answers(tmp_path, texts, f"--init_checkpoint={run}/model.ckpt-7")
    assert found == expected
    other = answers(
        *(tmp_path, texts, f"--init_checkpoint={run}/model.ckpt-7"),
        "--max_seq_length=12",
    )
    assert other != expected
    kept = best.Best(
        str(run),
        "loss",
        {
            name: (run / name).read_bytes()
            for name in ("vocab.txt", "bert_config.json")
        },
        lowest=True,
    )
    assert kept.offer(5, {"loss": 1.0}, model)
    expected = answers(tmp_path, texts, f"--model_dir={run}")
    found = answers(tmp_path, texts, f"--init_checkpoint={run}/best")
    assert found == expected


def test_entities(tmp_path, capsys):
    tf.keras.utils.set_random_seed(1)
    labels = tags.LABELS
    model = heads.BertTagger(modeling.Bert(tags.CONFIG), len(labels))
    run = write_run(
        *(tmp_path / "run", model, tags.VOCAB),
        *(tags.CONFIG, "--max_seq_length=12"),
        labels=labels,
    )
    texts = [one_line(text) for text in tags.TEXTS]
    texts = [text for text in texts if text]
    found = answers(tmp_path, texts, f"--model_dir={run}")
    for text, answer in zip(texts, found, strict=True):
        assert [tuple(x.values()) for x in answer["entities"]] == (
            tags.entities(model, text)
        )
    mixed = ",".join(reversed(labels))
    assert predict(f"--model_dir={run}", f"--labels={mixed}") == 1
    names = f"names its classes {', '.join(labels)}. Leave out --labels"
    assert names in capsys.readouterr().err


def test_answers_to_questions(tmp_path, capsys):
    tf.keras.utils.set_random_seed(1)
    model = heads.BertSpanFinder(modeling.Bert(spans.CONFIG))
    run = write_run(
        *(tmp_path / "run", model, spans.VOCAB),
        *(spans.CONFIG, "--max_seq_length=14", "--doc_stride=3"),
        *("--max_query_length=4", "--n_best_size=5", "--max_answer_length=3"),
        *("--version_2_with_negative=true",),
        "--null_score_diff_threshold=auto",
    )
    (run / "null_score_diff_threshold.txt").write_text("0.25\n")
    pairs = [pair for pair in spans.PAIRS if pair[0].strip()]
    lines = [
        json.dumps({"question": question, "context": context, "id": i})
        for i, (question, context) in enumerate(pairs)
    ]
    found = answers(
        tmp_path, lines, f"--model_dir={run}", "--input_format=jsonl"
    )
    nulls = 0
    for i, (pair, answer) in enumerate(zip(pairs, found, strict=True)):
        expected = spans.python_answer(model, *pair)
        is_null = expected.null_odds > 0.25
        nulls += is_null
        assert answer["id"] == i
        assert answer["answer"] == ("" if is_null else expected.text)
        assert answer["score"] == pytest.approx(expected.score, abs=1e-4)
    assert 0 < nulls < len(pairs)
    # A threshold of no questions.
    code = predict(
        *(f"--model_dir={run}", "--version_2_with_negative=false"),
        "--null_score_diff_threshold=-1.5",
    )
    assert code == 1
    assert (
        "--null_score_diff_threshold goes with --version_2_with_negative, of "
        "questions without an answer. Received: "
        "null_score_diff_threshold=-1.5, version_2_with_negative=False"
    ) in capsys.readouterr().err


def test_choices_of_any_number(tmp_path):
    tf.keras.utils.set_random_seed(1)
    model = heads.BertMultipleChoice(modeling.Bert(choices.CONFIG))
    run = write_run(
        *(tmp_path / "run", model, choices.VOCAB),
        *(choices.CONFIG, "--max_seq_length=10"),
    )
    rows = [
        ("What a film.", ["good", "bad", "whatever."]),
        ("Café", ["a", "o"]),
        ("good " * 30, ["bad bad", "a film good", "what " * 30 + "cafe"]),
    ]
    lines = ["\t".join([prompt, *choices]) for prompt, choices in rows]
    found = answers(tmp_path, lines, f"--model_dir={run}")
    for row, answer in zip(rows, found, strict=True):
        logits = choices.python_logits(model, *row)
        assert answer["choice"] == np.argmax(logits)
        np.testing.assert_allclose(
            answer["probabilities"],
            saved_models.softmax(np.array(logits)),
            atol=1e-5,
        )


def test_vectors_of_an_encoder(tmp_path):
    tf.keras.utils.set_random_seed(1)
    model = modeling.Bert(vectors.CONFIG)
    run = write_run(
        *(tmp_path / "run", model, vectors.VOCAB, vectors.CONFIG),
        f"--max_seq_length={vectors.LENGTH}",
    )
    texts = [text.strip() for text in vectors.TEXTS]
    lines = [text.replace(" ||| ", "\t") for text in texts if text]
    found = answers(tmp_path, lines, f"--model_dir={run}")
    _, expected = vectors.extract(model, feature_layers.Choice("last"), "mean")
    wanted = [x for x, text in zip(expected, texts, strict=True) if text]
    np.testing.assert_allclose(
        [answer["vector"] for answer in found],
        np.concatenate(wanted)[:, 0],
        atol=1e-5,
    )


# ---- Mistakes ---------------------------------------------------------------


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    return write_scores(tmp_path_factory.mktemp("scores") / "run")


def test_a_head_that_its_run_did_not_train(tmp_path, capsys):
    config = classifier.CONFIG
    model = heads.BertPretrainer(modeling.Bert(config))
    run = write_run(tmp_path / "run", model, classifier.VOCAB, config)
    tensors = {v.path: v.value for v in model.variables}
    tensors |= {
        f"{name}/adam_m": value
        for name, value in list(tensors.items())
        if "seq_relationship" not in name
    }
    tf1_files.write(str(run / "model.ckpt-7"), tensors)
    (tmp_path / "in.txt").write_text("a\tb\n")

    def error(*given):
        code = predict(
            *("--head=next_sentence", f"--input_file={tmp_path}/in.txt"),
            *("--max_seq_length=12", f"--output_file={tmp_path}/out", *given),
        )
        assert code == 1
        return capsys.readouterr().err.splitlines()[-1]

    problem = "has a next_sentence head that its run did not train"
    assert f"{run}/model.ckpt-7 {problem}" in error(f"--model_dir={run}")
    # The best weights are kept without what training needs.
    texts = {
        name: (run / name).read_bytes()
        for name in ("vocab.txt", "bert_config.json")
    }
    kept = best.Best(str(run), "loss", texts, lowest=True)
    assert kept.offer(5, {"loss": 1.0}, model)
    assert not any(
        name.endswith("adam_m")
        for name in tf1_files.shapes(str(run / "best" / "model.ckpt-5"))
    )
    said = f"{run}/best/model.ckpt-5 {problem}"
    assert said in error(f"--model_dir={run}")
    assert said in error(f"--init_checkpoint={run}/best")
    # A newer one that no one can read does not hide it.
    (run / "model.ckpt-9.index").write_bytes(b"torn")
    assert said in error(f"--model_dir={run}")
    (answer,) = answers(
        tmp_path, ["[MASK]"], f"--model_dir={run}", "--max_seq_length=12"
    )
    assert answer["masks"]
    # Nor is a head refused that was trained.
    (run / "model.ckpt-9.index").unlink()
    for name in ("output_weights", "output_bias"):
        name = f"cls/seq_relationship/{name}"
        tensors[f"{name}/adam_m"] = tensors[name]
    tf1_files.write(str(run / "model.ckpt-8"), tensors)
    (answer,) = answers(
        *(tmp_path, ["a\tb"], f"--model_dir={run}"),
        *("--head=next_sentence", "--max_seq_length=12"),
    )
    assert 0 <= answer["is_next"] <= 1
