"""What looks wrong to run_prediction.py, and rightly works."""

from tests.bad_inputs import matrix

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Wrote {out}/answers.jsonl."),
    "an odd name": matrix.Case({"output_file": "{out}/é 博 %s.tsv"}, "博 %s"),
    "a C locale": matrix.Case(
        {"output_file": "{out}/é.jsonl"}, "é", environment={"LC_ALL": "C"}
    ),
    "odd lines": matrix.Case({"input_file": "{data}/odd.txt"}, "Wrote"),
    "a stride of more than a window": matrix.Case(
        {
            "model_dir": "{data}/span",
            "input_file": "{data}/lines.txt",
            "doc_stride": "99",
        },
        "Wrote",
    ),
    "a run that lost the name of its newest weights": matrix.Case(
        {"model_dir": "{data}/runs/state_gone"}, "Wrote"
    ),
    "a SavedModel": matrix.Case(
        {"model_dir": None, "saved_model": "{data}/saved/right"}, "Wrote"
    ),
    # The graph holds the pieces, too.
    "a SavedModel that lost its vocab.txt": matrix.Case(
        {"model_dir": None, "saved_model": "{data}/saved/no_vocab"}, "Wrote"
    ),
    "keys that no model reads": matrix.Case(
        {"input_file": "{data}/more.jsonl"}, "Wrote"
    ),
}
