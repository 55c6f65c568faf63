"""Real texts, served from a process without this package as predicted."""

import dataclasses
import json

from bert_tf.tasks.squad import squad_metrics, squad_questions
from bert_tf.tasks.tagging import conll
from tests import (
    classifier_runs,
    saved_models,
    scripts,
    tiny_files,
)

import pytest

pytestmark = pytest.mark.slow

# So that something is learned.
_CONFIG = dataclasses.replace(
    tiny_files.CONFIG,
    vocab_size=30522,
    max_position_embeddings=192,
    hidden_size=16,
    intermediate_size=32,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def _train(shared_data, folder, script, *flags):
    (folder / "bert_config.json").write_text(_CONFIG.to_json())
    scripts.run_checked(
        *(folder / "log", script, "--do_train", "--do_predict", "--do_export"),
        f"--vocab_file={shared_data}/vocab/bert_uncased.txt",
        f"--bert_config_file={folder}/bert_config.json",
        *(f"--output_dir={folder}/out", *flags),
    )
    return folder / "out"


def _serve(folder, inputs, signature="serving_default"):
    asked = saved_models.Asked(folder / "out" / "export", inputs, signature)
    return saved_models.serve_all_elsewhere(
        folder, {"": asked}, (saved_models.WORD_PIECES,)
    )[""]


@pytest.mark.exhaustive
def test_entities(shared_data, tmp_path):
    data = shared_data / "ner" / "wnut17"
    output = _train(
        *(shared_data, tmp_path, "run_ner", "--learning_rate=0.003"),
        f"--train_file={data}/wnut17train.conll",
        f"--test_file={data}/emerging.test.annotated",
        # Some sentences take several windows.
        *("--max_seq_length=48", "--predict_batch_size=64"),
        *("--train_batch_size=8", "--num_train_epochs=3"),
    )
    path = output / "test_predictions.conll"
    sentences = conll.read(str(path), conll.Columns())[:400]
    lines = (output / "test_entities.jsonl").read_text("utf-8").split("\n")
    rows = [json.loads(line) for line in lines[:400]]
    texts = [row["text"] for row in rows]
    assert [tuple(x.split()) for x in texts] == [x.words for x in sentences]
    served = _serve(tmp_path, {"text": texts}, "serve_words")
    assert any(served["count"]), "or there is nothing to compare"
    for i, (sentence, row) in enumerate(zip(sentences, rows, strict=True)):
        labels = list(filter(None, served["label"][i]))
        assert labels == list(sentence.labels)
        for name in ("start", "end"):
            expected = [x[name] for x in row["entities"]]
            assert served[name][i][: served["count"][i]] == expected


@pytest.mark.exhaustive
def test_answers(shared_data, tmp_path):
    # The first article to train on, a thousand questions of others to answer.
    path = shared_data / "squad" / "dev-v2.0.json"
    articles = json.loads(path.read_text())["data"]
    questions = 0
    test = []
    for article in articles[1:]:
        for paragraph in article["paragraphs"]:
            if questions < 1000:
                questions += len(paragraph["qas"])
                test.append({"paragraphs": [paragraph]})
    for name, data in (("train", articles[:1]), ("test", test)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"data": data}))
    output = _train(
        *(shared_data, tmp_path, "run_squad", "--num_train_epochs=1"),
        f"--train_file={tmp_path}/train.json",
        *(f"--predict_file={tmp_path}/test.json", "--predict_batch_size=64"),
        *("--version_2_with_negative", "--null_score_diff_threshold=auto"),
        *("--max_seq_length=192", "--learning_rate=0.001"),
    )
    asked = squad_questions.read(str(tmp_path / "test.json"))
    inputs = {
        "question": [question.text for question in asked],
        "context": [question.context for question in asked],
    }
    predictions = json.loads((output / "predictions.json").read_text())
    assert len(asked) == len(predictions) >= 1000
    results = classifier_runs.results(output / "eval_results.txt")
    scores = squad_metrics.evaluate_2(asked, predictions)
    assert {x: results[x] for x in scores} == pytest.approx(scores)
    expected = [predictions[question.key] for question in asked]
    assert _serve(tmp_path, inputs)["answer"] == expected
