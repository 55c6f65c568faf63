"""The tensors in a family's tables, where files of Hugging Face have others.

A tensor of a file may be split into several of the tables, such as a kernel of
queries, keys and values. Several, one of each layer, may be stacked to a single
one. `foreign.HuggingFace` describes both.
"""

import functools
from collections.abc import Callable, Iterator, Mapping

from bert_tf import modeling
from bert_tf.checkpoints import huggingface_names, huggingface_weights, names
from bert_tf.encoders import families, foreign

import numpy as np


def open_views(
    theirs: foreign.HuggingFace,
    config: modeling.BertConfig,
    today: dict[str, str],
    stored: huggingface_weights.Shapes,
    read_stored: huggingface_weights.Reader,
) -> huggingface_weights.Reader:
    """Replaces the tensors of a file by those in the tables.

    `today`, current name -> stored name, and `stored` are changed. Returns the
    function that reads a tensor.
    """
    views: dict[str, Callable[[], np.ndarray]] = {}

    def split(file: str, ends: np.ndarray, index: int) -> np.ndarray:
        return np.split(read_stored(file), ends, theirs.split_axis)[index]

    def stack(files: list[str]) -> np.ndarray:
        return np.stack([read_stored(x) for x in files])

    rows = huggingface_names.table(config, "encoder")
    ours = {row.theirs: row.ours for row in rows}
    sizes = names.shapes(config, "encoder")
    for whole, parts in _splits(theirs, config):
        if whole not in today or not stored[today[whole]]:
            continue
        file = today.pop(whole)
        counts = [sizes[ours[x]][theirs.split_axis] for x in parts[:-1]]
        ends = np.cumsum(counts)
        # An array without memory, for the shapes.
        array = np.broadcast_to(np.int8(0), stored[file])
        for i, part in enumerate(np.split(array, ends, theirs.split_axis)):
            today[parts[i]] = parts[i]
            stored[parts[i]] = part.shape
            views[parts[i]] = functools.partial(split, file, ends, i)
    for name, parts in _stacks(theirs, config):
        files = [today[x] for x in parts if x in today]
        shapes = {stored[x] for x in files}
        # Otherwise a tensor is missing, and the others are left over.
        if len(files) == len(parts) and len(shapes) == 1:
            for own in parts:
                del today[own]
            today[name] = name
            stored[name] = (len(files), *shapes.pop())
            views[name] = functools.partial(stack, files)

    def read(name: str) -> np.ndarray:
        return views[name]() if name in views else read_stored(name)

    return read


def to_file(
    theirs: foreign.HuggingFace,
    config: modeling.BertConfig,
    tensors: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Returns the tensors of a file, by name, for those in the tables."""
    found = dict(tensors)
    for whole, parts in _splits(theirs, config):
        arrays = [found.pop(x) for x in parts]
        found[whole] = np.concatenate(arrays, theirs.split_axis)
    for name, parts in _stacks(theirs, config):
        found.update(zip(parts, found.pop(name), strict=True))
    return found


def _splits(
    theirs: foreign.HuggingFace, config: modeling.BertConfig
) -> Iterator[tuple[str, list[str]]]:
    """Yields the names of tensors that are split, and of their parts."""
    numbers = families.find(config).numbers(config)
    for whole, parts in theirs.split.items():
        for i in numbers if "{}" in whole else [()]:
            yield whole.format(*i), [x.format(*i) for x in parts]


def _stacks(
    theirs: foreign.HuggingFace, config: modeling.BertConfig
) -> Iterator[tuple[str, list[str]]]:
    """Yields the names of stacks, and of the tensors that they are made of."""
    numbers = families.find(config).numbers(config)
    for name, part in theirs.stacked.items():
        yield name, [part.format(*i) for i in numbers]
