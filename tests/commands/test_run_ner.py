"""Runs the script's own main, on tiny data made here."""

import json
import pathlib

from bert_tf import heads, modeling, tokenization
from bert_tf.checkpoints import tf1_files
from bert_tf.tasks import tables
from bert_tf.tasks.tagging import conll as tagging_conll
from bert_tf.tasks.tagging import results as tagging_results
from bert_tf.tasks.tagging import schemes
from bert_tf.tasks.tagging import words as tagging_words
from tests import saved_models, scripts, trained_weights

import numpy as np
import pytest
import tensorflow as tf

_LINE = "the cat dog sees anna bob smith in rome berlin . ##s ##ing"
_WORDS = _LINE.split()
_VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS]
_LABELS = ("B-loc", "B-per", "I-per", "O")
_CONFIG: dict = {
    "vocab_size": len(_VOCAB),
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_LENGTH = 16


def run(folder, *arguments, code=0):
    """Runs the script in a process of its own."""
    done = scripts.run(folder / "log", "run_ner", *arguments)
    assert done.wait() == code, done.stderr
    return done


def conll(rng, sentences):
    """Sentences whose names are people and places."""
    lines = []
    for i in range(sentences):
        if i % 4 == 0:
            lines += ["-DOCSTART- X O", ""]
        for _ in range(rng.integers(2, 6)):
            kind = rng.integers(4)
            if kind == 0:
                lines += ["Anna X B-per", "Smith X I-per"]
            elif kind == 1:
                lines += [f"{rng.choice(['Rome', 'Berlin'])}s X B-loc"]
            else:
                lines += [f"{rng.choice(['the', 'cat', 'sees', 'in'])} X O"]
        lines += [". X O", ""]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "vocab.txt").write_text("\n".join(_VOCAB) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(_CONFIG))
    rng = np.random.default_rng(0)
    for name, sentences in (("train", 40), ("dev", 9), ("test", 9)):
        (folder / f"{name}.conll").write_text(conll(rng, sentences))
    return folder


@pytest.fixture(scope="module")
def model(files):
    """Flags of a tiny model and a quick run."""
    return [
        f"--vocab_file={files}/vocab.txt",
        f"--bert_config_file={files}/bert_config.json",
        # Documents have more pieces than a window.
        "--context=document",
        f"--max_seq_length={_LENGTH}",
        "--train_batch_size=4",
        "--learning_rate=0.01",
    ]


@pytest.fixture(scope="module")
def trained(files, model, tmp_path_factory):
    """A run with everything that follows training."""
    folder = tmp_path_factory.mktemp("output")
    arguments = [
        *("--do_train", "--do_eval", "--do_predict", "--do_export"),
        *model,
        f"--train_file={files}/train.conll",
        f"--dev_file={files}/dev.conll",
        f"--test_file={files}/test.conll",
        "--num_train_epochs=12",
        f"--output_dir={folder}",
    ]
    run(folder, *arguments)
    return folder, arguments


def best_checkpoint(folder):
    (prefix,) = tf1_files.numbered(str(folder / "best")).values()
    return prefix


def values(path):
    lines = pathlib.Path(path).read_text().splitlines()
    return {k: float(v) for k, v in (line.split(" = ") for line in lines)}


def test_learns_the_entities(trained):
    folder, _ = trained
    assert (folder / "labels.txt").read_text().split() == list(_LABELS)
    results = values(folder / "eval_results.txt")
    assert set(results) == {
        *("eval_accuracy", "eval_precision", "eval_recall", "eval_f1"),
        *("eval_conlleval_precision", "eval_conlleval_recall"),
        "eval_conlleval_f1",
        *("eval_loss", "loss", "global_step"),
    }
    assert results["eval_f1"] > 0.9
    assert values(folder / "test_results.txt")["eval_f1"] > 0.9
    report = (folder / "eval_report.txt").read_text().splitlines()
    assert [line.split()[0] for line in report[1:]] == ["loc", "per", "all"]


def python_labels(folder, texts):
    """Labels the words of texts without records, each from all windows."""
    model = heads.BertTagger(
        modeling.Bert(modeling.BertConfig(**_CONFIG)), len(_LABELS)
    )
    found = tf1_files.read(
        best_checkpoint(folder), [v.path for v in model.variables]
    )
    for variable in model.variables:
        variable.assign(found[variable.path])
    tokenizer = tokenization.FullTokenizer.from_vocab(
        {piece: i for i, piece in enumerate(_VOCAB)}
    )
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


