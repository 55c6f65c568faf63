"""Every head on 1,000 real lines: our script, and a stranger's server."""

from bert_tf import heads, modeling
from tests import saved_models, scripts
from tests.commands import test_run_prediction as test_predict

import numpy as np
import pytest
import tensorflow as tf


def real_lines(shared_data, head):
    """1,000 lines of Wikipedia, for a head."""
    path = shared_data / "corpus" / "enwiki_AA.txt"
    lines = []
    with path.open() as file:
        for line in file:
            words = line.split()
            if len(words) > 12 and "<" not in line and "\t" not in line:
                lines.append(words)
            if len(lines) == 1000:
                break
    pieces = [[" ".join(words[:8]), " ".join(words[8:])] for words in lines]
    if head == "masked_lm":
        return [f"{first} [MASK] {rest}" for first, rest in pieces]
    if head in ("tagging", "encoder"):
        return [f"{first} {rest}" for first, rest in pieces]
    if head == "multiple_choice":
        ends = [rest for _, rest in pieces]
        return [
            "\t".join([pieces[i][0], *(ends[i - j] for j in range(3))])
            for i in range(1000)
        ]
    return ["\t".join(pair) for pair in pieces]


def _columns(head, lines):
    """The inputs of the head's signature, for the same lines."""
    if head in ("masked_lm", "tagging"):
        return {"text": lines}
    if head == "encoder":
        return {"text_a": lines, "text_b": [""] * len(lines)}
    first, *others = zip(*(line.split("\t") for line in lines), strict=True)
    if head == "multiple_choice":
        rows = list(zip(*others, strict=True))
        return {"prompt": first, "choices": rows}
    names = {"span": ("question", "context")}.get(head, ("text_a", "text_b"))
    return dict(zip(names, (first, *others), strict=True))


MODELS = {
    "encoder": lambda bert: bert,
    "masked_lm": heads.BertMaskedLM,
    "next_sentence": heads.BertNextSentence,
    "classification": lambda bert: heads.BertClassifier(bert, 3),
    "tagging": lambda bert: heads.BertTagger(bert, 3),
    "span": heads.BertSpanFinder,
    "multiple_choice": heads.BertMultipleChoice,
}


@pytest.mark.slow
@pytest.mark.parametrize("head", list(MODELS))
def test_a_stranger_serves_real_lines_as_predicted(head, shared_data, tmp_path):
    text = (shared_data / "vocab" / "bert_uncased.txt").read_text("utf-8")
    vocab = text.removesuffix("\n").split("\n")
    config = saved_models.config(vocab, max_position_embeddings=64)
    tf.keras.utils.set_random_seed(1)
    has_labels = head in ("classification", "tagging")
    labels = ["O", "B-x", "I-x"] if has_labels else ()
    run = test_predict.write_run(
        *(
            tmp_path / "run",
            MODELS[head](modeling.Bert(config)),
            vocab,
            config,
        ),
        *("--max_seq_length=48", "--doc_stride=16", "--max_query_length=12"),
        "--text_b_column=b",
        labels=labels,
    )
    lines = real_lines(shared_data, head)
    found = test_predict.answers(
        *(tmp_path, lines, f"--model_dir={run}"),
        *("--batch_size=50", "--sort_window=500"),
    )
    code = scripts.run_here(
        "export_saved_model",
        (),
        *(f"--model_dir={run}", f"--export_dir={tmp_path}/export"),
    )
    assert not code
    columns = _columns(head, lines)
    served = saved_models.serve_elsewhere(
        tmp_path, tmp_path / "export", **columns
    )
    assert len(found) == 1000
    for i, answer in enumerate(found):
        _check_row(answer, {name: rows[i] for name, rows in served.items()})


def _check_row(answer, row):
    """Compares an answer with what the SavedModel returned."""
    if "masks" in answer:
        assert len(answer["masks"]) == row["count"] == 1
        for name in ("piece", "text"):
            assert [x[name] for x in answer["masks"][0]] == row[name][0]
    elif "entities" in answer:
        for name in ("type", "start", "end", "text"):
            expected = row[name][: row["count"]]
            assert [x[name] for x in answer["entities"]] == expected
    elif "vector" in answer:
        np.testing.assert_allclose(
            answer["vector"], np.ravel(row["vectors"]), atol=1e-5
        )
    else:
        for name in ("label", "choice", "answer", "start", "end"):
            assert answer.get(name) == row.get(name)
        for name in ("is_next", "score"):
            if name in answer:
                assert answer[name] == pytest.approx(row[name], abs=1e-4)
