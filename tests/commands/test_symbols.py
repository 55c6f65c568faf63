"""Runs the scripts on rows of symbols, from counting them to served answers.

`str.split` and a dictionary are the reference of all ids.
"""

import json
import pathlib
import random

from bert_tf import vocabularies
from bert_tf.checkpoints import formats
from tests import classifier_runs, saved_models, scripts

import numpy as np
import pytest
import tensorflow as tf

pytestmark = pytest.mark.slow

_LENGTH = 24
# Any tokenizer of text would split them: marks, case, accents, op codes.
_SYMBOLS = [
    *(f"ICD:{letter}{i}.{i}" for letter in "AbÉ" for i in range(4)),
    *("COMPARE_OP:<", "x#y", "##x", "(", ")", "-", "東京", "[x]", "v_1", "V_1"),
]
# The symbol of alarming rows.
_ALARM = "COMPARE_OP:<"
_CONFIG = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
    "initializer_range": 0.1,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def _row(rng, length=8):
    """Symbols each of which is followed by one of two, often."""
    row = [rng.randrange(len(_SYMBOLS))]
    while len(row) < length:
        step = rng.choice([1, 1, 1, 2])
        row.append((row[-1] + step) % len(_SYMBOLS))
    return " ".join(_SYMBOLS[i] for i in row)


def _run(folder: pathlib.Path, script: str, *flags: str) -> scripts.Done:
    done = scripts.run(folder / f"log_{script}", script, *flags)
    assert done.wait() == 0, done.stderr
    return done


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """A vocabulary, records and a model that pre-training left: run/."""
    folder = tmp_path_factory.mktemp("symbols")
    rng = random.Random(0)
    documents = ["\n".join(_row(rng) for _ in range(6)) for _ in range(60)]
    text = "\n\n".join(documents) + "\n\nrare_1\n"
    (folder / "text.txt").write_text(text, encoding="utf-8")
    done = _run(
        *(folder, "learn_vocabulary", "--kind=symbols"),
        *(f"--input_file={folder}/text.txt", "--vocab_size=100"),
        f"--vocab_file={folder}/symbols.txt",
    )
    assert "0.035 % are [UNK]" in done.stderr
    vocabulary = vocabularies.open(folder / "symbols.txt", False)
    assert {*vocabulary.pieces[5:]} == {*_SYMBOLS}
    config = _CONFIG | {"vocab_size": len(vocabulary.pieces)}
    (folder / "config.json").write_text(json.dumps(config))
    _run(
        *(folder, "create_pretraining_data", "--dupe_factor=4"),
        *(f"--max_seq_length={_LENGTH}", "--max_predictions_per_seq=4"),
        *(f"--input_file={folder}/text.txt", f"--output_dir={folder}/records"),
        *(f"--vocab_file={folder}/symbols.txt", "--num_workers=1"),
    )
    _run(
        *(folder, "run_pretraining", "--do_train", "--do_eval"),
        *("--num_train_steps=500", "--num_warmup_steps=50"),
        *("--train_batch_size=16", "--learning_rate=3e-3"),
        *(f"--input_file={folder}/records/*.tfrecord", "--log_steps=100"),
        f"--bert_config_file={folder}/config.json",
        *(f"--vocab_file={folder}/symbols.txt", f"--output_dir={folder}/run"),
    )
    return folder


@pytest.fixture(scope="module", name="vocabulary")
def _vocabulary(folder):
    return vocabularies.open(folder / "symbols.txt", False)


def _ids(vocabulary, text):
    known = {x: i for i, x in enumerate(vocabulary.pieces) if i >= 5}
    return [2, *(known.get(x, 1) for x in text.split()), 3]


def _rows(path):
    """The ids of the rows of records, without padding."""
    rows = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        ids, mask = (
            feature[name].int64_list.value
            for name in ("input_ids", "input_mask")
        )
        rows.append(list(ids)[: sum(mask)])
    return rows


def test_pre_training(folder, vocabulary):
    found = classifier_runs.results(folder / "run" / "eval_results.txt")
    # A symbol's neighbours leave two; by chance it is one of 22. By the rule of
    # the rows 4 of 5 are right, where no neighbour is masked.
    assert found["masked_lm_accuracy"] > 0.7
    source = formats.open_checkpoint(str(folder / "run"))
    assert source.vocab == vocabularies.Files("symbols", vocabulary.files)
    shown = _run(
        *(folder, "create_pretraining_data", "--show=3"),
        *(f"--input_file={folder}/records/*.tfrecord",),
        f"--vocab_file={folder}/symbols.txt",
    )
    assert "[CLS] " in shown.stdout
    assert "[MASK→" in shown.stdout


def _fine_tune(folder, output, script, *flags):
    return _run(
        *(output, script, f"--init_checkpoint={folder}/run"),
        *("--do_train", "--do_eval", "--do_predict", "--do_export"),
        *(f"--max_seq_length={_LENGTH}", "--train_batch_size=8"),
        *("--learning_rate=1e-3", "--num_train_epochs=8"),
        *(*flags, f"--output_dir={output}/out"),
    )


