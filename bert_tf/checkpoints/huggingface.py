"""Folders of Hugging Face's transformers: config.json and the weights."""

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf import config_keys, configuration, files, modeling, terminals
from bert_tf.checkpoints import (
    huggingface_names,
    huggingface_tokenizer,
    huggingface_weights,
    names,
    opened,
    runs,
    tf1_files,
    tokenizer_files,
)
from bert_tf.encoders import families, foreign
from bert_tf.errors import InputError, listed, repeated, shortened

import numpy as np
import tensorflow as tf
from absl import logging
from safetensors import numpy as safetensors_numpy

CONFIG, GENERATION_FILE = "config.json", "generation_config.json"
# Heads that truncate longer inputs. Most others read them in windows.
CUT = ("classification", "multiple_choice")
# From this length, transformers takes a tokenizer as one without a limit.
_NO_LIMIT = 1e20


# ---- Reading ----------------------------------------------------------------


def open_checkpoint(folder: str) -> opened.Checkpoint:
    """Opens a folder with a config.json and weights."""
    if not tf.io.gfile.exists(os.path.join(folder, CONFIG)):
        raise InputError(
            f"The folder {folder} has weights of Hugging Face but no {CONFIG}, "
            "which says what they are. Copy or download it, too."
        )
    values = opened.read_json(folder, CONFIG, hidden_act=str)
    try:
        values = huggingface_names.with_own_kind(values)
        # A model that is none of ours is named before its weights are read.
        config = huggingface_names.to_config(values)
        _warn_of_code(values, config, folder)
        stored, read_stored = huggingface_weights.open_files(folder)
        told = huggingface_names.with_kind(values, stored, folder)
        if told is not values:
            values, config = told, huggingface_names.to_config(told)
        theirs = huggingface_names.find_tables(config, "encoder")
        today = huggingface_names.canonical(theirs, stored)
        read_stored = _convert(
            theirs.conversions(config), today, stored, read_stored
        )
        head = huggingface_names.find_head(theirs, values, today)
        config = huggingface_names.with_pooler(config, head)
        has_labels = names.HEADS[head].has_labels
        count = _count(theirs, head, today, stored)
        labels = _labels(values, head, count) if has_labels else None
        if head == "classification":
            config = _with_cross_encoder_settings(config, values, folder, count)
        elif head == "tagging":
            # Without the key: transformers' pipelines label every token.
            splits_cjk = values.get("splits_cjk", True)
            config = dataclasses.replace(config, splits_cjk=splits_cjk)
    except tf1_files.UnreadableError:
        raise
    except InputError as error:
        path = os.path.join(folder, CONFIG)
        raise InputError(f"{path}: {error}") from error
    _check_tied(folder, theirs.tied, today, read_stored)
    own = names.HEADS[head].variables
    has_words = "cls/predictions/output_bias" in own
    if has_words and values.get("tie_word_embeddings") is False:
        _warn_of_lost_decoder(folder, theirs.tied, today)
    rows = {
        row.ours: row
        for row in huggingface_names.table(config, head)
        if row.theirs in today
    }
    shapes = {
        name: stored[today[row.theirs]][:: -1 if row.transposed else 1]
        for name, row in rows.items()
    }
    used = {row.theirs for row in rows.values()} | theirs.tied.keys()
    left_over = {name: today[name] for name in sorted(today.keys() - used)}
    is_bare = not any(theirs.prefix in name for name in today.values())
    _check_encoder(left_over, is_bare, theirs, config, folder)
    zeros = names.zeros(config, head, *shapes.get("output_weights", ())[:1])
    shapes |= zeros
    names.check(config, shapes, folder)
    encoder = families.find(config)
    if encoder.pooler & shapes.keys():
        for note in huggingface_names.pooler_notes(config):
            logging.warning("%s: %s", folder, note)

    def read(wanted: Sequence[str]) -> dict[str, np.ndarray]:
        arrays = {}
        for name in wanted:
            if name in zeros:
                arrays[name] = np.zeros(zeros[name], np.float32)
                continue
            value = read_stored(today[rows[name].theirs])
            opened.check_not_quantized(value, today[rows[name].theirs], folder)
            value = np.asarray(value, np.float32)
            arrays[name] = value.T if rows[name].transposed else value
        return arrays

    do_lower_case = huggingface_tokenizer.lower_cases(folder)
    huggingface_tokenizer.warn_of_class(folder)
    if head in CUT:
        huggingface_tokenizer.warn_of_side(folder, head)
    source = opened.Checkpoint(
        path=folder,
        format="hf",
        shapes=shapes,
        read=read,
        config=config,
        vocab=(
            huggingface_tokenizer.read_vocab(folder)
            if families.find(config).vocabularies
            else None
        ),
        do_lower_case=do_lower_case,
        labels=labels,
        left_over=tuple(sorted(left_over.values())),
        max_seq_length=_max_length(folder, config) if head in CUT else None,
    )
    if head == "seq2seq" and (vocabulary := source.read_vocabulary()):
        _check_generation(
            folder, values, theirs.keys.token_ids(vocabulary.special)
        )
    for note in configuration.rate_notes(values, config):
        terminals.log_once(f"{os.path.join(folder, CONFIG)}: {note}")
    return source


