"""Real texts, served from a process without this package as predicted.

A thousand rows and more of each fine-tuning script.
"""

import dataclasses
import json

from bert_tf.tasks.classification import glue
from bert_tf.tasks.classification import task as classification
from bert_tf.tasks.squad import metrics as squad_metrics
from bert_tf.tasks.squad import questions as squad_questions
from bert_tf.tasks.tagging import conll
from tests import (
    classifier_runs,
    combinations,
    saved_models,
    scripts,
    tiny_files,
)

import numpy as np
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


# Each trains, and returns what is asked and a function that compares the
# answers with the predictions.


def _classifier(shared_data, folder):
    data = shared_data / "glue" / "MRPC"
    output = _train(
        *(shared_data, folder, "run_classifier", "--task_name=MRPC"),
        *(f"--data_dir={data}", "--max_seq_length=64"),
        *("--predict_batch_size=64", "--learning_rate=0.01"),
        "--num_train_epochs=0.2",
    )
    task = glue.find("MRPC")
    examples = list(classification.read(task, str(data), "test"))
    inputs = {
        "text_a": [example.text_a for example in examples],
        "text_b": [example.text_b for example in examples],
    }

    def compare(served):
        predicted = classifier_runs.table(output / "test_results.tsv")
        assert len(predicted) == 1725
        np.testing.assert_allclose(
            served["probabilities"], predicted, atol=1e-5
        )

    return saved_models.Asked(output / "export", inputs), compare


def _ner(shared_data, folder):
    data = shared_data / "ner" / "wnut17"
    output = _train(
        *(shared_data, folder, "run_ner", "--learning_rate=0.003"),
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

    def compare(served):
        assert [tuple(x.split()) for x in texts] == [x.words for x in sentences]
        entities = 0
        for i, (sentence, row) in enumerate(zip(sentences, rows, strict=True)):
            count = served["count"][i]
            labels = list(filter(None, served["label"][i]))
            assert labels == list(sentence.labels)
            for name in ("start", "end"):
                expected = [x[name] for x in row["entities"]]
                assert served[name][i][:count] == expected
            entities += count
        assert entities, "or there is nothing to compare"

    inputs = {"text": texts}
    return saved_models.Asked(output / "export", inputs, "serve_words"), compare


def _squad(shared_data, folder):
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
        (folder / f"{name}.json").write_text(json.dumps({"data": data}))
    output = _train(
        *(shared_data, folder, "run_squad", "--num_train_epochs=1"),
        f"--train_file={folder}/train.json",
        *(f"--predict_file={folder}/test.json", "--predict_batch_size=64"),
        *("--version_2_with_negative", "--null_score_diff_threshold=auto"),
        *("--max_seq_length=192", "--learning_rate=0.001"),
    )
    asked = squad_questions.read(str(folder / "test.json"))
    inputs = {
        "question": [question.text for question in asked],
        "context": [question.context for question in asked],
    }

    def compare(served):
        predictions = json.loads((output / "predictions.json").read_text())
        assert len(asked) == len(predictions) >= 1000
        results = classifier_runs.results(output / "eval_results.txt")
        scores = squad_metrics.evaluate_2(asked, predictions)
        assert {x: results[x] for x in scores} == pytest.approx(scores)
        expected = [predictions[question.key] for question in asked]
        assert served["answer"] == expected

    return saved_models.Asked(output / "export", inputs), compare


def _multiple_choice(shared_data, folder):
    """Questions of SQuAD, with one to three answers of others."""
    path = shared_data / "squad" / "dev-v1.1.json"
    asked = [
        (paragraph["context"], qa["question"], qa["answers"][0]["text"])
        for article in json.loads(path.read_text())["data"]
        for paragraph in article["paragraphs"]
        for qa in paragraph["qas"]
    ][:1100]
    rows = [
        {
            "example_id": str(i),
            "article": context,
            "question": question,
            "options": [asked[i - j][2] for j in range(2 + i % 3)],
            "answer": "A",
        }
        for i, (context, question, _) in enumerate(asked)
    ]
    for name, part in (("train", rows[:100]), ("test", rows[100:])):
        text = "\n".join(map(json.dumps, part)) + "\n"
        (folder / f"{name}.jsonl").write_text(text)
    output = _train(
        *(shared_data, folder, "run_multiple_choice"),
        f"--train_file={folder}/train.jsonl",
        f"--test_file={folder}/test.jsonl",
        *("--max_seq_length=64", "--predict_batch_size=50"),
        *("--train_batch_size=10", "--learning_rate=0.001"),
        "--num_train_epochs=1",
    )
    choices = [
        [f"{row['question']} {option}" for option in row["options"]]
        + [""] * (4 - len(row["options"]))
        for row in rows[100:]
    ]
    prompts = [row["article"] for row in rows[100:]]

    def compare(served):
        expected = classifier_runs.table(output / "test_results.tsv")
        np.testing.assert_allclose(served["probabilities"], expected, atol=1e-5)
        found = classifier_runs.rows(output / "test_predictions.jsonl")
        for line, row, table in zip(found, rows[100:], expected, strict=True):
            own = line["probabilities"]
            assert len(own) == len(row["options"])
            np.testing.assert_allclose(own, table[: len(own)], atol=1e-6)
            assert not any(table[len(own) :])

    inputs = {"prompt": prompts, "choices": choices}
    return saved_models.Asked(output / "export", inputs), compare


_SCRIPTS = {
    "classifier": _classifier,
    "ner": _ner,
    "squad": _squad,
    "multiple_choice": _multiple_choice,
}


@pytest.mark.parametrize("name", combinations.some(["ner"], _SCRIPTS))
def test_served_by_a_stranger_as_predicted(name, shared_data, tmp_path):
    asked, compare = _SCRIPTS[name](shared_data, tmp_path)
    served = saved_models.serve_all_elsewhere(
        tmp_path, {name: asked}, (saved_models.WORD_PIECES,)
    )
    compare(served[name])
