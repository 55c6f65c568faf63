"""Computes the costs of an optimized HLO program without running it.

Each instruction of the entry computation is taken as one kernel, which reads
its operands and writes its result once. Its time is at least that of its
products at peak and that of its bytes at the bandwidth of the memory. The
roofline of the program is the sum over all kernels, or the time of all bytes if
that is longer: TPUs load the operands of a kernel during the ones before it.
"""

import collections
import dataclasses
import math
import re
from collections.abc import Iterator, Sequence

_SIZES = {
    **dict.fromkeys(("pred", "s4", "u4", "s8", "u8", "f8e4m3fn", "f8e5m2"), 1),
    **dict.fromkeys(("bf16", "f16", "s16", "u16"), 2),
    **dict.fromkeys(("f32", "s32", "u32"), 4),
    **dict.fromkeys(("f64", "s64", "u64"), 8),
}
_SHAPE = re.compile(rf"\b({'|'.join(_SIZES)})\[([\d,]*)\](\{{[^{{}}]*\}})?")
_COMPUTATION = re.compile(r"(ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{")
_INSTRUCTION = re.compile(
    r"\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\((.*)$"
)
# Operations without costs.
_FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast"),
    *("after-all", "iota", "copy-start", "async-start", "slice-start"),
    *("async-update", "opt-barrier", "partition-id", "replica-id"),
}
# The ends of copies between a chip's memory and a core's, which run parallel to
# kernels. The beginnings have the whole array, even if only a part is copied.
_LOADS = {"copy-done", "slice-done", "async-done"}
# Operations that only rearrange numbers.
_MOVES = {
    *("copy", "transpose", "reshape", "bitcast", "slice", "concatenate", "pad"),
    *("broadcast", "parameter", "constant", "tuple", "get-tuple-element"),
}
# Workspaces of library calls.
_WORKSPACES = {"s8", "u8"}


@dataclasses.dataclass(frozen=True)
class Array:
    """An array in a type of HLO.

    Attributes:
        in_memory: Whether it is in the chip's memory, not in a core's own.
    """

    dtype: str
    dims: tuple[int, ...]
    in_memory: bool

    @property
    def bytes(self) -> int:
        return _SIZES[self.dtype] * math.prod(self.dims)


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One line of a computation; `rest` begins with the operands."""

    name: str
    result: tuple[Array, ...]
    opcode: str
    rest: str

    @property
    def operands(self) -> list[str]:
        return re.findall(r"%([\w.\-]+)", self.rest.partition(")")[0])

    @property
    def target(self) -> str:
        found = re.search(r'custom_call_target="([^"]+)"', self.rest)
        return found[1] if found else ""

    @property
    def origin(self) -> str:
        found = re.search(r'op_name="([^"]*)"', self.rest)
        return re.sub(r"_\d+", "", found[1]) if found else ""

    @property
    def called(self) -> list[str]:
        pattern = r"(?:calls|to_apply|body)=%?([\w.\-]+)"
        return re.findall(pattern, self.rest)

    @property
    def times(self) -> int:
        """How often it runs the computations that it calls."""
        found = re.search(r'"known_trip_count":\{"n":"(\d+)"', self.rest)
        return int(found[1]) if found else 1


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The costs of one instruction.

    Attributes:
        kind: Its opcode, or the library function that it calls.
        origin: The name of the TensorFlow operation, without numbers.
        bytes: Read from and written to the chip's memory.
        only_moves: Whether it only copies and rearranges numbers.
    """

    kind: str
    origin: str
    flops: float
    bytes: int
    only_moves: bool


@dataclasses.dataclass(frozen=True)
class Costs:
    """The costs of one run of a program.

    Attributes:
        bytes: Moved by kernels, and by copies that run next to them.
        moved: Bytes of kernels that only copy and rearrange.
        seconds: The roofline.
    """

    kernels: int
    flops: float
    bytes: int
    moved: int
    seconds: float


