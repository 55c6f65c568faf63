"""Runs run_ner.py on tiny data."""

import bert_tf
from bert_tf import heads, modeling, tokenization
from bert_tf.checkpoints import tf1_files
from bert_tf.tasks import tables
from bert_tf.tasks.tagging import conll as tagging_conll
from bert_tf.tasks.tagging import schemes, tagging_results, tagging_words
from tests import classifier_runs, fine_tuned, tiny_files, trained_weights

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_LABELS = ("B-loc", "B-per", "I-per", "O")
_LENGTH = 16


@pytest.fixture(scope="module")
def trained():
    return fine_tuned.trained("ner")


def _best_checkpoint(trained):
    (prefix,) = tf1_files.numbered(str(trained.output / "best")).values()
    return prefix


def _read(path):
    return tagging_conll.read(str(path), tagging_conll.Columns())


def test_learns_the_entities(trained):
    folder = trained.output
    assert (folder / "labels.txt").read_text().split() == list(_LABELS)
    results = classifier_runs.results(folder / "eval_results.txt")
    assert set(results) == {
        *("eval_accuracy", "eval_precision", "eval_recall", "eval_f1"),
        *("eval_conlleval_precision", "eval_conlleval_recall"),
        "eval_conlleval_f1",
        *("eval_loss", "loss", "global_step"),
    }
    assert results["eval_f1"] > 0.9
    report = (folder / "eval_report.txt").read_text().splitlines()
    assert [line.split()[0] for line in report[1:]] == ["loc", "per", "all"]


