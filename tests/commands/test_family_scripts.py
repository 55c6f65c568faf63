"""Runs every script on RoBERTa, ALBERT and symbols, with learned vocabularies.

Each begins with the folder that pre-training left: config and vocabulary lie
beside the weights, and no flag names them again. What transformers makes of
the converted folder is the reference of ids and hidden states.
"""

import json
import random
import re
from typing import Any

import bert_tf
from bert_tf import vocabularies
from bert_tf.checkpoints import formats
from tests import combinations, family_runs, saved_models, tiny_model
from tests.family_runs import (
    KINDS,
    LENGTH,
    PAIRS,
    WORDS,
    ask,
    assert_same_answers,
    extract,
    fine_tune,
    ids_of,
    json_lines,
    run,
)
from tests.huggingface_models import torch, transformers

import numpy as np
import pytest

pytestmark = pytest.mark.slow


def families(*chosen, every=KINDS):
    """Runs a test on families, beyond the chosen ones exhaustively."""
    return pytest.mark.parametrize("name", combinations.some(chosen, every))


# Those of text: what is between words is no part of them.
_TEXT = ("roberta", "albert")


def stranger(folder, kind, export, **inputs):
    """Serves rows in a process without this package."""
    asked = {"": saved_models.Asked(export, inputs)}
    return saved_models.serve_all_elsewhere(folder, asked, kind.ops)[""]


@pytest.fixture(name="kind")
def _kind(name):
    return KINDS[name]


@pytest.fixture(name="model")
def _model(name):
    return family_runs.model(name)


@pytest.fixture(name="converted")
def _converted(model):
    return model.parent / "hf"


@pytest.fixture(name="theirs")
def _theirs(converted):
    return transformers.AutoTokenizer.from_pretrained(str(converted))


@pytest.fixture(name="words_of")
def _words_of(converted, kind):
    return transformers.AutoTokenizer.from_pretrained(
        str(converted), **kind.words
    )


@families(*KINDS)
def test_the_folder_says_all(model, kind):
    files = vocabularies.find(model)
    assert files and files.kind == kind.vocabulary
    for name, content in files.contents.items():
        assert content == (model.parent / name).read_bytes()
    # Other names of flags are not kept.
    kept = (model / "flags.txt").read_text()
    assert f"--vocab_file={model.parent / kind.file}\n" in kept
    assert "spm_model_file" not in kept and "albert_config_file" not in kept


@pytest.fixture(name="states_of")
def _states_of(converted):
    model = transformers.AutoModel.from_pretrained(str(converted)).eval()
    return torch.no_grad()(lambda x: model(**x).last_hidden_state[0].numpy())


@families("albert")
@pytest.mark.usefixtures("untraced")
def test_hidden_states_are_those_of_transformers(
    model, states_of, theirs, tmp_path
):
    texts = [x.strip() for pair in PAIRS for x in pair if x.strip()]
    flags = ("--layers=-1", "--batch_size=4")
    found = extract(tmp_path, model, texts, *flags)
    for text, line in zip(texts, found, strict=True):
        inputs = theirs(text, return_tensors="pt")
        pieces = theirs.convert_ids_to_tokens(inputs["input_ids"][0])
        assert [x["token"] for x in line["features"]] == pieces
        values = [x["layers"][0]["values"] for x in line["features"]]
        np.testing.assert_allclose(values, states_of(inputs), atol=1e-5)


@families("roberta")
@pytest.mark.usefixtures("untraced")
def test_vectors_of_words(model, states_of, words_of, tmp_path):
    texts = ["The cat sat", "  東京 😀  naïve, café.", "Anna"]
    flags = ("--unit=word", "--features=last")
    found = extract(tmp_path, model, texts, *flags)
    for text, line in zip(texts, found, strict=True):
        words = text.split()
        inputs = words_of(words, is_split_into_words=True, return_tensors="pt")
        states = states_of(inputs)
        features = [x for x in line["features"] if x["token"] in words]
        assert [x["token"] for x in features] == words
        for number, feature in enumerate(features):
            own = [i for i, x in enumerate(inputs.word_ids(0)) if x == number]
            np.testing.assert_allclose(
                feature["layers"][0]["values"],
                states[own].mean(axis=0),
                atol=1e-5,
            )