class Program:
    """A program in the text form that XLA prints."""

    def __init__(self, text: str):
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.entry = ""
        lines: dict[str, Instruction] = {}
        for line in text.splitlines():
            if found := _COMPUTATION.match(line):
                lines = self.computations.setdefault(found[2], {})
                self.entry = found[2] if found[1] else self.entry
            elif found := _INSTRUCTION.match(line):
                name, result, opcode, rest = found.groups()
                lines[name] = Instruction(name, _arrays(result), opcode, rest)

    def costs(self, peak_flops: float, bandwidth: float) -> Costs:
        """Returns the program's costs on a chip."""
        kernels = list(self.kernels())
        loaded = self._loaded(self.entry)
        moved = sum(x.bytes for x in kernels)
        seconds = sum(
            max(x.flops / peak_flops, x.bytes / bandwidth) for x in kernels
        )
        return Costs(
            len(kernels),
            sum(x.flops for x in kernels),
            moved + loaded,
            sum(x.bytes for x in kernels if x.only_moves),
            max(seconds, (moved + loaded) / bandwidth),
        )

    def kernels(self, computation: str | None = None) -> Iterator[Kernel]:
        """Yields the kernels in order, those of loops as often as they run."""
        lines = self.computations[computation or self.entry]
        for line in lines.values():
            if line.opcode in ("while", "call", "conditional"):
                for _ in range(line.times):
                    for name in line.called:
                        yield from self.kernels(name)
            elif line.opcode not in _FREE | _LOADS:
                yield self._kernel(line, lines)

    def longest(
        self, count: int, peak_flops: float, bandwidth: float
    ) -> list[tuple[float, int, str]]:
        """Returns seconds, number, and kind and origin of the longest."""
        seconds: dict[str, float] = collections.defaultdict(float)
        numbers: collections.Counter[str] = collections.Counter()
        for x in self.kernels():
            name = f"{'moves' if x.only_moves else x.kind} {x.origin}"
            seconds[name] += max(x.flops / peak_flops, x.bytes / bandwidth)
            numbers[name] += 1
        names = sorted(seconds, key=lambda x: -seconds[x])[:count]
        return [(seconds[x], numbers[x], x) for x in names]

    def _kernel(
        self, line: Instruction, lines: dict[str, Instruction]
    ) -> Kernel:
        read = [x for name in line.operands for x in lines[name].result[:1]]
        arrays = [*line.result, *read]
        if line.target:
            arrays = [x for x in arrays if x.dtype not in _WORKSPACES]
        return Kernel(
            line.target or line.opcode,
            line.origin,
            self._flops(line, lines),
            sum(x.bytes for x in arrays if x.in_memory),
            self._only_moves(line),
        )

    def _loaded(self, computation: str) -> int:
        """Returns the bytes of copies that run in parallel with kernels."""
        total = 0
        for line in self.computations[computation].values():
            if line.opcode in _LOADS:
                total += sum(x.bytes for x in line.result[:1])
            elif line.opcode in ("while", "call"):
                inner = sum(map(self._loaded, line.called))
                total += line.times * inner
        return total

    def _only_moves(self, line: Instruction) -> bool:
        if line.opcode != "fusion":
            return line.opcode in _MOVES
        inner = [y for x in line.called for y in self.computations[x].values()]
        return all(map(self._only_moves, inner))

    def _flops(self, line: Instruction, lines: dict[str, Instruction]) -> float:
        operands = [lines[x].result[0] for x in line.operands if x in lines]
        if line.opcode == "dot" or "gemm" in line.target:
            return _product_flops(line, operands[0])
        if "matmul" in line.target:
            return _product_flops(line, operands[0])
        if "fmha" in line.target:
            return _attention_flops(line, operands)
        if line.opcode == "convolution":
            return _convolution_flops(line, operands)
        return sum(
            self._flops(inner, self.computations[name])
            for name in line.called
            if line.opcode == "fusion"
            for inner in self.computations[name].values()
        )


def _arrays(text: str) -> tuple[Array, ...]:
    """Returns the arrays of a type; a layout with S(n) is a core's memory."""
    return tuple(
        Array(
            dtype,
            tuple(int(x) for x in dims.split(",") if x),
            not re.search(r"S\([1-9]\d*\)", layout or ""),
        )
        for dtype, dims, layout in _SHAPE.findall(text)
    )


def _product_flops(line: Instruction, left: Array) -> float:
    found = re.search(
        r'lhs_contracting_(?:dims=\{|dimensions":\[)([\d,"]+)', line.rest
    )
    axes = re.findall(r"\d+", found[1]) if found else []
    depth = math.prod(left.dims[int(x)] for x in axes)
    return 2.0 * math.prod(line.result[0].dims) * depth


def _convolution_flops(line: Instruction, operands: Sequence[Array]) -> float:
    """Returns the FLOPs of a matrix product, which is a convolution on TPUs.

    The sizes of [M, K], [K, N] and [M, N] multiplied are (M K N)^2. Batch axes,
    which all three have, count once.
    """
    left, right = operands[:2]
    result = line.result[0]
    total = math.prod((*left.dims, *right.dims, *result.dims))
    found = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", line.rest)
    labels = found.groups() if found else ("", "", "")
    for label in set(labels[0]).intersection(*labels[1:]):
        if label.isdigit():
            sizes = {
                array.dims[text.index(label)]
                for array, text in zip(
                    (left, right, result), labels, strict=True
                )
            }
            if len(sizes) == 1:
                total //= sizes.pop()
    return 2.0 * math.sqrt(total)


def _attention_flops(line: Instruction, operands: Sequence[Array]) -> float:
    """Returns the FLOPs of cuDNN's attention of q [B, R, N, H], k [B, S, N, H].

    Forward are two products, backward five, because scores are recomputed.
    """
    products = 5 if "Backward" in line.target else 2
    q, k = operands[:2]
    return 2.0 * products * math.prod(q.dims) * k.dims[1]


def unexpected(
    operations: dict[str, int], allowed: Sequence[str] = ()
) -> dict[str, int]:
    """Returns the number of operations that TPUs or fusion handle badly."""
    pattern = re.compile(
        r"custom_call (?!__cudnn\$fmha)|while|dynamic_|real_dynamic|sort|infeed"
    )
    found = collections.Counter(
        {x: n for x, n in operations.items() if pattern.match(x)}
    )
    return {x: n for x, n in found.items() if x not in allowed}
