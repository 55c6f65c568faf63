"""Runs every script on RoBERTa and ALBERT, with vocabularies learned here.

Each begins with the folder that pre-training left: config and vocabulary lie
beside the weights, and no flag names them again. What transformers makes of
the converted folder is the reference of ids and hidden states.
"""

import dataclasses
import json
import pathlib
import random
import re
from typing import Any

import bert_tf
from bert_tf import vocabularies
from bert_tf.checkpoints import formats
from bert_tf.tasks import tables
from tests import scripts

import numpy as np
import pytest
import tensorflow as tf

torch = pytest.importorskip("torch", reason="needs the extra `parity`")
transformers = pytest.importorskip(
    "transformers", reason="needs the extra `parity`"
)

pytestmark = pytest.mark.slow

_SIZE = 600  # at most: sentence pieces that no text needs are left out
_LENGTH = 48
_SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    # Other texts get other answers, also with little training.
    "initializer_range": 0.3,
}


@dataclasses.dataclass(frozen=True)
class _Kind:
    """How a model of the family is made.

    Attributes:
        vocabulary: The kind of vocabulary that it has.
        file: The name that a vocabulary is learned under.
        flags: The names of the flags of config and vocabulary, ALBERT's own.
        objective: What it is pre-trained on.
        config: Of the model.
        words: How its tokenizer of transformers is to take single words.
    """

    vocabulary: str
    file: str
    flags: tuple[str, str]
    objective: str
    config: dict[str, Any]
    words: dict[str, Any]


_KINDS = {
    "roberta": _Kind(
        vocabulary="byte_pairs",
        file="vocab.json",
        flags=("bert_config_file", "vocab_file"),
        objective="full_sentences",
        config={
            **_SHAPE,
            "model_type": "roberta",
            "type_vocab_size": 1,
            "hidden_act": "gelu_erf",
            "layer_norm_eps": 1e-5,
        },
        words={"add_prefix_space": True},
    ),
    "albert": _Kind(
        vocabulary="sentence_pieces",
        file="spiece.model",
        flags=("albert_config_file", "spm_model_file"),
        objective="sop",
        config={
            **_SHAPE,
            "model_type": "albert",
            "type_vocab_size": 2,
            "hidden_act": "gelu",
            "embedding_size": 8,
            "num_hidden_groups": 1,
            "inner_group_num": 1,
        },
        words={},
    ),
}

# ---- Data -------------------------------------------------------------------

_LINE = "The cat sat café naïve 東京 😀 Anna Smith sees dog, old. ran"
_WORDS = _LINE.split()
_PAIRS = [
    ("The cat sat.", "It sat."),
    ("東京 😀 naïve", "café"),
    ("The cat", ""),
    ("👩‍👩 𝔘 ﬁne", "Ａ e\u0301 ☃"),
    ("  two  spaces ", "no\u00a0break"),
    ("the old dog, Anna", "sees the 東京"),
]


def _text() -> str:
    """Documents of made words, enough of them for the pieces."""
    rng = random.Random(0)
    parts = [a + b for a in "bcdfghklmnprstw" for b in ("a", "en", "io", "u")]
    made = [
        "".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in range(800)
    ]
    documents = []
    for _ in range(120):
        sentences = [
            " ".join(rng.choices(made, k=6) + rng.choices(_WORDS, k=6)) + "."
            for _ in range(8)
        ]
        documents.append("\n".join(sentences))
    letters = " ".join(map(chr, range(33, 127)))
    return "\n\n".join([*documents, letters]) + "\n"


def _run(folder: pathlib.Path, script: str, *flags: str) -> scripts.Run:
    done = scripts.run(folder / f"log_{script}", script, *flags)
    assert done.wait() == 0, done.stderr
    return done


def _here(script: str, *flags: str) -> None:
    """Runs a script that does not train in this process, which is quicker."""
    assert not scripts.run_here(script, (), *flags)


@pytest.fixture(scope="module", params=_KINDS)
def kind(request):
    return _KINDS[request.param]