@families("roberta", every=_TEXT)
@pytest.mark.usefixtures("untraced")
def test_more_rows_of_a_table(model, tmp_path):
    lines = [f"{i}\t{first}" for i, (first, _) in enumerate(PAIRS)]
    (tmp_path / "in.tsv").write_text("\n".join(["n\ttext", *lines]), "utf-8")
    run(
        *("augment_data", f"--init_checkpoint={model}", "--candidates=3"),
        *(f"--input_file={tmp_path}/in.tsv", f"--max_seq_length={LENGTH}"),
        *(f"--output_file={tmp_path}/out.tsv", "--augmentation_copies=5"),
    )
    (_, *rows) = (tmp_path / "out.tsv").read_text("utf-8").splitlines()
    assert len(rows) > 2 * len(lines)
    for row in rows:
        number, text = row.split("\t")
        # Whatever was replaced, by a word in the same place.
        words = r"[^\W\d_]+"
        before = PAIRS[int(number)][0]
        assert re.split(words, text) == re.split(words, before)


@families("albert", every=_TEXT)
def test_formats_and_back(model, converted, tmp_path):
    source = formats.open_checkpoint(str(model))
    for number, (first, form) in enumerate(
        [(model, "keras_hub"), (converted, "tf1"), (tmp_path / "0", "tf1")]
    ):
        run(
            *("convert_checkpoint", f"--input_checkpoint={first}"),
            f"--output_format={form}",
            f"--output_path={tmp_path}/{number}",
        )
        found = formats.open_checkpoint(f"{tmp_path}/{number}")
        assert source.vocab is not None
        assert found.vocab is not None
        assert not vocabularies.difference(source.vocab, found.vocab)
        names = [x for x in found.shapes if x.startswith("bert/encoder")]
        assert len(names) > 10
        wanted, values = source.read(names), found.read(names)
        for name in names:
            np.testing.assert_array_equal(values[name], wanted[name])


@families("roberta", every=_TEXT)
@pytest.mark.usefixtures("untraced")
def test_masked_words(model, kind, theirs, tmp_path):
    texts = ["The [MASK] sat.", "[MASK] old dog", "Anna sees [MASK]"]
    lines = [{"text": x} for x in (*texts, "naïve[MASK] 😀 東京 [MASK]")]
    found = ask(tmp_path, lines, f"--model_dir={model}", "--top_k=400")
    begins = set()
    for text, answer in zip(texts, found, strict=False):
        row = theirs(text.replace("[MASK]", theirs.mask_token))["input_ids"]
        at = row.index(theirs.mask_token_id)
        (mask,) = answer["masks"]
        for fill in mask:
            number = theirs.convert_tokens_to_ids(fill["piece"])
            if number in theirs.all_special_ids or not fill["text"].isascii():
                continue
            row[at] = number
            kept = {"clean_up_tokenization_spaces": False}
            wanted = theirs.decode(row, skip_special_tokens=True, **kept)
            filled = fill["text"]
            # Theirs is spelt of pieces, which are of lower-cased texts.
            if kind.vocabulary == "sentence_pieces":
                filled = filled.lower()
            assert filled.strip() == wanted.strip()
            begins.add(fill["piece"][0] in "▁Ġ")
    # Both pieces that begin words and pieces that go on were tried.
    assert begins == {True, False}


@families("albert")
def test_classifier_of_pairs(model, kind, theirs, tmp_path):
    rows = ["id\ta\tb\tlabel"]
    for i in range(32):
        first, second = PAIRS[i % len(PAIRS)]
        rows.append(f"{i}\t{first} {i}\t{second}\t{i % 2}")
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join(rows) + "\n", "utf-8")
    flags = ("--text_a_column=a", "--text_b_column=b")
    output = fine_tune("run_classifier", model, file, *flags)
    pairs = [tuple(row.split("\t")[1:3]) for row in rows[1:]]
    wanted = [theirs(*[x for x in pair if x])["input_ids"] for pair in pairs]
    rows_read = ids_of(output / "predict.tf_record")
    assert rows_read[: len(pairs)] == wanted
    predictions = json_lines(output / "predictions.jsonl")
    texts = zip(("text_a", "text_b"), zip(*pairs, strict=True), strict=True)
    served = stranger(tmp_path, kind, output / "export", **dict(texts))
    np.testing.assert_allclose(
        served["probabilities"],
        [list(x["probabilities"].values()) for x in predictions],
        atol=1e-5,
    )
    with tiny_model.untraced():
        assert_same_answers(bert_tf.load(output)(pairs), predictions)


