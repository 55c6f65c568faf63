"""XLNet from texts to answers, compared with transformers."""

import json

import bert_tf
from bert_tf.checkpoints import formats, tokenizer_files
from tests import family_runs as runs
from tests import pretraining_runs, scripts, tiny_files, tiny_model
from tests.contrib import test_xlnet_vocabulary
from tests.huggingface_models import torch, transformers

import numpy as np
import pytest

pytestmark = pytest.mark.slow

_LABELS = ("bad", "good", "so so")
_TEXTS = [
    "the ''end'' of the words",
    "Rows of café, and the 9 others",
    "a",
    "it is the longest of all texts here, with words and 30 numbers.",
]
_PAIRS = list(zip(_TEXTS, [*_TEXTS[1:], _TEXTS[0]], strict=True))


def _write(folder, architecture, layers=2):
    """Writes a model of transformers with its tokenizer."""
    torch.manual_seed(0)
    vocabulary = test_xlnet_vocabulary.vocabulary()
    config = transformers.XLNetConfig(
        vocab_size=len(vocabulary.pieces),
        d_model=16,
        n_layer=layers,
        n_head=2,
        d_inner=24,
        initializer_range=0.3,
        id2label=dict(enumerate(_LABELS)),
    )
    model = getattr(transformers, architecture)(config).eval()
    model.save_pretrained(folder)
    tokenizer_files.write(str(folder), vocabulary, max_length=64)
    return model


