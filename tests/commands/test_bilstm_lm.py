"""Pre-trains a language model from both ends on BERT's records, and uses it."""

import bert_tf
from bert_tf.checkpoints import formats, names
from tests import classifier_runs, family_runs, pretraining_records
from tests.pretraining_runs import Setting, metrics, results

import numpy as np
import pytest

_CONFIG = {
    "model_type": "bilstm_lm",
    "vocab_size": len(pretraining_records.VOCABULARY.pieces),
    "embedding_size": 16,
    "hidden_size": 32,
    "max_position_embeddings": 64,
}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", name="setting")
def _setting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("setting")
    return Setting.of_texts(folder, _CONFIG, objective="none")


@pytest.fixture(scope="module", name="trained")
def _trained(setting):
    output = setting.folder / "trained"
    run = setting.train(output, "--remat")
    assert "before it, and from those behind it." in run.stderr
    # Its layers keep what they computed.
    assert "--remat changes nothing for this kind of encoder" in run.stderr
    return output


def test_what_is_learned(trained):
    found = results(trained)
    assert list(found) == [
        *("global_step", "loss", "next_piece_accuracy", "next_piece_loss"),
        *("previous_piece_accuracy", "previous_piece_loss"),
    ]
    total = found["next_piece_loss"] + found["previous_piece_loss"]
    assert found["loss"] == pytest.approx(total, rel=1e-5)
    # Four steps from chance, over 40 pieces, twice.
    assert total == pytest.approx(2 * np.log(40), abs=0.6)
    losses = [line["loss"] for line in metrics(trained)]
    assert losses[-1] < losses[0]
    source = formats.open_checkpoint(str(trained))
    assert source.config is not None
    assert source.config.model_type == "bilstm_lm"
    assert names.find_head(source.shapes, "x") == "both_directions"


def test_packed_records_are_refused(setting, tmp_path):
    packed = Setting.of_texts(tmp_path, _CONFIG, objective="none", pack=True)
    line = packed.refused(tmp_path / "out")
    assert "several sequences in a row, and this model would read on" in line
    assert "without --pack. Received: model_type=bilstm_lm" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
def test_fine_tuning_and_vectors(trained, tmp_path):
    words = ["w6", "w7", "w8"]
    table = classifier_runs.write_red(tmp_path / "red.tsv", "w5", words, 32)
    output = tmp_path / "out"
    run = classifier_runs.run(
        tmp_path,
        *(f"--init_checkpoint={trained}", "--do_train", "--do_export"),
        *(f"--train_file={table}", f"--output_dir={output}"),
        *("--max_seq_length=12", "--train_batch_size=8"),
    )
    assert "In the checkpoint, not used by this model: cls/both_" in run.stderr
    texts = ["w5 w7 w8", "w6"]
    served = bert_tf.load(output / "export")(texts)
    again = bert_tf.load(output)(texts)
    family_runs.assert_same_answers(again, served, 1e-6)
    # Without a head of its own it makes vectors.
    vectors = tmp_path / "vectors.jsonl"
    (tmp_path / "texts.txt").write_text("w5 w7 w8\n")
    family_runs.run(
        *("extract_features", f"--init_checkpoint={trained}"),
        *(f"--input_file={tmp_path}/texts.txt", f"--output_file={vectors}"),
        *("--layers=-1,-2", "--max_seq_length=12"),
    )
    (found,) = family_runs.json_lines(vectors)
    layers = found["features"][0]["layers"]
    assert [len(layer["values"]) for layer in layers] == [32, 32]


def test_remat_is_no_way_out_of_a_batch_that_is_too_large(setting, tmp_path):
    assert "or raise --gradient_accumulation_steps. Received" in (
        setting.refused(tmp_path / "large", "--train_batch_size=2000000000")
    )
