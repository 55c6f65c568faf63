"""What looks wrong to extract_features.py, and rightly works."""

from tests.bad_inputs import matrix

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Wrote {out}/vectors.jsonl."),
    "odd lines": matrix.Case({"input_file": "{data}/odd.txt"}, "5 lines"),
    "an odd name": matrix.Case(
        {"output_file": "{out}/é ü 博 %s {{}}.npy"}, "博 %s"
    ),
    "another library's name, and a format": matrix.Case(
        {"output_file": "{out}/x.npz", "output_format": "jsonl"}, "x.npz"
    ),
    "a C locale": matrix.Case(
        {"output_file": "{out}/é.jsonl"}, "é", environment={"LC_ALL": "C"}
    ),
    "no backend of matplotlib": matrix.Case(
        {}, "", environment={"MPLBACKEND": "none"}
    ),
    "batch of an export alone": matrix.Case(
        {
            "input_file": None,
            "output_file": None,
            "batch_size": "4",
            "export_dir": "{out}/export",
            "unit": "mean",
        },
        "Not used, as they go with --output_file: --batch_size.",
    ),
}