def test_predictions(trained, files):
    folder, _ = trained
    given, written = (
        [line.strip() for _, line in tables.lines(str(path))]
        for path in (files / "test.conll", folder / "test_predictions.conll")
    )
    assert [line.rpartition(" ")[0] for line in written] == given
    columns = tagging_conll.Columns()
    sentences = tagging_conll.read(str(files / "test.conll"), columns)
    predicted = tagging_conll.read(
        str(folder / "test_predictions.conll"), columns
    )
    labels = [x for sentence in predicted for x in sentence.labels]
    documents = [
        [word for sentence in group for word in sentence.words]
        for group in tagging_words.group(sentences, "document")
    ]
    assert max(map(len, documents)) > _LENGTH, "some take several windows"
    assert labels == python_labels(folder, documents)
    results = tagging_results.results(sentences, labels, "BIO")
    f1 = values(folder / "test_results.txt")["eval_f1"]
    assert f1 == pytest.approx(results["eval_f1"], abs=1e-6)
    lines = (folder / "test_entities.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["line"] for row in rows] == [x.lines[0] for x in sentences]
    assert "Anna Smith" in {x["text"] for row in rows for x in row["entities"]}


def test_check_only_says_what_it_found_and_writes_nothing(
    trained, files, model, tmp_path
):
    found = run(
        tmp_path,
        *("--do_train", "--do_eval", "--check_only", *model),
        f"--train_file={files}/train.conll",
        f"--dev_file={files}/dev.conll",
        f"--init_checkpoint={best_checkpoint(trained[0])}",
        f"--output_dir={tmp_path}/out",
    )
    for text in (
        "Data: 40 train sentences",
        "Data: 9 dev sentences",
        "scheme of the 4 labels: BIO",
        "Restored ",
        "Found nothing that would stop this run",
    ):
        assert text in found.stderr
    assert not (tmp_path / "out").exists()


def test_same_command_again_does_no_more(trained):
    folder, arguments = trained
    before = (folder / "test_predictions.conll").read_bytes()
    again = run(folder, *arguments, "--do_export=false")
    assert "has made all" in again.stderr
    assert (folder / "test_predictions.conll").read_bytes() == before


def test_predicts_words_without_labels(trained, files, model, tmp_path):
    folder, _ = trained
    lines = (files / "test.conll").read_text().split("\n")
    words = [line.partition(" ")[0] for line in lines]
    (tmp_path / "words.conll").write_text("\n".join(words))
    run(
        tmp_path,
        *model,
        "--do_predict",
        "--test_has_labels=false",
        f"--init_checkpoint={best_checkpoint(folder)}",
        f"--test_file={tmp_path}/words.conll",
        f"--output_dir={tmp_path}/out",
    )
    old, new = (
        tagging_conll.read(
            str(path / "test_predictions.conll"), tagging_conll.Columns()
        )
        for path in (folder, tmp_path / "out")
    )
    assert [x.labels for x in old] == [x.labels for x in new]
    assert not (tmp_path / "out" / "test_results.txt").exists()


def test_reads_and_spells_as_in_training(files, model, tmp_path):
    """The flags of a run that was trained with IOB1, which names itself."""
    labels = ["B-MISC", "I-MISC", "I-ORG", "O"]
    found = [
        len(list(schemes.entities(["I-ORG", "O", "I-MISC"], scheme)))
        for scheme in ("IOB1", schemes.detect_scheme(labels))
    ]
    assert found == [2, 0]
    output = tmp_path / "out"
    output.mkdir()
    (output / "labels.txt").write_text("".join(f"{x}\n" for x in labels))
    (output / "flags.txt").write_text(
        "--scheme=IOB1\n--context=document\n--do_lower_case=true\n"
        "--token_column=0\n--max_seq_length=16\n"
    )
    config = modeling.BertConfig.from_dict(_CONFIG)
    trained_weights.write(output, heads.BertTagger(modeling.Bert(config), 4))
    arguments = [
        *(x for x in model if not x.startswith("--context=")),
        *("--do_predict", "--check_only", f"--output_dir={output}"),
        *("--test_has_labels=false", f"--test_file={files}/test.conll"),
    ]
    done = run(tmp_path, *arguments)
    assert "The scheme of the 4 labels: IOB1." in done.stderr
    assert "--context=document, as in training." in done.stderr
    done = run(tmp_path, *arguments, "--context=sentence")
    (said,) = [x for x in done.lines if "read in another way" in x]
    assert said.endswith("context was document and is sentence")
    done = run(tmp_path, *arguments, "--scheme=BIO", code=1)
    assert "was trained with --scheme=IOB1: give the same" in done.lines[-1]
    assert done.lines[-1].endswith("Received: scheme=BIO")


def test_labels_corrected_before_the_first_checkpoint(files, model, tmp_path):
    output = tmp_path / "out"
    output.mkdir()
    (output / "labels.txt").write_text("B-lok\nB-per\nI-per\nO\n")
    (output / "flags.txt").write_text("# python run_ner.py\n")
    arguments = [
        *(*model, "--do_train", f"--train_file={files}/train.conll"),
        *("--check_only", f"--output_dir={output}"),
    ]
    done = run(tmp_path, *arguments)
    assert "Found nothing that would stop this run" in done.stderr
    tf1_files.write(
        str(output / "model.ckpt-1"), {"global_step": np.array(1, np.int64)}
    )
    done = run(tmp_path, *arguments, code=1)
    assert "was trained with other labels: B-lok" in done.lines[-1]


_TRAIN = ("--do_train", "--train_file={files}/train.conll")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (_TRAIN[1:], "At least one of --do_train"),
        (_TRAIN[:1], "Give --train_file, the train set."),
        ((*_TRAIN, "--scheme=IO"), "label='B-loc'"),
        (
            (*_TRAIN, "--do_eval", "--dev_file={folder}/new.conll"),
            "new.conll, line 1: this label is not one of those trained on",
        ),
        (
            (
                "--do_train",
                "--train_file={folder}/new.conll",
                "--init_checkpoint={best}",
            ),
            "was trained with 4 labels",
        ),
        (
            ("--do_predict", "--test_file={files}/test.conll"),
            "There is no trained model: --output_dir=",
        ),
    ],
)
def test_refusals(arguments, problem, trained, files, model, tmp_path):
    (tmp_path / "new.conll").write_text("a X B-new\n\nb X O\n")
    names = {
        "files": files,
        "folder": tmp_path,
        "best": best_checkpoint(trained[0]),
    }
    done = run(
        tmp_path,
        *model,
        f"--output_dir={tmp_path}/out",
        *(argument.format(**names) for argument in arguments),
        code=1,
    )
    assert problem in done.lines[-1], done.stderr
    assert not (tmp_path / "out").exists()