def _warn_of_code(
    values: Mapping[str, Any], config: modeling.BertConfig, folder: str
) -> None:
    """Warns of a model that transformers computes by code in the folder."""
    auto_map = values.get("auto_map")
    own = set(auto_map) if isinstance(auto_map, dict) else set()
    if own := own - {"AutoConfig", "AutoTokenizer"}:
        terminals.warn_once(
            f"{os.path.join(folder, CONFIG)} names code of the model, which "
            "bert_tf does not run: it computes as "
            f"model_type={config.model_type}. Compare the outputs. "
            f"Received: auto_map of {listed(sorted(own))}"
        )


def _check_generation(
    folder: str, values: Mapping[str, Any], ours: Mapping[str, int]
) -> None:
    """Raises InputError if texts begin or end with other tokens than `ours`.

    Logs other settings of generation, which are not used.
    """
    values = {**values, **opened.read_json(folder, GENERATION_FILE)}
    for key in ("decoder_start_token_id", "eos_token_id"):
        if values.get(key) not in (None, ours[key], [ours[key]]):
            raise InputError(
                f"{folder}: generated texts must begin and end with the tokens "
                f"of the vocabulary, and `{key}` in {CONFIG} or "
                f"{GENERATION_FILE} must be {ours[key]}: models with other "
                f"tokens are not supported. Received: {key}={values[key]!r}"
            )
    others = [
        f"{key}={values[key]}"
        for key in sorted(config_keys.GENERATION & values.keys())
        if values[key] not in (None, False)
    ]
    if others:
        terminals.log_once(
            f"{folder}: not used, generation has its own flags, such as "
            f"--beam_size: {listed(others)}."
        )


def _max_length(folder: str, config: modeling.BertConfig) -> int | None:
    """Returns how many tokens of a text transformers reads; None if any number.

    Without a table of positions, only the tokenizer may have a limit.
    """
    limit = huggingface_tokenizer.read_length(
        folder, "tokenizer_config.json", "model_max_length"
    )
    shapes = families.find(config).names(config).values()
    has_table = any("M" in letters for letters in shapes)
    if not has_table and (limit is None or limit >= _NO_LIMIT):
        return None
    longest = config.max_position_embeddings
    return int(min(limit or longest, longest))