def _their_probabilities(folder, rows):
    """Returns [B, C]; rows are padded at the left by their tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = transformers.XLNetForSequenceClassification
    model = kind.from_pretrained(folder).eval()
    inputs = tokenizer(rows, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model(**inputs).logits
    return torch.softmax(logits, -1).numpy()


def _asked(rows):
    return [{"text_a": a, "text_b": b} for a, b in rows]


def _probabilities(answers):
    return [[x["probabilities"][y] for y in _LABELS] for x in answers]


def test_a_classifier_of_transformers(tmp_path):
    _write(tmp_path / "theirs", "XLNetForSequenceClassification", 1)
    model = bert_tf.load(tmp_path / "theirs", max_seq_length=40)
    bert_tf.export(model, tmp_path / "export")
    exported = bert_tf.load(tmp_path / "export")
    for rows, asked in (
        (_TEXTS, [{"text": x} for x in _TEXTS]),
        (_PAIRS, _asked(_PAIRS)),
    ):
        expected = _their_probabilities(tmp_path / "theirs", rows)
        # The tokens follow the vocabulary, which is made from a manual.
        assert np.ptp(expected, axis=0).max() > 0.01
        with tiny_model.untraced():
            answers = model(asked)
        for found in (answers, exported(asked)):
            np.testing.assert_allclose(
                _probabilities(found), expected, atol=1e-5
            )
    with pytest.raises(ValueError, match="do not begin with <cls>"):
        bert_tf.load(tmp_path / "theirs", head="encoder", unit="cls")


def test_only_a_tokenizer_limits_texts(tmp_path):
    _write(tmp_path, "XLNetForSequenceClassification", 1)
    path = tmp_path / "tokenizer_config.json"
    values = json.loads(path.read_text())
    for limit, expected in (
        *((None, None), (1e30, None)),
        *((64, 64), (9999, 4096)),
    ):
        path.write_text(json.dumps(values | {"model_max_length": limit}))
        source = formats.open_checkpoint(str(tmp_path))
        assert source.max_seq_length == expected


@pytest.mark.exhaustive
def test_a_table(tmp_path):
    """Trained by us, answers in transformers as here."""
    _write(tmp_path / "theirs", "XLNetLMHeadModel")
    table = tmp_path / "table.jsonl"
    lines = [
        {"text": a, "other": b, "label": _LABELS[i % 3]}
        for i, (a, b) in enumerate(_PAIRS * 8)
    ]
    table.write_text("".join(f"{json.dumps(x)}\n" for x in lines))
    output = runs.fine_tune(
        *("run_classifier", tmp_path / "theirs", table),
        *("--text_b_column=other", "--do_lower_case=false"),
    )
    answers = runs.ask(tmp_path, _asked(_PAIRS), f"--model_dir={output}")
    runs.run(
        *("export_saved_model", f"--model_dir={output}"),
        f"--export_dir={tmp_path}/export",
    )
    again = runs.ask(
        tmp_path, _asked(_PAIRS), f"--saved_model={tmp_path}/export"
    )
    runs.assert_same_answers(again, answers)
    runs.run(
        *("convert_checkpoint", f"--input_checkpoint={output}"),
        *("--output_format=hf", f"--output_path={tmp_path}/hf"),
    )
    expected = _their_probabilities(tmp_path / "hf", _PAIRS)
    found = _probabilities(answers)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.exhaustive
def test_squad(tmp_path):
    _write(tmp_path / "theirs", "XLNetModel")
    context = "Anna sees the old dog. Rows of words are the end."
    question = {"question": "Who sees the dog?"}
    answer = {"answers": [{"text": "Anna", "answer_start": 0}]}
    questions = [question | answer | {"id": str(i)} for i in range(8)]
    paragraph = {"context": context, "qas": questions}
    data = {"version": "1.1", "data": [{"paragraphs": [paragraph]}]}
    file = tmp_path / "squad.json"
    file.write_text(json.dumps(data))
    output = runs.fine_tune(
        *("run_squad", tmp_path / "theirs", file),
        *("--num_train_epochs=30", "--max_query_length=16", "--doc_stride=8"),
    )
    found = json.loads((output / "predictions.json").read_text())
    assert set(found.values()) == {"Anna"}
    asked = [question | {"context": context}]
    (found,) = runs.ask(tmp_path, asked, f"--model_dir={output}")
    assert (found["answer"], found["start"], found["end"]) == ("Anna", 0, 4)


@pytest.mark.exhaustive
def test_features(tmp_path):
    theirs = _write(tmp_path / "theirs", "XLNetModel")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    found = runs.extract(tmp_path, tmp_path / "theirs", _TEXTS, "--layers=-1")
    for text, line in zip(_TEXTS, found, strict=True):
        with torch.no_grad():
            expected = theirs(**tokenizer(text, return_tensors="pt"))
        vectors = [x["layers"][0]["values"] for x in line["features"]]
        np.testing.assert_allclose(
            vectors, expected.last_hidden_state[0].numpy(), atol=1e-5
        )


def test_pretraining_from_text(tmp_path):
    """Records, pre-training, and a folder for transformers."""
    vocab, text = tmp_path / "spiece.model", tmp_path / "text.txt"
    vocab.write_bytes(test_xlnet_vocabulary.train())
    tiny_files.write_documents(text)
    config = {
        "model_type": "xlnet",
        "vocab_size": len(test_xlnet_vocabulary.vocabulary().pieces),
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "initializer_range": 0.3,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    # Its own process, where no other test has registered the vocabulary.
    created = scripts.run_process(
        *(tmp_path / "log", "create_pretraining_data", "--objective=none"),
        *("--dynamic_masking", "--masking=ngram", "--masked_lm_prob=0.1667"),
        *("--max_seq_length=32", "--max_predictions_per_seq=6"),
        *("--do_lower_case=false", "--dupe_factor=2", "--num_workers=1"),
        *(f"--input_file={text}", f"--vocab_file={vocab}"),
        f"--output_dir={tmp_path}/records",
    )
    assert created.wait() == 0, created.stderr
    runs.run(
        *("run_pretraining", f"--input_file={tmp_path}/records/*.tfrecord"),
        *(f"--bert_config_file={tmp_path}/config.json", "--do_train"),
        *(f"--vocab_file={vocab}", f"--output_dir={tmp_path}/run"),
        *("--num_train_steps=20", "--num_warmup_steps=2", "--log_steps=5"),
        *("--train_batch_size=8", "--learning_rate=1e-2"),
    )
    lines = pretraining_runs.metrics(tmp_path / "run")
    losses = [x["permuted_words_loss"] for x in lines]
    assert losses[-1] < losses[0] - 1
    runs.run(
        *("convert_checkpoint", f"--input_checkpoint={tmp_path}/run"),
        *("--output_format=hf", f"--output_path={tmp_path}/hf"),
    )
    _, info = transformers.XLNetLMHeadModel.from_pretrained(
        tmp_path / "hf", output_loading_info=True
    )
    assert not any(info.values()), info
