"""BERT's pre-training in PyTorch: transformers' BertForPreTraining.

    python -m tests.torch_pretraining

prints the golden losses of tests/parity/test_training.py.
"""

import pathlib
import tempfile
from collections.abc import Iterable

from tests import parity_run, torch_training

import numpy as np
import tensorflow as tf
import transformers

_NAMES = (
    (r"LayerNorm\.weight$", "LayerNorm/gamma"),
    (r"LayerNorm\.bias$", "LayerNorm/beta"),
    (r"_embeddings\.weight$", "_embeddings"),
    (r"^cls\.predictions\.bias$", "cls/predictions/output_bias"),
    (r"seq_relationship\.weight$", "seq_relationship/output_weights"),
    (r"seq_relationship\.bias$", "seq_relationship/output_bias"),
    (r"\.weight$", "/kernel"),
    (r"layer\.(\d+)", r"layer_\1"),
    (r"\.", "/"),
)


def train(
    weights: dict[str, np.ndarray], batches: Iterable[dict[str, np.ndarray]]
) -> tuple[list[dict[str, float]], dict[str, np.ndarray]]:
    """Trains from weights by the original's names.

    Returns:
        What each step reports, and the weights after the last.
    """
    config = torch_training.config(
        transformers.BertConfig, parity_run.CONFIG, "gelu_pytorch_tanh"
    )
    model = transformers.BertForPreTraining(config).double()
    parameters = torch_training.renamed(model, _NAMES)
    torch_training.load(parameters, weights)
    reports = torch_training.train(
        parameters,
        torch_training.words_and_sentences(model, "next_sentence_loss"),
        ((batch,) for batch in batches),
        torch_training.rates(
            parity_run.STEPS, parity_run.WARMUP, parity_run.LEARNING_RATE
        ),
    )
    return reports, torch_training.values_of(parameters)


def main() -> None:
    """Prints the losses of every tenth step."""
    with tempfile.TemporaryDirectory() as folder:
        files = parity_run.write(pathlib.Path(folder))
        reader = tf.train.load_checkpoint(f"{folder}/bert_model.ckpt")
        names = reader.get_variable_to_shape_map()
        weights = {name: reader.get_tensor(name) for name in names}
        reports, _ = train(weights, parity_run.batches(files))
    for step in range(9, parity_run.STEPS, 10):
        report = reports[step]
        print(
            f"    {step + 1}: ({report['masked_lm_loss']:.7f}, "
            f"{report['next_sentence_loss']:.7f}),"
        )


if __name__ == "__main__":
    main()
