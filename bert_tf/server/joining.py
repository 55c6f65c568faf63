"""Joins the inputs of several requests into a batch, and splits its outputs.

Each request gets the same outputs as alone. Some outputs are padded to the
widest row of the batch; they are cut to the widest row of the request. If that
width is unknown, outputs are not split. The outputs of a request that ran in
parts are padded to the widest part by heads that count what they find. If
others' widths differ, the parts are not joined.

Shapes: B rows, E entities or masks per row, W words, S sequence length.
"""

from collections.abc import Mapping, Sequence

from bert_tf.server.signature_defs import Signature

import numpy as np

Arrays = Mapping[str, np.ndarray]

# Outputs that give the width of rows: the number of real positions, [B], and
# the mask of real positions, [B, S].
_COUNT, _MASK = "count", "input_mask"
# A string [B, W] for each word, padded with "".
_LABEL = "label"
# Outputs that are padded with -1, unlike others with "" or 0.
_POSITIONS = ("start", "end")


def rows_of(inputs: Arrays) -> int | None:
    """Returns the number of rows of inputs; None if they differ."""
    sizes = {x.shape[0] if x.ndim else None for x in inputs.values()}
    return sizes.pop() if len(sizes) == 1 else None


def max_rows_of(inputs: Arrays) -> int:
    """Returns the max number of rows of an input; 1 without rows."""
    return max((len(x) for x in inputs.values() if x.ndim), default=1) or 1


def runs_in_parts(signature: Signature) -> bool:
    """Whether the outputs of parts of a request may be joined.

    Their widths are fixed, or maybe the widths of inputs, or padded as by a
    head that counts what it finds.
    """
    return (
        signature.has_fixed_widths
        or _COUNT in signature.outputs
        or any(None in (x.shape or ())[1:] for x in signature.inputs.values())
    )


def join(parts: Sequence[Arrays]) -> dict[str, np.ndarray]:
    """Concatenates rows: of several requests, or of the parts of one."""
    if len(parts) == 1:
        return dict(parts[0])
    return {
        name: np.concatenate(_padded(name, [part[name] for part in parts]))
        for name in parts[0]
    }


def join_parts(
    signature: Signature, sizes: Sequence[int], parts: Sequence[Arrays]
) -> dict[str, np.ndarray] | None:
    """Returns the outputs of a request that ran in parts of some sizes.

    None if they are unknown: not one for each row, or padded in an unknown way.
    """
    shapes = {(name, x.shape[1:]) for part in parts for name, x in part.items()}
    has_rows = all(
        len(x) == size
        for part, size in zip(parts, sizes, strict=True)
        for x in part.values()
    )
    is_known = _COUNT in signature.outputs or len(shapes) == len(parts[0])
    return join(parts) if has_rows and is_known else None


def _padded(name: str, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Pads arrays to the widest of them, as the graph pads rows."""
    shapes = {x.shape[1:] for x in arrays}
    if len(shapes) == 1:
        return arrays
    widths = np.max([*shapes], axis=0)
    value: bytes | int = -1 if name in _POSITIONS else 0
    if arrays[0].dtype == object:
        value = b""

    def padded(array: np.ndarray) -> np.ndarray:
        found = np.full((len(array), *widths), value, array.dtype)
        found[tuple(map(slice, array.shape))] = array
        return found

    return [padded(x) for x in arrays]


def split(
    signature: Signature,
    inputs: Arrays,
    outputs: Arrays,
    sizes: Sequence[int],
) -> list[dict[str, np.ndarray]] | None:
    """Returns the outputs of each request.

    Args:
        signature: The signature that was run.
        inputs: Inputs of all rows.
        outputs: Outputs of all rows.
        sizes: Number of rows of each request.

    Returns:
        The outputs, or None if they cannot be attributed to requests.
    """
    if any(len(x) != sum(sizes) for x in outputs.values()):
        return None
    # All rows have the inputs' widths, as only inputs of equal shape are
    # joined.
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
    """Returns the unpadded width of an output [B, ?, ...], or None."""
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