# ---- Real data ---------------------------------------------------------------


@pytest.mark.slow
def test_wnut_served_by_a_stranger_as_predicted(shared_data, tmp_path):
    """1,000 real sentences, from a process without this package."""
    data = shared_data / "ner" / "wnut17"
    vocab = shared_data / "vocab" / "bert_uncased.txt"
    number = len(vocab.read_text("utf-8").splitlines())
    config = _CONFIG | {"vocab_size": number, "max_position_embeddings": 64}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    run(
        tmp_path,
        *("--do_train", "--do_predict", "--do_export"),
        f"--vocab_file={vocab}",
        f"--bert_config_file={tmp_path}/bert_config.json",
        f"--train_file={data}/wnut17train.conll",
        f"--test_file={data}/emerging.test.annotated",
        # Some sentences take several windows.
        "--max_seq_length=48",
        "--predict_batch_size=64",
        "--train_batch_size=8",
        "--learning_rate=0.003",
        "--num_train_epochs=3",
        f"--output_dir={tmp_path}/out",
    )
    columns = tagging_conll.Columns()
    path = tmp_path / "out" / "test_predictions.conll"
    sentences = tagging_conll.read(str(path), columns)[:1000]
    lines = (tmp_path / "out" / "test_entities.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in lines.split("\n")[:1000]]
    texts = [row["text"] for row in rows]
    assert all(
        tuple(t.split()) == s.words
        for t, s in zip(texts, sentences, strict=True)
    )
    served = saved_models.serve_elsewhere(
        tmp_path, tmp_path / "out" / "export", "serve_words", text=texts
    )
    entities = 0
    for i, (sentence, row) in enumerate(zip(sentences, rows, strict=True)):
        count = served["count"][i]
        assert list(filter(None, served["label"][i])) == list(sentence.labels)
        for name in ("start", "end"):
            expected = [x[name] for x in row["entities"]]
            assert served[name][i][:count] == expected
        entities += count
    assert entities, "or there is nothing to compare"
