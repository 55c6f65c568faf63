"""Small RoBERTa, ALBERT and symbol models, made by the scripts."""

import dataclasses
import json
import pathlib
import random
from typing import Any

from bert_tf import vocabularies
from bert_tf.tasks import tables
from tests import saved_models, scripts, store, tiny_model

import numpy as np
import tensorflow as tf

_SIZE = 600  # max; SentencePiece tokens that no text needs are dropped
LENGTH = 48
_SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    # Different texts get different answers, even after little training.
    "initializer_range": 0.3,
}


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a model of the family is created.

    Attributes:
        vocabulary: Kind of its vocabulary.
        file: Name of the learned vocabulary.
        flags: Names of the flags of config and vocabulary; ALBERT has its own.
        objective: Its pre-training objective.
        config: Fields of its config.
        words: Arguments that make its tokenizer in transformers take words.
        ops: Ops of its SavedModels that are not part of TensorFlow.
    """

    vocabulary: str
    file: str
    flags: tuple[str, str]
    objective: str
    config: dict[str, Any]
    words: dict[str, Any]
    ops: tuple[str, ...] = ()


KINDS = {
    "roberta": Kind(
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
    "albert": Kind(
        vocabulary="sentence_pieces",
        file="spiece.model",
        flags=("albert_config_file", "spm_model_file"),
        objective="sop",
        config={
            **_SHAPE,
            "model_type": "albert",
            "num_hidden_layers": 2,
            "type_vocab_size": 2,
            "hidden_act": "gelu",
            "embedding_size": 8,
            "num_hidden_groups": 1,
            "inner_group_num": 1,
        },
        words={},
        ops=(saved_models.SENTENCE_PIECES,),
    ),
    "symbols": Kind(
        vocabulary="symbols",
        file="symbols.txt",
        flags=("bert_config_file", "vocab_file"),
        objective="nsp",
        config={**_SHAPE, "model_type": "bert", "type_vocab_size": 2},
        words={},
    ),
}

# ---- Data -------------------------------------------------------------------

LINE = "The cat sat café naïve 東京 😀 Anna Smith sees dog, old. ran"
WORDS = LINE.split()
PAIRS = [
    ("The cat sat.", "It sat."),
    ("東京 😀 naïve", "café"),
    ("The cat", ""),
    ("👩‍👩 𝔘 ﬁne", "Ａ e\u0301 ☃"),
    ("  two  spaces ", "no\u00a0break"),
    ("the old dog, Anna", "sees the 東京"),
]


def _text() -> str:
    """Returns documents of made-up words, enough to learn the tokens."""
    rng = random.Random(0)
    parts = [a + b for a in "bcdfghklmnprstw" for b in ("a", "en", "io", "u")]
    made = [
        "".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in range(800)
    ]
    documents = []
    for _ in range(120):
        sentences = [
            " ".join(rng.choices(made, k=6) + rng.choices(WORDS, k=6)) + "."
            for _ in range(8)
        ]
        documents.append("\n".join(sentences))
    letters = " ".join(map(chr, range(33, 127)))
    return "\n\n".join([*documents, letters]) + "\n"


def run(script: str, *flags: str) -> None:
    """Runs a script, which must succeed."""
    assert not scripts.run_here(script, *flags)


def model(name: str) -> pathlib.Path:
    """Returns the folder of a pre-training run, next to its data.

    The model in Hugging Face's format is in the folder hf next to it.
    """
    return store.made(name, lambda folder: _make(KINDS[name], folder)) / "run"


def _make(kind: Kind, folder: pathlib.Path) -> None:
    text, vocab = folder / "text.txt", folder / kind.file
    text.write_text(_text(), "utf-8")
    run(
        *("learn_vocabulary", f"--kind={kind.vocabulary}"),
        *(f"--vocab_size={_SIZE}", f"--input_file={text}"),
        f"--vocab_file={vocab}",
    )
    size = len(vocabularies.open(vocab, do_lower_case=True).pieces)
    config = {**kind.config, "vocab_size": size}
    (folder / "config.json").write_text(json.dumps(config))
    lengths = (f"--max_seq_length={LENGTH}", "--max_predictions_per_seq=8")
    config_flag, vocab_flag = kind.flags
    run(
        *("create_pretraining_data", f"--objective={kind.objective}"),
        *(*lengths, "--dynamic_masking", "--dupe_factor=1"),
        *(f"--input_file={text}", f"--{vocab_flag}={vocab}"),
        f"--output_dir={folder}/records",
    )
    with tiny_model.untraced():
        run(
            *("run_pretraining", "--do_train", *lengths),
            *("--num_train_steps=4", "--num_warmup_steps=1"),
            *("--train_batch_size=8", "--learning_rate=1e-3"),
            f"--input_file={folder}/records/*.tfrecord",
            f"--{config_flag}={folder}/config.json",
            *(f"--{vocab_flag}={vocab}", f"--output_dir={folder}/run"),
        )
    run(
        *("convert_checkpoint", f"--input_checkpoint={folder}/run"),
        *("--output_format=hf", f"--output_path={folder}/hf"),
    )


def fine_tune(
    script: str, model: pathlib.Path, file: pathlib.Path, *flags: str
) -> pathlib.Path:
    """Trains, predicts and exports; returns the folder."""
    output = file.with_name("output")
    test = "predict" if script == "run_squad" else "test"
    command = (
        *(script, f"--init_checkpoint={model}", f"--train_file={file}"),
        *(f"--{test}_file={file}", f"--max_seq_length={LENGTH}"),
        *("--train_batch_size=8", "--learning_rate=0.003"),
        *("--num_train_epochs=1", *flags, f"--output_dir={output}"),
    )
    with tiny_model.untraced():
        run(*command, "--do_train", "--do_predict")
    run(*command, "--do_export")
    return output


def ids_of(path: pathlib.Path) -> list[list[int]]:
    """Returns the ids of records, without padding."""
    rows = []
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        feature = tf.train.Example.FromString(record).features.feature
        values = [
            np.array(feature[name].int64_list.value)
            for name in ("input_ids", "input_mask")
        ]
        rows.append(values[0][values[1] == 1].tolist())
    return rows


def ask(
    folder: pathlib.Path, lines: list[dict[str, Any]], *flags: str
) -> list[dict[str, Any]]:
    """Runs a model with run_prediction.py."""
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (folder / "asked.jsonl").write_text(text)
    run(
        *("run_prediction", f"--input_file={folder}/asked.jsonl"),
        *(f"--output_file={folder}/answers.jsonl", "--overwrite", *flags),
    )
    return json_lines(folder / "answers.jsonl")


def extract(
    folder: pathlib.Path, model: pathlib.Path, texts: list[str], *flags: str
) -> list[dict[str, Any]]:
    """Extracts features of texts."""
    (folder / "lines.txt").write_text("\n".join(texts) + "\n", "utf-8")
    run(
        *("extract_features", f"--init_checkpoint={model}"),
        f"--input_file={folder}/lines.txt",
        f"--output_file={folder}/features.jsonl",
        *(f"--max_seq_length={LENGTH}", *flags),
    )
    return json_lines(folder / "features.jsonl")


def json_lines(path: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for _, line in tables.lines(str(path))]


def assert_same_answers(
    found: Any, wanted: Any, tolerance: float = 1e-5
) -> None:
    """Asserts that probabilities, by position or by label, are the same."""
    for answer, other in zip(found, wanted, strict=True):
        found, wanted = answer["probabilities"], other["probabilities"]
        if isinstance(wanted, dict):
            assert list(found) == list(wanted)
            found, wanted = list(found.values()), list(wanted.values())
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)