@pytest.fixture(scope="module")
def model(kind, tmp_path_factory):
    """The folder of a run of pre-training."""
    folder = tmp_path_factory.mktemp("model")
    text, vocab = folder / "text.txt", folder / kind.file
    text.write_text(_text(), "utf-8")
    _run(
        *(folder, "learn_vocabulary", f"--kind={kind.vocabulary}"),
        *(f"--vocab_size={_SIZE}", f"--input_file={text}"),
        f"--vocab_file={vocab}",
    )
    size = len(vocabularies.open(vocab, do_lower_case=True).pieces)
    config = {**kind.config, "vocab_size": size}
    (folder / "config.json").write_text(json.dumps(config))
    lengths = (f"--max_seq_length={_LENGTH}", "--max_predictions_per_seq=8")
    config_flag, vocab_flag = kind.flags
    _run(
        *(folder, "create_pretraining_data", f"--objective={kind.objective}"),
        *(*lengths, "--dynamic_masking", "--dupe_factor=1"),
        *(f"--input_file={text}", f"--{vocab_flag}={vocab}"),
        f"--output_dir={folder}/records",
    )
    _run(
        *(folder, "run_pretraining", "--do_train", *lengths),
        *("--num_train_steps=20", "--num_warmup_steps=2"),
        *("--train_batch_size=8", "--learning_rate=1e-3"),
        f"--input_file={folder}/records/*.tfrecord",
        f"--{config_flag}={folder}/config.json",
        *(f"--{vocab_flag}={vocab}", f"--output_dir={folder}/run"),
    )
    return folder / "run"


@pytest.fixture(scope="module")
def converted(model):
    """The folder as one of transformers."""
    folder = model.parent / "hf"
    _here(
        *("convert_checkpoint", f"--input_checkpoint={model}"),
        *("--output_format=hf", f"--output_path={folder}"),
    )
    return folder


@pytest.fixture(scope="module")
def theirs(converted):
    """The tokenizer of transformers."""
    return transformers.AutoTokenizer.from_pretrained(str(converted))


def _fine_tune(
    folder: pathlib.Path, script: str, model: pathlib.Path, *flags: str
) -> pathlib.Path:
    """Fine-tunes a model with all that follows; returns the folder."""
    output = folder / "output"
    _run(
        *(folder, script, f"--init_checkpoint={model}"),
        *("--do_train", "--do_eval", "--do_predict", "--do_export"),
        *(f"--max_seq_length={_LENGTH}", "--train_batch_size=8"),
        *("--learning_rate=0.003", "--num_train_epochs=1"),
        *(*flags, f"--output_dir={output}"),
    )
    return output


def _rows(path: pathlib.Path) -> list[list[int]]:
    """The ids of the rows of records, without padding."""
    rows = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        values = [
            np.array(feature[name].int64_list.value)
            for name in ("input_ids", "input_mask")
        ]
        rows.append(values[0][values[1] == 1].tolist())
    return rows


