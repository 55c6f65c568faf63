"""Encoder-decoders of transformers with random weights."""

from tests import interop_samples as samples
from tests.huggingface_models import torch, transformers

import numpy as np

SIZES = samples.SMALL | {"hidden_dropout_prob": 0.0}
START, END, PAD = 2, 3, 0
ROWS, LENGTH = 5, 11


def spread(model, seed, end):
    """Draws weights with which targets differ, and some end early.

    Args:
        model: The model.
        seed: Of the weights.
        end: The bias of the token that ends a target.
    """
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "embed_positions" in name:
                continue  # sinusoids
            if "norm" in name.lower() and name.endswith("weight"):
                value.uniform_(0.5, 1.5)
            elif value.ndim == 1:
                value.normal_(0, 0.1)
            elif "position" in name:
                value.normal_(0, 3)
            else:
                is_table = "embed" in name or "shared" in name
                value.normal_(0, 0.6 if is_table else 0.25)
        bias = (
            model.final_logits_bias[0]
            if hasattr(model, "final_logits_bias")
            else model.decoder.cls.predictions.bias
        )
        bias.normal_(0, 1)
        bias[END] = end
    return model.eval()


def bert2bert():
    """Returns an EncoderDecoderModel of two BERTs."""
    encoder = transformers.BertConfig(**SIZES)
    decoder = transformers.BertConfig(
        **SIZES, is_decoder=True, add_cross_attention=True
    )
    config = transformers.EncoderDecoderConfig.from_encoder_decoder_configs(
        encoder, decoder
    )
    config.decoder_start_token_id = START
    config.eos_token_id, config.pad_token_id = END, PAD
    return spread(transformers.EncoderDecoderModel(config), 2, 4)


def marian():
    """Returns a Transformer."""
    layers = SIZES["num_hidden_layers"]
    heads, units = SIZES["num_attention_heads"], SIZES["intermediate_size"]
    config = transformers.MarianConfig(
        vocab_size=SIZES["vocab_size"],
        d_model=SIZES["hidden_size"],
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=units,
        decoder_ffn_dim=units,
        max_position_embeddings=SIZES["max_position_embeddings"],
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        dropout=0.0,
    )
    return spread(transformers.MarianMTModel(config), 4, 1)


def sources():
    """Returns ids and mask of sources of different lengths."""
    rng = np.random.default_rng(3)
    ids = rng.integers(5, SIZES["vocab_size"], [ROWS, LENGTH])
    lengths = [LENGTH, 3, 7, 1, 9]
    mask = (np.arange(LENGTH) < np.array(lengths)[:, np.newaxis]).astype(int)
    return np.where(mask, ids, PAD), mask


def targets():
    """Returns ids of targets, which begin with the start."""
    rng = np.random.default_rng(4)
    ids = rng.integers(5, SIZES["vocab_size"], [ROWS, 6])
    ids[:, 0] = START
    return ids


def logits(model, ids, mask, target_ids):
    """Returns transformers' logits of targets."""
    with torch.no_grad():
        return model(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            decoder_input_ids=torch.tensor(target_ids),
        ).logits.numpy()


def generated(model, ids, mask, beams, tokens):
    """Returns transformers' best targets, without the start and padding."""
    with torch.no_grad():
        found = model.generate(
            input_ids=torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            num_beams=beams,
            length_penalty=0.0,
            do_sample=False,
            max_new_tokens=tokens,
            decoder_start_token_id=START,
            eos_token_id=END,
            pad_token_id=PAD,
        ).numpy()
    return [trimmed(row[1:]) for row in found]


def trimmed(row):
    """Returns a target up to its end."""
    row = list(map(int, row))
    return row[: row.index(END) + 1] if END in row else row