def _with_cross_encoder_settings(
    config: modeling.BertConfig,
    values: Mapping[str, Any],
    folder: str,
    count: int,
) -> modeling.BertConfig:
    """Returns the config with what a CrossEncoder's own files add to it.

    Raises InputError for settings that are not supported.
    """
    model_settings = opened.read_json(
        folder, huggingface_names.SBERT_MODEL_FILE, processing_kwargs=dict
    )
    if options := huggingface_names.tokenizer_options(model_settings):
        raise InputError(
            f"{huggingface_names.SBERT_MODEL_FILE} passes options to the "
            "tokenizer, which is not supported. "
            f"Received: {options}"
        )
    encoder_settings = opened.read_json(
        folder,
        huggingface_names.SBERT_FILE,
        prompts=dict,
        default_prompt_name=str,
    )
    found = huggingface_names.with_activation(
        config, values, encoder_settings, count
    )
    is_said = found is not config or values.get("problem_type") in (
        "regression",
        modeling.MULTI_LABEL,
    )
    if count == 1 and not is_said:
        terminals.warn_once(
            f"{os.path.join(folder, CONFIG)}: the score is the logit of the "
            "only class. The pipeline of transformers, and "
            "sentence-transformers, return its sigmoid; for that, add "
            f"{huggingface_names.SIGMOID} to this file."
        )
    return found


def _convert(
    conversions: Sequence[foreign.Conversion],
    today: dict[str, str],
    stored: huggingface_weights.Shapes,
    read_stored: huggingface_weights.Reader,
) -> huggingface_weights.Reader:
    """Replaces tensors that are split or stacked; returns their reader.

    `today` and `stored` are changed. A new tensor is stored under its name.
    """
    made = {}
    for row in conversions:
        if not today.keys() >= set(row.theirs):
            continue
        files = [today[x] for x in row.theirs]
        try:  # With arrays that have shapes, but no memory.
            arrays = row.to_ours([np.broadcast_to(0, stored[x]) for x in files])
        except (IndexError, ValueError):
            continue  # The tensors are reported as left over.
        for name in row.theirs:
            del today[name]
        for i, (name, array) in enumerate(zip(row.ours, arrays, strict=True)):
            today[name], stored[name] = name, array.shape
            made[name] = (row, files, i)

    def read(name: str) -> np.ndarray:
        if name not in made:
            return read_stored(name)
        row, files, i = made[name]
        return row.to_ours([read_stored(x) for x in files])[i]

    return read


def _check_encoder(
    left_over: Mapping[str, str],
    is_bare: bool,
    theirs: foreign.HuggingFace,
    config: modeling.BertConfig,
    folder: str,
) -> None:
    """Raises InputError where an encoder has tensors that would be left out.

    Args:
        left_over: Current name -> stored name.
        is_bare: Whether the names in the file have no prefix.
        theirs: The tables of the encoder.
        config: The model's config.
        folder: The folder, for errors.
    """
    encoder = families.find(config)
    layers = (x.removeprefix(theirs.prefix) for x in sorted(theirs.layers))
    pattern = rf"({'|'.join(map(re.escape, layers))})(\d+)\."
    for current, name in left_over.items():
        is_adapter = "lora_" in name
        # A head may have embeddings, too.
        is_of_encoder = is_bare or current.startswith(theirs.prefix)
        is_embedding = re.match(
            r"\w*embeddings\.", current.removeprefix(theirs.prefix)
        )
        if is_of_encoder and is_embedding and not is_adapter:
            raise InputError(
                f"{folder}: {name} is not a tensor of {encoder.name}'s "
                "embeddings, and without it, hidden states would differ. "
                "This is another model (LayoutLM, ERNIE ...), which can't be "
                "read. Use it with the library that wrote it. "
                f"Received: model_type={config.model_type}"
            )
        found = re.search(pattern, name)
        if found and int(found[2]) >= encoder.num_layers(config):
            raise InputError(
                f"{folder}: the tensors are not those of config.json: it says "
                f"{encoder.counts[0]}={encoder.num_layers(config)}, and there "
                f"is {name}."
            )
        if found or is_adapter:
            raise InputError(
                f"{folder}: {name} is not a tensor of {encoder.name}'s layers. "
                "Merge adapters (LoRA) into the weights first. Models with "
                "other layers can't be read: use them with the library that "
                f"wrote them. Received: model_type={config.model_type}"
            )


