"""Mutation operators: small changes to source code.

A site is one possible change: a span of characters and its replacement. Line
numbers do not change. A site is named `function:operator:n`, where n counts the
sites of this operator in this function, so edits of other functions do not
rename it.
"""

import ast
import collections
import dataclasses
import re
from collections.abc import Iterator

_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "+"),
    ast.Mod: ("%", "+"),
}
_NAMES = {
    left: right
    for pair in (
        ("min", "max"),
        ("any", "all"),
        ("ceil", "floor"),
        ("startswith", "endswith"),
        ("lstrip", "rstrip"),
        ("find", "rfind"),
        ("minimum", "maximum"),
        ("reduce_sum", "reduce_mean"),
        ("reduce_min", "reduce_max"),
        ("reduce_any", "reduce_all"),
        ("zeros", "ones"),
        ("zeros_like", "ones_like"),
        ("argmin", "argmax"),
        ("removeprefix", "removesuffix"),
    )
    for left, right in (pair, pair[::-1])
}
# Keyword arguments that a call can usually omit.
_KEYWORDS = {
    *("axis", "keepdims", "key", "reverse", "default", "dtype", "training"),
    *("exclusive", "errors", "exist_ok", "initializer", "batch_dims"),
    *("drop_remainder", "from_logits", "name_scope", "mask", "weights", "side"),
}
# Calls that are not mutated: messages, definitions of flags, no-ops in tests.
_MESSAGES = re.compile(
    r"^(logging|warnings|print|_?log|super|phases|gc|locale|TypeVar|"
    r"dataclasses|flags|flag_sections|_[A-Z]+)\b|Error$"
)
# An operator, and the span and text of a replacement.
_Changes = Iterator[tuple[str, int, int, str]]
_Block = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclasses.dataclass(frozen=True)
class Site:
    """One possible change, without the module's name."""

    function: str
    operator: str
    line: int
    start: int  # characters into the source
    end: int
    text: str


def named_sites(source: str) -> dict[str, Site]:
    """Returns the sites of a module by `function:operator:n`, in order."""
    numbers: collections.Counter[str] = collections.Counter()
    named = {}
    for site in _Finder(source).sites:
        name = f"{site.function}:{site.operator}"
        named[f"{name}:{numbers[name]}"] = site
        numbers[name] += 1
    return named


def apply(source: str, site: Site) -> str:
    """Returns the source with one change."""
    lines = "\n" * source.count("\n", site.start, site.end)
    lines = lines[site.text.count("\n") :]
    return source[: site.start] + site.text + lines + source[site.end :]