def _ask(
    folder: pathlib.Path, lines: list[dict[str, Any]], *flags: str
) -> list[dict[str, Any]]:
    """Asks a model by run_prediction.py."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "asked.jsonl").write_text(text)
    _here(
        *("run_prediction", f"--input_file={folder}/asked.jsonl"),
        *(f"--output_file={folder}/answers.jsonl", "--overwrite", *flags),
    )
    return _json_lines(folder / "answers.jsonl")


def _json_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for _, line in tables.lines(str(path))]


def _assert_same(found: Any, wanted: Any) -> None:
    """Probabilities, by place or by label, are the same within 1e-5."""
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        found, wanted = list(found.values()), list(wanted.values())
    np.testing.assert_allclose(found, wanted, atol=1e-5)


# ---- What pre-training left -------------------------------------------------


def test_the_folder_says_all(model, kind):
    files = vocabularies.find(model)
    assert files and files.kind == kind.vocabulary
    for name, content in files.contents.items():
        assert content == (model.parent / name).read_bytes()
    # Other names of flags are not kept.
    kept = (model / "flags.txt").read_text()
    assert f"--vocab_file={model.parent / kind.file}\n" in kept
    assert "spm_model_file" not in kept and "albert_config_file" not in kept


def test_hidden_states_are_those_of_transformers(
    model, converted, theirs, tmp_path
):
    texts = [x.strip() for pair in _PAIRS for x in pair if x.strip()]
    (tmp_path / "lines.txt").write_text("\n".join(texts) + "\n", "utf-8")
    _here(
        *("extract_features", f"--init_checkpoint={model}", "--layers=-1"),
        *(f"--input_file={tmp_path}/lines.txt", "--batch_size=4"),
        *(f"--output_file={tmp_path}/out.jsonl", f"--max_seq_length={_LENGTH}"),
    )
    torch_model = transformers.AutoModel.from_pretrained(str(converted)).eval()
    found = _json_lines(tmp_path / "out.jsonl")
    for text, line in zip(texts, found, strict=True):
        inputs = theirs(text, return_tensors="pt")
        with torch.no_grad():
            states = torch_model(**inputs).last_hidden_state[0]
        pieces = theirs.convert_ids_to_tokens(inputs["input_ids"][0])
        assert [x["token"] for x in line["features"]] == pieces
        values = [x["layers"][0]["values"] for x in line["features"]]
        np.testing.assert_allclose(values, states.numpy(), atol=1e-5)


def test_more_rows_of_a_table(model, tmp_path):
    lines = [f"{i}\t{first}" for i, (first, _) in enumerate(_PAIRS)]
    (tmp_path / "in.tsv").write_text("\n".join(["n\ttext", *lines]), "utf-8")
    _here(
        *("augment_data", f"--init_checkpoint={model}", "--candidates=3"),
        *(f"--input_file={tmp_path}/in.tsv", f"--max_seq_length={_LENGTH}"),
        *(f"--output_file={tmp_path}/out.tsv", "--augmentation_copies=5"),
    )
    (_, *rows) = (tmp_path / "out.tsv").read_text("utf-8").splitlines()
    assert len(rows) > 2 * len(lines)
    for row in rows:
        number, text = row.split("\t")
        # Whatever was replaced, by a word in the same place.
        words = r"[^\W\d_]+"
        before = _PAIRS[int(number)][0]
        assert re.split(words, text) == re.split(words, before)


def test_vectors_of_words(model, converted, kind, tmp_path):
    texts = ["The cat sat", "  東京 😀  naïve, café.", "Anna"]
    (tmp_path / "lines.txt").write_text("\n".join(texts) + "\n", "utf-8")
    _here(
        *("extract_features", f"--init_checkpoint={model}"),
        *(f"--input_file={tmp_path}/lines.txt", "--unit=word"),
        *("--features=last", f"--output_file={tmp_path}/out.jsonl"),
        f"--max_seq_length={_LENGTH}",
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        str(converted), **kind.words
    )
    torch_model = transformers.AutoModel.from_pretrained(str(converted)).eval()
    found = _json_lines(tmp_path / "out.jsonl")
    for text, line in zip(texts, found, strict=True):
        words = text.split()
        inputs = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        with torch.no_grad():
            states = torch_model(**inputs).last_hidden_state[0].numpy()
        owners = inputs.word_ids(0)
        features = [x for x in line["features"] if x["token"] in words]
        assert [x["token"] for x in features] == words
        for number, feature in enumerate(features):
            own = [i for i, owner in enumerate(owners) if owner == number]
            np.testing.assert_allclose(
                feature["layers"][0]["values"],
                states[own].mean(axis=0),
                atol=1e-5,
            )


def test_formats_and_back(model, converted, tmp_path):
    source = formats.open_checkpoint(str(model))
    for number, (first, form) in enumerate(
        [(model, "keras_hub"), (converted, "tf1"), (tmp_path / "0", "tf1")]
    ):
        _here(
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


def test_masked_words(model, kind, theirs, tmp_path):
    _here(
        *("export_saved_model", f"--model_dir={model}", "--top_k=400"),
        f"--export_dir={tmp_path}/export",
    )
    texts = ["The [MASK] sat.", "[MASK] old dog", "Anna sees [MASK]"]
    lines = [{"text": x} for x in (*texts, "naïve[MASK] 😀 東京 [MASK]")]
    found = _ask(tmp_path, lines, f"--saved_model={tmp_path}/export")
    same = _ask(tmp_path, lines, f"--model_dir={model}", "--top_k=400")
    for answer, again in zip(found, same, strict=True):
        for mask, other in zip(answer["masks"], again["masks"], strict=True):
            _assert_same(
                [x["score"] for x in mask], [x["score"] for x in other]
            )
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
            wanted = theirs.decode(
                row,
                skip_special_tokens=True,
                clean_up_tokenization_spaces=False,
            )
            filled = fill["text"]
            # Theirs is spelt of pieces, which are of lower-cased texts.
            if kind.vocabulary == "sentence_pieces":
                filled = filled.lower()
            assert filled.strip() == wanted.strip()
            begins.add(fill["piece"][0] in "▁Ġ")
    # Both pieces that begin words and pieces that go on were tried.
    assert begins == {True, False}


# ---- Tasks ------------------------------------------------------------------


def test_classifier_of_pairs(model, theirs, tmp_path):
    rows = ["id\ta\tb\tlabel"]
    for i in range(32):
        first, second = _PAIRS[i % len(_PAIRS)]
        rows.append(f"{i}\t{first} {i}\t{second}\t{i % 2}")
    (tmp_path / "pairs.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    file = f"{tmp_path}/pairs.tsv"
    flags = (
        *(f"--train_file={file}", f"--dev_file={file}", f"--test_file={file}"),
        *("--text_a_column=a", "--text_b_column=b"),
    )
    output = _fine_tune(tmp_path, "run_classifier", model, *flags)
    pairs = [tuple(row.split("\t")[1:3]) for row in rows[1:]]
    wanted = [theirs(*[x for x in pair if x])["input_ids"] for pair in pairs]
    assert _rows(output / "predict.tf_record")[: len(pairs)] == wanted
    found = _ask(
        *(tmp_path, [{"text_a": a, "text_b": b} for a, b in pairs]),
        f"--saved_model={output}/export",
    )
    predictions = _json_lines(output / "predictions.jsonl")
    for answer, prediction in zip(found, predictions, strict=True):
        _assert_same(answer["probabilities"], prediction["probabilities"])
    # In Python, and written again.
    loaded = bert_tf.load(str(output))
    bert_tf.export(loaded, f"{tmp_path}/again")
    again = bert_tf.load(f"{tmp_path}/again")
    for answers in (loaded(pairs), again(pairs)):
        for answer, prediction in zip(answers, predictions, strict=True):
            _assert_same(answer["probabilities"], prediction["probabilities"])


def test_glue(model, tmp_path):
    folder = tmp_path / "data" / "WNLI"
    folder.mkdir(parents=True)
    rows = [f"{i}\tThe cat {i}\tsat é 😀\t{i % 2}\n" for i in range(8)]
    for split in ("train", "dev"):
        text = "index\tsentence1\tsentence2\tlabel\n" + "".join(rows)
        (folder / f"{split}.tsv").write_text(text, "utf-8")
    _run(
        *(tmp_path, "run_glue", f"--init_checkpoint={model}", "--tasks=WNLI"),
        *(f"--data_dir={tmp_path}/data", "--max_seq_length=16"),
        *("--batch_sizes=4", "--epochs=1", "--seeds=1"),
        f"--output_dir={tmp_path}/output",
    )
    (done,) = _json_lines(tmp_path / "output" / "results.jsonl")
    assert done["examples"] == len(rows)
    assert 0 <= done["results"]["accuracy"] <= 1


def test_tagger(model, converted, kind, tmp_path):
    rng = random.Random(0)
    tags = {"Anna": "B-per", "Smith": "I-per", "東京": "B-loc"}
    # Texts are split at punctuation, whatever the words of a file are.
    plain = [word.strip(".,") for word in _WORDS]
    sentences = [["Anna", "Smith", *rng.sample(plain, 6)] for _ in range(24)]
    text = "\n".join(
        "".join(f"{x} {tags.get(x, 'O')}\n" for x in words)
        for words in sentences
    )
    (tmp_path / "data.conll").write_text(text, "utf-8")
    file = f"{tmp_path}/data.conll"
    output = _fine_tune(
        *(tmp_path, "run_ner", model, f"--train_file={file}"),
        *(f"--dev_file={file}", f"--test_file={file}"),
        # So that it finds some.
        *("--learning_rate=0.01", "--num_train_epochs=10"),
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        str(converted), **kind.words
    )
    assert _rows(output / "test.tf_record")[: len(sentences)] == [
        tokenizer(words, is_split_into_words=True)["input_ids"]
        for words in sentences
    ]
    predictions = _json_lines(output / "test_entities.jsonl")
    assert [x["text"].split(" ") for x in predictions] == sentences
    assert any(x["entities"] for x in predictions)
    found = _ask(
        *(tmp_path, [{"text": x["text"]} for x in predictions]),
        f"--saved_model={output}/export",
    )
    for answer, prediction in zip(found, predictions, strict=True):
        assert answer["entities"] == prediction["entities"]


def test_answers_to_questions(model, tmp_path):
    rng = random.Random(0)
    paragraphs: list[dict[str, Any]] = []
    for i in range(24):
        words = rng.choices(_WORDS, k=40)
        context = " ".join(words)
        at = rng.randrange(39)
        start = len(" ".join(words[:at])) + bool(at)
        answer = {"text": words[at], "answer_start": start}
        question = {"id": str(i), "question": f"{words[at]}?"}
        paragraphs.append(
            {"context": context, "qas": [{**question, "answers": [answer]}]}
        )
    data = {"version": "x", "data": [{"paragraphs": paragraphs}]}
    (tmp_path / "squad.json").write_text(json.dumps(data))
    file = f"{tmp_path}/squad.json"
    output = _fine_tune(
        *(tmp_path, "run_squad", model, f"--train_file={file}"),
        *(f"--predict_file={file}", "--doc_stride=8", "--max_query_length=8"),
    )
    wanted = json.loads((output / "predictions.json").read_text())
    lines = [
        {"question": x["qas"][0]["question"], "context": x["context"]}
        for x in paragraphs
    ]
    found = _ask(tmp_path, lines, f"--saved_model={output}/export")
    assert [x["answer"] for x in found] == list(wanted.values())
    assert len(set(wanted.values())) > 4
    for line, answer in zip(lines, found, strict=True):
        place = slice(answer["start"], answer["end"])
        assert line["context"][place] == answer["answer"]


def test_choices(model, tmp_path):
    rng = random.Random(0)
    problems = [
        {
            "prompt": f"{rng.choice(_WORDS)} Anna",
            "choices": rng.sample(_WORDS, 3),
            "label": i % 3,
        }
        for i in range(16)
    ]
    file = tmp_path / "problems.jsonl"
    file.write_text("".join(f"{json.dumps(x)}\n" for x in problems))
    output = _fine_tune(
        *(tmp_path, "run_multiple_choice", model, f"--train_file={file}"),
        *(f"--dev_file={file}", f"--test_file={file}"),
    )
    predictions = _json_lines(output / "test_predictions.jsonl")
    lines = [
        {name: x[name] for name in ("prompt", "choices")} for x in problems
    ]
    found = _ask(tmp_path, lines, f"--saved_model={output}/export")
    for answer, prediction in zip(found, predictions, strict=True):
        _assert_same(answer["probabilities"], prediction["probabilities"])