def _check_tied(
    folder: str,
    tied: Mapping[str, str],
    today: Mapping[str, str],
    read_stored: huggingface_weights.Reader,
) -> None:
    """Raises InputError where a second copy is another tensor."""
    for copy, original in tied.items():
        if copy not in today or original not in today:
            continue
        second, first = read_stored(today[copy]), read_stored(today[original])
        if not np.array_equal(second, first):
            raise InputError(
                f"{folder}: {copy} is another tensor than {original}. "
                "The output layer of BERT is the table of word embeddings: "
                "a model without tied weights can't be read."
            )


def _warn_of_lost_decoder(
    folder: str, tied: Mapping[str, str], today: Mapping[str, str]
) -> None:
    """Warns if the file lacks the output layer of a config that unties it."""
    copies = [x for x in tied if x.endswith(".weight")]
    if not today.keys() & copies:
        terminals.warn_once(
            f"{folder}: {CONFIG} says tie_word_embeddings=false, and there is "
            f"no {copies[0]}. The output layer is read as the table of word "
            "embeddings; transformers starts it from random values. Correct "
            f"{CONFIG}, or download the weights again."
        )


def _labels(
    values: Mapping[str, Any], head: str, count: int
) -> tuple[str, ...] | None:
    """Returns the names of `count` classes, unless they are the default ones.

    A classifier of one class gives a score, whatever its name, unless a text
    may have several. Raises InputError for missing numbers, for names that are
    neither a line of text nor numbers, for a name that two classes have, and
    for names in `label2id` alone.
    """
    by_id = values.get("id2label") or {}
    by_name = values.get("label2id")
    is_named = isinstance(by_name, dict) and not all(
        re.fullmatch(r"LABEL_\d+", x) for x in by_name
    )
    if is_named and not by_id:
        raise InputError(
            "Only `label2id` names the classes. Name them in `id2label`, which "
            'transformers reads, such as {"0": "no", "1": "yes"}. '
            f"Received: label2id={shortened(str(by_name))}"
        )
    try:
        numbers = sorted(by_id, key=int)
        if [int(x) for x in numbers] != [*range(len(numbers))]:
            raise ValueError
        named = [by_id[key] for key in numbers]
        if not all(isinstance(x, str | int | float) for x in named):
            raise TypeError
    except (TypeError, ValueError) as error:
        raise InputError(
            "`id2label` must map the numbers of all classes, from 0, to their "
            'names, such as {"0": "no", "1": "yes"}. '
            f"Received: id2label={shortened(str(by_id))}"
        ) from error
    labels = [str(name) for name in named]
    # A labels.txt has a line for each class.
    wrong = [x for x in labels if not x.strip() or "\n" in x]
    if wrong:
        raise InputError(
            "`id2label` must give each class a name that is one line, and not "
            f"empty. Received: {shortened(repr(wrong[0]))} in id2label"
        )
    if twice := sorted(repeated(labels)):
        raise InputError(
            "`id2label` gives two classes the same name, so that an answer "
            "would not say which of them is meant. Give each its own name. "
            f"Received: {listed(twice)} in id2label"
        )
    is_several = values.get("problem_type") == modeling.MULTI_LABEL
    if head == "classification" and len(labels) == 1 and not is_several:
        return None
    if values.get("problem_type") == "regression" and count > 1:
        raise InputError(
            "A model has one score, or classes: give a model for each score. "
            f"Received: problem_type=regression with {count} scores"
        )
    numbered = [f"LABEL_{i}" for i in range(len(labels))]
    return None if labels == numbered else tuple(labels)