@pytest.mark.exhaustive
@families(*KINDS)
def test_tagger(model, kind, words_of, tmp_path):
    rng = random.Random(0)
    tags = {"Anna": "B-per", "Smith": "I-per", "東京": "B-loc"}
    # Texts are split at punctuation, whatever the words of a file are; symbols
    # keep it.
    marks = "" if kind.vocabulary == "symbols" else ".,"
    plain = [word.strip(marks or None) for word in WORDS]
    sentences = [["Anna", "Smith", *rng.sample(plain, 6)] for _ in range(24)]
    text = "\n".join(
        "".join(f"{x} {tags.get(x, 'O')}\n" for x in words)
        for words in sentences
    )
    file = tmp_path / "data.conll"
    file.write_text(text, "utf-8")
    # So that it finds some.
    flags = ("--learning_rate=0.01", "--num_train_epochs=10")
    output = fine_tune("run_ner", model, file, *flags)
    assert ids_of(output / "test.tf_record")[: len(sentences)] == [
        words_of(words, is_split_into_words=True)["input_ids"]
        for words in sentences
    ]
    predictions = json_lines(output / "test_entities.jsonl")
    assert [x["text"].split(" ") for x in predictions] == sentences
    assert any(x["entities"] for x in predictions)
    found = ask(
        *(tmp_path, [{"text": x["text"]} for x in predictions]),
        f"--saved_model={output}/export",
    )
    texts = [x["text"] for x in predictions]
    rows = stranger(tmp_path, kind, output / "export", text=texts)
    for i, (answer, prediction) in enumerate(
        zip(found, predictions, strict=True)
    ):
        entities = prediction["entities"]
        assert answer["entities"] == entities
        served = rows["text"][i][: rows["count"][i]]
        assert served == [x["text"] for x in entities]


@families("roberta")
def test_answers_to_questions(model, tmp_path):
    rng = random.Random(0)
    paragraphs: list[dict[str, Any]] = []
    for i in range(24):
        words = rng.choices(WORDS, k=40)
        context = " ".join(words)
        at = rng.randrange(39)
        start = len(" ".join(words[:at])) + bool(at)
        answer = {"text": words[at], "answer_start": start}
        question = {"id": str(i), "question": f"{words[at]}?"}
        paragraphs.append(
            {"context": context, "qas": [{**question, "answers": [answer]}]}
        )
    file = tmp_path / "squad.json"
    file.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    flags = ("--doc_stride=8", "--max_query_length=8")
    output = fine_tune("run_squad", model, file, *flags)
    wanted = json.loads((output / "predictions.json").read_text())
    lines = [
        {"question": x["qas"][0]["question"], "context": x["context"]}
        for x in paragraphs
    ]
    found = ask(tmp_path, lines, f"--saved_model={output}/export")
    assert [x["answer"] for x in found] == list(wanted.values())
    assert len(set(wanted.values())) > 4
    for line, answer in zip(lines, found, strict=True):
        place = slice(answer["start"], answer["end"])
        assert line["context"][place] == answer["answer"]


@pytest.mark.exhaustive
@families(*KINDS)
def test_choices(model, tmp_path):
    rng = random.Random(0)
    problems = [
        {
            "prompt": f"{rng.choice(WORDS)} Anna",
            "choices": rng.sample(WORDS, 3),
            "label": i % 3,
        }
        for i in range(16)
    ]
    file = tmp_path / "problems.jsonl"
    file.write_text("".join(f"{json.dumps(x)}\n" for x in problems))
    output = fine_tune("run_multiple_choice", model, file)
    predictions = json_lines(output / "test_predictions.jsonl")
    lines = [{x: row[x] for x in ("prompt", "choices")} for row in problems]
    found = ask(tmp_path, lines, f"--saved_model={output}/export")
    assert_same_answers(found, predictions)