def _predict(folder, saved_model, text):
    (folder / "asked.txt").write_text(f"{text}\n", encoding="utf-8")
    _run(
        *(folder, "run_prediction", f"--saved_model={saved_model}"),
        f"--input_file={folder}/asked.txt",
        f"--output_file={folder}/answers.jsonl",
    )
    (answer,) = classifier_runs.rows(folder / "answers.jsonl")
    return answer


def test_classifier(folder, vocabulary, tmp_path):
    rng = random.Random(1)
    others = [x for x in _SYMBOLS if x != _ALARM]
    rows = []
    for i in range(64):
        symbols = rng.choices(others, k=rng.randint(3, 9))
        if i % 2:
            symbols[rng.randrange(len(symbols))] = _ALARM
        rows.append((" ".join(symbols), ("calm", "alarm")[i % 2]))
    rows.append(("  unknown [MASK]\u3000x#y ", "calm"))
    table = "".join(f"{text}\t{label}\n" for text, label in rows)
    path = tmp_path / "rows.tsv"
    path.write_text(f"text\tlabel\n{table}", encoding="utf-8")
    _fine_tune(
        *(folder, tmp_path, "run_classifier", f"--train_file={path}"),
        *(f"--dev_file={path}", f"--test_file={path}"),
    )
    output = tmp_path / "out"
    results = classifier_runs.results(output / "eval_results.txt")
    assert results["eval_accuracy"] > 0.9
    texts = [text for text, _ in rows]
    wanted = [_ids(vocabulary, text) for text in texts]
    assert _rows(output / "predict.tf_record")[: len(rows)] == wanted
    predictions = classifier_runs.rows(output / "predictions.jsonl")
    asked = {"": saved_models.Asked(output / "export", {"text_a": texts})}
    # No op that is not TensorFlow's own.
    found = saved_models.serve_all_elsewhere(tmp_path, asked, ())[""]
    probabilities = [[*x["probabilities"].values()] for x in predictions]
    np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    assert _predict(tmp_path, output / "export", texts[1])["label"] == "alarm"


@pytest.mark.exhaustive
def test_labels_of_symbols(folder, tmp_path):
    rng = random.Random(2)
    sentences = []
    for _ in range(40):
        symbols = rng.choices(_SYMBOLS, k=rng.randint(2, 6))
        labels = ["B-ICD" if x.startswith("ICD") else "O" for x in symbols]
        pairs = zip(symbols, labels, strict=True)
        sentences.append("".join(f"{x} {y}\n" for x, y in pairs))
    path = tmp_path / "rows.conll"
    path.write_text("\n".join(sentences), encoding="utf-8")
    _fine_tune(
        *(folder, tmp_path, "run_ner", f"--train_file={path}"),
        *(f"--dev_file={path}", f"--test_file={path}"),
    )
    served = tf.saved_model.load(str(tmp_path / "out" / "export"))
    asked = "( ICD:A1.1 ) ICD:É2.2 ##x"
    found = served.signatures["serving_default"](text=tf.constant([asked]))
    texts = [x.decode() for x in found["text"][0].numpy()]
    # With marks at their ends, which taggers of text split off.
    assert texts == ["ICD:A1.1", "ICD:É2.2"]
    words = served.signatures["serve_words"](text=tf.constant([asked]))
    assert words["label"].shape == [1, 5]


def test_masked_symbols(folder, vocabulary, tmp_path):
    _run(
        *(tmp_path, "export_saved_model", f"--model_dir={folder}/run"),
        *("--head=masked_lm", "--top_k=3", f"--export_dir={tmp_path}/words"),
    )
    text = f"{' '.join(_SYMBOLS[:4])} [MASK] {' '.join(_SYMBOLS[5:7])}"
    (mask,) = _predict(tmp_path, tmp_path / "words", text)["masks"]
    assert {x["piece"] for x in mask} <= {*vocabulary.pieces}
    for fill in mask:
        assert fill["text"] == text.replace("[MASK]", fill["piece"])


def test_vectors_of_symbols(folder, tmp_path):
    texts = ["ICD:A1.1 (", "unknown\tV_1"]
    path = tmp_path / "lines.jsonl"
    (tmp_path / "lines.txt").write_text("\n".join(texts) + "\n")
    _run(
        *(tmp_path, "extract_features", f"--init_checkpoint={folder}/run"),
        *(f"--input_file={tmp_path}/lines.txt", "--unit=word"),
        *("--features=last", f"--max_seq_length={_LENGTH}"),
        f"--output_file={path}",
    )
    for text, line in zip(texts, classifier_runs.rows(path), strict=True):
        tokens = [x["token"] for x in line["features"]]
        assert [x for x in tokens if x in text.split()] == text.split()


def test_other_formats(folder, vocabulary, tmp_path):
    done = _run(
        *(tmp_path, "convert_checkpoint", f"--input_checkpoint={folder}/run"),
        *("--output_format=hf", f"--output_path={tmp_path}/hf"),
    )
    assert "no tokenizer of this vocabulary" not in done.stderr
    before, found = (
        formats.open_checkpoint(str(x))
        for x in (folder / "run", tmp_path / "hf")
    )
    assert found.vocab == before.vocab
    transformers = pytest.importorskip(
        "transformers", reason="needs the extra `parity`"
    )
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "hf"))
    text = "ICD:A1.1\t( unknown\x1cV_1\u3000é v_1"
    assert theirs(text)["input_ids"] == _ids(vocabulary, text)