def _count(
    theirs: foreign.HuggingFace,
    head: str,
    today: Mapping[str, str],
    stored: huggingface_weights.Shapes,
) -> int:
    """Returns how many outputs a head's last layer has; 0 if it has none."""
    outputs = (
        stored[today[row.theirs]]
        for row in theirs.heads[head].rows
        if row.ours.endswith("output_weights") and row.theirs in today
    )
    return sum(next(outputs, ())[:1])


# ---- Writing ----------------------------------------------------------------


def write(
    folder: str, source: opened.Checkpoint, config: modeling.BertConfig
) -> set[str]:
    """Fills an empty folder for transformers; returns the names of weights."""
    head = names.find_head(source.shapes, source.path)
    head = huggingface_names.head_there(config, head)
    theirs = huggingface_names.find_tables(config, head)
    pooler = families.find(config).pooler
    whole = huggingface_names.table(config, head)
    needed = {row.ours for row in whole} - theirs.optional
    families.find(config).check_has_all(config, needed)
    rows = [
        row
        for row in whole
        if row.ours in source.shapes
        and (
            row.ours not in pooler or huggingface_names.has_pooler(config, head)
        )
    ]
    zeros = names.zeros(config, head).keys() & source.shapes.keys()
    if any(x.any() for x in source.read([*zeros]).values()):
        raise InputError(
            "transformers has no bias in this head, and this model's is not "
            "zero: use --output_format=tf1. "
            f"Received: {', '.join(zeros)} in {source.path}"
        )
    values = source.read([row.ours for row in rows])
    for row in rows:
        if row.transposed:
            values[row.ours] = values[row.ours].T
    tensors = {row.theirs: values[row.ours] for row in rows}
    for own in theirs.conversions(config):
        arrays = own.to_theirs([tensors.pop(x) for x in own.ours])
        tensors.update(zip(own.theirs, arrays, strict=True))
    # A bare encoder's names have no prefix.
    prefix = theirs.prefix if head == "encoder" else ""
    tensors = {
        name.removeprefix(prefix): np.ascontiguousarray(value)
        for name, value in tensors.items()
    }
    data = safetensors_numpy.save(tensors, metadata={"format": "pt"})
    path = os.path.join(folder, huggingface_weights.FILE)
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(data)
    described = huggingface_names.from_config(
        config, head, _classes(source, head)
    )
    if (vocabulary := source.read_vocabulary()) is not None:
        is_usual = vocabulary.kind in families.find(config).vocabularies
        tokenizer_files.write(
            folder,
            vocabulary,
            source.max_length(config),
            theirs.tokenizer if is_usual else None,
            runs.flags_of(source.path).get("long_documents") == "tail",
        )
        pad = vocabulary.ids.get(vocabulary.special.pad.text)
        _check_padding(theirs, pad)
        if pad is not None:
            described["pad_token_id"] = pad
        described |= theirs.keys.token_ids(vocabulary.special)
    files.write_json(os.path.join(folder, CONFIG), described)
    return zeros | {row.ours for row in rows}


def _check_padding(theirs: foreign.HuggingFace, pad: int | None) -> None:
    """Raises InputError where transformers would count other positions."""
    needed = theirs.keys.needed.get("pad_token_id")
    if needed not in (None, pad):
        raise InputError(
            "transformers counts the positions of this model by its padding, "
            f"which must be token {needed} of the vocabulary: use "
            "--output_format=tf1, or give the vocabulary of a RoBERTa. "
            f"Received: pad_token_id={pad}"
        )


def _classes(source: opened.Checkpoint, head: str) -> Sequence[str] | None:
    """Returns the names of the classes; None for a score or no classes."""
    if source.labels or not names.HEADS[head].has_labels:
        return source.labels
    (count,) = source.shapes[names.HEADS[head].bias]
    if head == "classification" and count == 1:
        return None
    return [f"LABEL_{i}" for i in range(count)]
