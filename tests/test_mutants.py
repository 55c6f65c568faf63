"""Mutation operators on a source of a few lines."""

from tools.mutants import operators

_SOURCE = '''"""A text."""
def f(x: int = 3, *, y=0.0):
    """Returns 1 + 1."""
    if not x or x <= y:
        raise ValueError(x + 1)
    g(x, y)
    return max(x[1:], key=-1) + 2
'''


def _changed():
    sites = operators.named_sites(_SOURCE)
    before = _SOURCE.splitlines()
    for name, site in sites.items():
        after = operators.apply(_SOURCE, site).splitlines()
        lines = [
            (i + 1, new)
            for i, (old, new) in enumerate(zip(before, after, strict=True))
            if old != new
        ]
        assert [x for x, _ in lines] == [site.line]
        yield name, lines[0][1].strip()


def test_every_operator():
    assert dict(_changed()) == {
        "f:constant:0": "def f(x: int = 4, *, y=0.0):",
        "f:constant:1": "def f(x: int = 3, *, y=1.0):",
        "f:guard:0": "pass",
        "f:logic:0": "if not x and x <= y:",
        "f:not:0": "if  x or x <= y:",
        "f:comparison:0": "if not x or x < y:",
        "f:statement:0": "pass",
        "f:arguments:0": "g(y, x)",
        "f:arithmetic:0": "return max(x[1:], key=-1) - 2",
        "f:function:0": "return min(x[1:], key=-1) + 2",
        "f:keyword:0": "return max(x[1:], ) + 2",
        "f:slice:0": "return max(x[(1) + 1:], key=-1) + 2",
        "f:constant:2": "return max(x[1:], key=0) + 2",
        "f:constant:3": "return max(x[1:], key=-1) + 3",
    }
