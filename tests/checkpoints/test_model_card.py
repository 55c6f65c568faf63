"""The model card of a Hugging Face folder."""

import dataclasses
import json
import re
import shutil
from typing import Any

from bert_tf import modeling
from bert_tf.checkpoints import formats, huggingface_names
from tests import exports, scripts
from tests import huggingface_models as hf
from tests import interop_samples as samples

import huggingface_hub
import pytest
import transformers

pytestmark = pytest.mark.slow

_CONFIG = modeling.BertConfig(**samples.SMALL)
_HEADS = huggingface_names.find_tables(_CONFIG, "encoder").heads
_TASKS = {
    "classification": "text-classification",
    "tagging": "token-classification",
    "span": "question-answering",
    "multiple_choice": "multiple-choice",
    "masked_lm": "fill-mask",
    "pretraining": "fill-mask",
    "encoder": "feature-extraction",
    "next_sentence": None,
}


def convert(folder, model, **given):
    """Writes a model for Hugging Face; returns its card."""
    source = samples.source(folder / "tf1", model, **given)
    formats.write(str(folder / "hf"), "hf", source)
    return (folder / "hf" / "README.md").read_text()


def run_code(card):
    """Runs the Python code of a card; returns its variables."""
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    assert code.count("\n") <= 3
    defined: dict = {}
    exec(code, defined)
    return defined


@pytest.mark.parametrize("head", _TASKS)
def test_what_it_says_of_a_model(tmp_path, head, monkeypatch):
    labels = [f"label {i}" for i in range(3)]
    has_labels = head in ("classification", "tagging")
    model = samples.random_model(head, _CONFIG)
    card = convert(tmp_path, model, labels=labels if has_labels else ())
    metadata = huggingface_hub.metadata_load(tmp_path / "hf" / "README.md")
    expected: dict[str, Any] = {
        "library_name": "transformers",
        "tags": ["bert_tf", "bert"],
    }
    if _TASKS[head]:
        expected["pipeline_tag"] = _TASKS[head]
    assert metadata == expected
    theirs = hf.load(tmp_path / "hf", _HEADS[head].architecture)
    assert f"parameters | {theirs.num_parameters():,}\n" in card
    assert f"max length | {_CONFIG.max_position_embeddings} tokens\n" in card
    for label in labels:
        assert (f"\n    {label}\n" in card) == has_labels
    for title in ("Training", "Evaluation"):
        assert f"## {title}" not in card
    monkeypatch.chdir(tmp_path)
    model = run_code(card)["model"]
    kind = type(getattr(model, "model", model)).__name__
    assert kind == _HEADS[head].architecture


def test_a_card_that_is_there_stays(tmp_path):
    model = samples.random_model("encoder", _CONFIG)
    convert(tmp_path, model)
    source = formats.open_checkpoint(str(tmp_path / "tf1"))
    for text in ("My model.", ""):
        (tmp_path / "hf" / "README.md").write_text(text)
        for output_format in ("tf1", "hf"):
            path = str(tmp_path / "hf")
            formats.write(path, output_format, source, overwrite=True)
            assert (tmp_path / "hf" / "README.md").read_text() == text


def test_no_card_in_other_formats(tmp_path):
    samples.source(tmp_path / "tf1", samples.random_model("encoder", _CONFIG))
    source = formats.open_checkpoint(str(tmp_path / "tf1"))
    formats.write(str(tmp_path / "again"), "tf1", source)
    assert not (tmp_path / "again" / "README.md").exists()


def write_run(folder):
    """Writes a run of a classifier: its scores are those of step 7."""
    exports.write_run(
        folder,
        "one text",
        *("--learning_rate=3e-05", "--train_file=/home/me/train.tsv"),
        *("--init_checkpoint=google-bert/bert-base-uncased",),
    )
    (folder / "train_examples.json").write_text(json.dumps({"records": 1234}))
    (folder / "eval_results.txt").write_text(
        "eval_accuracy = 0.875\nglobal_step = 7\n"
    )


def test_what_it_says_of_a_run(tmp_path, monkeypatch):
    constants = pytest.importorskip(
        "huggingface_hub.constants", reason="needs the extra `huggingface-hub`"
    )
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    base = tmp_path / "cache" / "models--google-bert--bert-base-uncased"
    base.mkdir(parents=True)
    write_run(tmp_path / "run")
    source = formats.open_checkpoint(str(tmp_path / "run"))
    source = dataclasses.replace(source, run=str(tmp_path / "run"))
    formats.write(str(tmp_path / "hf"), "hf", source)
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "Trained on 1,234 records" in card
    assert "`--learning_rate` | 3e-05\n" in card
    assert f"`--max_seq_length` | {exports.LENGTH}\n" in card
    assert f"max length | {exports.LENGTH} tokens\n" in card
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert theirs.model_max_length == exports.LENGTH
    cased = dataclasses.replace(source, do_lower_case=False)
    (note,) = formats.write(str(tmp_path / "tf1"), "tf1", cased).notes
    assert note.endswith(
        f" --do_lower_case=false --max_seq_length={exports.LENGTH}."
    )
    assert "`--init_checkpoint` | google-bert/bert-base-uncased\n" in card
    assert "eval_accuracy | 0.875\n" in card
    assert "/home/me" not in card
    # It may be a local folder that was removed.
    base.rmdir()
    shutil.rmtree(tmp_path / "hf")
    formats.write(str(tmp_path / "hf"), "hf", source)
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "bert-base-uncased" not in card
    # The scores belong to other weights of the run.
    (tmp_path / "run" / "eval_results.txt").write_text(
        "eval_accuracy = 0.875\nglobal_step = 9\n"
    )
    shutil.rmtree(tmp_path / "hf")
    formats.write(str(tmp_path / "hf"), "hf", source)
    card = (tmp_path / "hf" / "README.md").read_text()
    assert "eval_accuracy" not in card


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--layers=0",)])
def test_only_weights_of_the_run_have_its_scores(tmp_path, flags):
    write_run(tmp_path / "run")
    run = scripts.run(
        tmp_path / "log",
        "convert_checkpoint",
        f"--input_checkpoint={tmp_path}/run",
        f"--output_path={tmp_path}/hf",
        "--output_format=hf",
        *flags,
    )
    assert run.wait() == 0, run.stderr
    card = (tmp_path / "hf" / "README.md").read_text()
    assert ("eval_accuracy" in card) == (not flags)
