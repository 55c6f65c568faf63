"""Starts encoder-decoders from encoders (Rothe et al., 2020)."""

import dataclasses
from typing import Any

from bert_tf import modeling
from bert_tf.checkpoints import model_files, names, opened
from bert_tf.contrib import encoder_decoders
from bert_tf.encoders import families
from bert_tf.errors import InputError


def with_encoders_config(
    source: model_files.Source, bert_config_file: str | None
) -> model_files.Source:
    """Returns a run or a checkpoint with a config to compare a file with.

    A run that started from the config of an encoder is resumed with the same
    file: the config of its encoder is compared.
    """
    own = source.config
    if bert_config_file is None or not isinstance(
        own, encoder_decoders.EncoderDecoderConfig
    ):
        return source
    kind = type(families.read_config(bert_config_file))
    if issubclass(kind, encoder_decoders.EncoderDecoderConfig):
        return source
    files: Any = source
    return dataclasses.replace(files, config=own.encoder(kind))


def find_config(
    config: modeling.BertConfig,
    trained: modeling.BertConfig | None,
    shared: str | None,
) -> encoder_decoders.EncoderDecoderConfig:
    """Returns the config of the model.

    Args:
        config: The config of the encoder, or of the model itself.
        trained: The config of the run or of the checkpoint, if there is one.
        shared: What the user wants the decoder to share with the encoder; None
            for the default.

    Raises:
        InputError: A trained model, or its config, says otherwise.
    """
    for known in (config, trained):
        if isinstance(known, encoder_decoders.EncoderDecoderConfig):
            if shared not in (None, known.shared):
                raise InputError(
                    f"The model has shared={known.shared}: leave out "
                    f"--share_weights. Received: share_weights={shared}"
                )
            return known
    return encoder_decoders.of_encoder(config, shared or "none")


def with_decoder(
    source: opened.Checkpoint, config: modeling.BertConfig
) -> opened.Checkpoint:
    """Returns a checkpoint that has weights for both halves.

    The decoder gets the weights of the encoder, and its output layer the
    weights of the masked-word head, if there is one. There are none for the
    cross-attention. A checkpoint of an encoder-decoder is returned as it is.
    """
    if "decoder/predictions/output_bias" in source.shapes:
        return source
    numbers = range(config.num_hidden_layers)
    origins = {
        ours.format(i): theirs.format(i)
        for ours, theirs in encoder_decoders.SOURCES.items()
        for i in (numbers if "{}" in ours else (0,))
    }
    own = names.shapes(config, "seq2seq")
    origins = {
        x: y for x, y in origins.items() if x in own and y in source.shapes
    }

    def read(found):
        wanted = {name: origins.get(name, name) for name in found}
        values = source.read(sorted(set(wanted.values())))
        return {name: values[origin] for name, origin in wanted.items()}

    copies = {ours: source.shapes[y] for ours, y in origins.items()}
    # The head is moved; the encoder's weights are copied.
    moved = {y for y in origins.values() if y.startswith("cls/")}
    kept = {x: y for x, y in source.shapes.items() if x not in moved}
    return dataclasses.replace(source, shapes={**kept, **copies}, read=read)