class _Finder:
    """Collects the sites of a module in `sites`."""

    def __init__(self, source: str):
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = source.splitlines()
        self._scope: list[str] = []
        self.sites: list[Site] = []
        self._visit(ast.parse(source))

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, _Block):
            self._visit_block(node)
        elif not _is_skipped(node):
            for operator, start, end, text in self._changes(node):
                self._add(operator, start, end, text)
            for child in _children(node):
                self._visit(child)

    def _visit_block(self, node: _Block) -> None:
        if node.name in ("__repr__", "__str__"):
            return
        self._scope.append(node.name)
        if not isinstance(node, ast.ClassDef):
            defaults = [*node.args.defaults, *node.args.kw_defaults]
            for default in filter(None, defaults):
                self._visit(default)
        for child in node.body:
            self._visit(child)
        self._scope.pop()

    def _add(self, operator: str, start: int, end: int, text: str) -> None:
        function = ".".join(self._scope) or "module"
        line = self._source.count("\n", 0, start) + 1
        site = Site(function, operator, line, start, end, text)
        try:
            ast.parse(apply(self._source, site))
        except SyntaxError:
            return
        self.sites.append(site)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return (
            self._offset(node.lineno, node.col_offset),  # type: ignore
            self._offset(node.end_lineno, node.end_col_offset),  # type: ignore
        )

    def _offset(self, line: int, column: int) -> int:
        """Converts a line and a column in bytes to an offset in characters."""
        text = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(text)

    def _changes(self, node: ast.AST) -> _Changes:
        if isinstance(node, ast.Compare) and len(node.ops) >= 1:
            yield from self._comparisons(node)
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            old, new = _ARITHMETIC[type(node.op)]
            if not _is_text(node.left) and not _is_text(node.right):
                yield from self._between(
                    "arithmetic", node.left, node.right, old, new
                )
        elif isinstance(node, ast.BoolOp):
            old, new = "and", "or"
            if isinstance(node.op, ast.Or):
                old, new = new, old
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between("logic", left, right, old, new)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            start = self._span(node)[0]
            yield "not", start, start + len("not"), ""
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant):
                yield "constant", *self._span(node), "0"
        elif isinstance(node, ast.Constant):
            yield from self._constants(node)
        elif isinstance(node, ast.Call):
            yield from self._calls(node)
        elif isinstance(node, ast.Slice):
            yield from self._slices(node)
        elif isinstance(node, ast.stmt):
            yield from self._statements(node)

    def _comparisons(self, node: ast.Compare) -> _Changes:
        operands = [node.left, *node.comparators]
        for i, operator in enumerate(node.ops):
            old, new = _COMPARISONS[type(operator)]
            yield from self._between(
                "comparison", operands[i], operands[i + 1], old, new
            )

    def _between(
        self, operator: str, left: ast.AST, right: ast.AST, old: str, new: str
    ) -> _Changes:
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = re.escape(old).replace(r"\ ", r"\s+")
        found = re.search(pattern, self._source[start:end])
        if found:
            yield operator, start + found.start(), start + found.end(), new

    def _constants(self, node: ast.Constant) -> _Changes:
        span = self._span(node)
        if isinstance(node.value, bool):
            yield "boolean", *span, str(not node.value)
        elif isinstance(node.value, int):
            yield "constant", *span, str(node.value + 1)
        elif isinstance(node.value, float):
            yield "constant", *span, repr(node.value * 2 or 1.0)

    def _calls(self, node: ast.Call) -> _Changes:
        name = node.func
        called = name.attr if isinstance(name, ast.Attribute) else ""
        called = name.id if isinstance(name, ast.Name) else called
        if called in _NAMES:
            end = self._span(name)[1]
            yield "function", end - len(called), end, _NAMES[called]
        for keyword in node.keywords:
            if keyword.arg in _KEYWORDS:
                start, end = self._span(keyword)
                end += self._source[end] == ","
                yield "keyword", start, end, ""
        if len(node.args) >= 2:
            one, two = node.args[:2]
            both = isinstance(one, ast.Name) and isinstance(two, ast.Name)
            if both and called not in ("isinstance", "map", "getattr", "cast"):
                (start, middle), (after, end) = map(self._span, (one, two))
                parts = (after, end), (middle, after), (start, middle)
                text = "".join(self._source[x:y] for x, y in parts)
                yield "arguments", start, end, text

    def _slices(self, node: ast.Slice) -> _Changes:
        for bound, change in (node.lower, "+ 1"), (node.upper, "- 1"):
            if bound is not None:
                start, end = self._span(bound)
                text = f"({self._source[start:end]}) {change}"
                yield "slice", start, end, text

    def _statements(self, node: ast.stmt) -> _Changes:
        if isinstance(node, ast.AugAssign) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield "statement", *self._span(node), "pass"
        elif isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise):
            yield "guard", *self._span(node.body[0]), "pass"
        elif isinstance(node, ast.Continue):
            yield "statement", *self._span(node), "break"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the child nodes to mutate: no annotations, no mutated slices."""
    if isinstance(node, ast.AnnAssign):
        if node.value:
            yield node.value
        return
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):
            yield node.operand
        return
    for child in ast.iter_child_nodes(node):
        is_bound = isinstance(node, ast.Slice) and isinstance(
            child, (ast.Constant, ast.UnaryOp)
        )
        if not is_bound:
            yield child


def _is_skipped(node: ast.AST) -> bool:
    """Whether a node is not mutated: errors, imports, messages."""
    if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) in ("__all__", "__version__")
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.Expr):
        node = node.value
    return isinstance(node, ast.Call) and bool(
        _MESSAGES.search(ast.unparse(node.func))
    )


def _is_text(node: ast.AST) -> bool:
    """Whether a node is a literal string, tuple or list."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, bytes))
    return isinstance(node, (ast.JoinedStr, ast.Tuple, ast.List))
