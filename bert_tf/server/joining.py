"""Joins the inputs of several requests to one batch, and splits its outputs.

Each request gets what it would have got alone. Some outputs are as wide as the
widest row of a batch, and padded; they are cut to the widest row of a request.
Where it can't be told how wide that is, nothing is split.

Shapes: B rows, E entities or masks of a row, W words, S sequence length.
"""

from collections.abc import Mapping, Sequence

from bert_tf.server.signatures import Signature

import numpy as np

Arrays = Mapping[str, np.ndarray]

# Outputs that tell widths: how many places of a row are real, [B], and which
# are, [B, S].
_COUNT, _MASK = "count", "input_mask"
# A string [B, W] for each word, "" behind the last.
_LABEL = "label"


def rows_of(inputs: Arrays) -> int | None:
    """Returns how many rows inputs have; None unless all have as many."""
    sizes = {x.shape[0] if x.ndim else None for x in inputs.values()}
    return sizes.pop() if len(sizes) == 1 else None


def join(parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """Returns the rows of some requests in one; the names are the same."""
    if len(parts) == 1:
        return dict(parts[0])
    return {
        name: np.concatenate([part[name] for part in parts])
        for name in parts[0]
    }


def split(
    signature: Signature,
    inputs: Arrays,
    outputs: Arrays,
    sizes: Sequence[int],
) -> list[dict[str, np.ndarray]] | None:
    """Returns the outputs of each request.

    Args:
        signature: What was run.
        inputs: What went in, of all rows.
        outputs: What came out.
        sizes: The rows of each request.

    Returns:
        None where it can't be told what belongs to which.
    """
    if any(len(x) != sum(sizes) for x in outputs.values()):
        return None
    # What inputs have, all rows have: they are joined if they are of one shape.
    given = {size for x in inputs.values() for size in x.shape[1:]}
    ends = np.cumsum(sizes)[:-1]
    parts = [
        dict(zip(outputs, arrays, strict=True))
        for arrays in zip(
            *(np.split(x, ends) for x in outputs.values()), strict=True
        )
    ]
    if signature.has_fixed_widths:
        return parts
    found = []
    for part in parts:
        cut = _cut(signature, part, given)
        if cut is None:
            return None
        found.append(cut)
    return found


def _cut(
    signature: Signature, part: Arrays, given: set[int]
) -> dict[str, np.ndarray] | None:
    """Cuts the outputs of one request to its widest row."""
    cut = {}
    for name, array in part.items():
        shape = signature.outputs[name].shape
        if shape is None or None in shape[2:]:
            if shape is None or not set(array.shape[1:]) <= given:
                return None
        elif len(shape) > 1 and shape[1] is None:
            width = _width(name, array, part, given)
            if width is None:
                return None
            array = array[:, :width]
        cut[name] = array
    return cut


def _width(
    name: str, array: np.ndarray, part: Arrays, given: set[int]
) -> int | None:
    """Returns how wide an output [B, ?, ...] is where it is real."""
    if array.shape[1] in given:
        return array.shape[1]
    if name == _LABEL and _COUNT in part:
        real = (array != b"").any(axis=0)  # [W]
        return int(np.flatnonzero(real)[-1]) + 1 if real.any() else 0
    if _COUNT in part:
        return int(part[_COUNT].max(initial=0))
    if _MASK in part:
        return int(part[_MASK].sum(axis=1).max(initial=0))
    return None
