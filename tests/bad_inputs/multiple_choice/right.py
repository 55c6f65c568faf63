"""What looks wrong to run_multiple_choice.py, and rightly works."""

from tests.bad_inputs import matrix
from tests.bad_inputs.multiple_choice.inputs import Case, out, predict, train

# What rightly works.
GOOD: dict[str, matrix.Case] = {
    "SWAG": train("good.csv", ""),
    "SWAG with an ending in capitals": train("GOOD.CSV", ""),
    "RACE": train("race.jsonl", ""),
    "byte-order mark and CRLF": train("windows.jsonl", ""),
    "empty lines": train("gaps.jsonl", ""),
    "a label that is hidden": predict("", test_file="{data}/no_label.jsonl"),
    "more choices in some": train("more.jsonl", ""),
    "flagfile of itself": Case({"flagfile": "{data}/loop.flags"}, ""),
    "steps kept for long": Case({"keep_checkpoint_max": str(2**31 - 1)}, ""),
    "a metric cut off by a crash": out("runs/metrics_open", ""),
    "bfloat16": Case({"dtype": "bfloat16"}, ""),
    "TF_CONFIG that is not used": Case({}, "", {"TF_CONFIG": "none"}),
}