def _python_labels(trained, texts):
    """Labels the words of texts without records, each from all windows."""
    config = modeling.BertConfig.from_json_file(
        f"{trained.files}/bert_config.json"
    )
    model = heads.BertTagger(modeling.Bert(config), len(_LABELS))
    found = tf1_files.read(
        _best_checkpoint(trained), [v.path for v in model.variables]
    )
    for variable in model.variables:
        variable.assign(found[variable.path])
    tokenizer = tokenization.FullTokenizer(f"{trained.files}/vocab.txt")
    room = _LENGTH - 2
    labels = []
    for words in texts:
        ids: list[int] = []
        firsts = []
        for word in words:
            firsts.append(len(ids))
            ids += tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word))
        last = max(len(ids) - room, 0)
        best: dict[int, tuple[int, int]] = {}
        for start in [*range(0, last, room // 2), last]:
            row = [2, *ids[start : start + room], 3]
            inputs = {
                "input_ids": tf.constant([row]),
                "input_mask": tf.ones([1, len(row)], tf.int32),
                "segment_ids": tf.zeros([1, len(row)], tf.int32),
            }
            logits = model(inputs).numpy()[0]
            for at in range(start, start + len(row) - 2):
                context = min(at - start, start + room - 1 - at)
                if at not in best or context > best[at][0]:
                    best[at] = context, logits[at - start + 1].argmax()
        labels += [_LABELS[best[at][1]] for at in firsts]
    return labels


def test_predictions(trained):
    test = trained.files / "test.conll"
    output = trained.output / "test_predictions.conll"
    given, written = (
        [line.strip() for _, line in tables.lines(str(path))]
        for path in (test, output)
    )
    assert [line.rpartition(" ")[0] for line in written] == given
    sentences = _read(test)
    labels = [x for sentence in _read(output) for x in sentence.labels]
    documents = [
        [word for sentence in group for word in sentence.words]
        for group in tagging_words.group(sentences, "document")
    ]
    assert max(map(len, documents)) > _LENGTH, "some take several windows"
    assert labels == _python_labels(trained, documents)
    expected = tagging_results.results(sentences, labels, "BIO")
    assert expected["eval_f1"] > 0.9
    results = classifier_runs.results(trained.output / "test_results.txt")
    assert results["eval_f1"] == pytest.approx(expected["eval_f1"], abs=1e-6)
    rows = classifier_runs.rows(trained.output / "test_entities.jsonl")
    assert [row["line"] for row in rows] == [x.lines[0] for x in sentences]
    assert "Anna Bob" in {x["text"] for row in rows for x in row["entities"]}


@pytest.mark.usefixtures("untraced")
def test_predicts_words_without_labels(trained, tmp_path):
    lines = (trained.files / "test.conll").read_text().split("\n")
    words = [line.partition(" ")[0] for line in lines]
    (tmp_path / "words.conll").write_text("\n".join(words))
    trained.run(
        *(tmp_path, *trained.flags, "--do_predict", "--test_has_labels=false"),
        f"--init_checkpoint={_best_checkpoint(trained)}",
        f"--test_file={tmp_path}/words.conll",
        f"--output_dir={tmp_path}/out",
    )
    old, new = (
        [x.labels for x in _read(path / "test_predictions.conll")]
        for path in (trained.output, tmp_path / "out")
    )
    assert old == new
    assert not (tmp_path / "out" / "test_results.txt").exists()


@pytest.mark.usefixtures("untraced")
def test_reads_and_spells_as_in_training(trained, tmp_path):
    """The flags of a run that was trained with IOB1, which names itself."""
    labels = ["B-MISC", "I-MISC", "I-ORG", "O"]
    found = [
        len(list(schemes.entities(["I-ORG", "O", "I-MISC"], scheme)))
        for scheme in ("IOB1", schemes.detect_scheme(labels))
    ]
    assert found == [2, 0]
    output = tmp_path / "out"
    tiny_files.write_files(output)
    (output / "labels.txt").write_text("".join(f"{x}\n" for x in labels))
    (output / "flags.txt").write_text(
        "--scheme=IOB1\n--context=document\n--do_lower_case=true\n"
        "--token_column=0\n--max_seq_length=16\n"
    )
    bert = modeling.Bert(tiny_files.CONFIG)
    trained_weights.write(output, heads.BertTagger(bert, 4))
    arguments = [
        *("--do_predict", "--check_only", f"--output_dir={output}"),
        *(f"--test_file={trained.files}/test.conll", "--max_seq_length=16"),
        "--test_has_labels=false",
    ]
    done = trained.run(tmp_path, *arguments)
    assert "The scheme of the 4 labels: IOB1." in done.stderr
    assert "--context=document, as in training." in done.stderr
    done = trained.run(tmp_path, *arguments, "--context=sentence")
    (said,) = [x for x in done.lines if "read in a different way" in x]
    assert said.endswith("context was document and is sentence")
    done = trained.run(tmp_path, *arguments, "--scheme=BIO", code=1)
    assert "was trained with --scheme=IOB1: give the same" in done.lines[-1]
    assert done.lines[-1].endswith("Received: scheme=BIO")


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize(
    ("words", "expected"),
    [("我 在 北 京 。", "我|在|北|京|。|a"), ("我 在 北京 。", "我在北京。a")],
)
def test_chinese_texts_are_split_as_in_training(
    trained, tmp_path, words, expected
):
    train = tmp_path / "train.conll"
    lines = [f"{word} {'XY'[i % 2]}" for i, word in enumerate(words.split())]
    train.write_text("\n".join(lines) + "\n\n", "utf-8")
    output = tmp_path / "out"
    trained.run(
        *(tmp_path, *trained.flags, "--do_train", f"--train_file={train}"),
        *("--num_train_epochs=4", f"--output_dir={output}"),
    )
    (answer,) = bert_tf.load(output)(["我在北京。a"])
    # Without a scheme, each word is an entity.
    assert [x["text"] for x in answer["entities"]] == expected.split("|")


@pytest.mark.usefixtures("untraced")
def test_labels_corrected_before_the_first_checkpoint(trained, tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / "labels.txt").write_text("B-lok\nB-per\nI-per\nO\n")
    (output / "flags.txt").write_text("# python run_ner.py\n")
    arguments = [
        *(*trained.flags, "--do_train", "--check_only"),
        f"--train_file={trained.files}/train.conll",
        f"--output_dir={output}",
    ]
    done = trained.run(tmp_path, *arguments)
    assert "Found nothing that would stop this run" in done.stderr
    tf1_files.write(
        str(output / "model.ckpt-1"), {"global_step": np.array(1, np.int64)}
    )
    done = trained.run(tmp_path, *arguments, code=1)
    assert "was trained with other labels: B-lok" in done.lines[-1]
