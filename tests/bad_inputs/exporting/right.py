"""What looks wrong to export_saved_model.py, and rightly works."""

from tests.bad_inputs import matrix

# What looks wrong, and rightly is not.
RIGHT = {
    "as it is": matrix.Case({}, "Wrote {out}/1."),
    "an odd name": matrix.Case({"export_dir": "{out}/é 博 %s/"}, "博 %s"),
    "a C locale": matrix.Case(
        {"export_dir": "{out}/é"}, "é", environment={"LC_ALL": "C"}
    ),
    "a score": matrix.Case({"model_dir": "{data}/score"}, "Wrote"),
    "the labels of its run": matrix.Case({"labels": "no,yes"}, "Wrote"),
    "a tagger of other names": matrix.Case(
        {"model_dir": "{data}/tagger", "scheme": "BILOU"}, "Wrote"
    ),
    "words that are masked": matrix.Case(
        {"model_dir": None, "init_checkpoint": "{data}/model"},
        "was pre-trained: filling masked words.",
    ),
}
