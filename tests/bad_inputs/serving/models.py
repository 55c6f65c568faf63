"""Wrong models of run_server.py, and wrong lists of them."""

from tests.bad_inputs import matrix
from tests.bad_inputs.serving.inputs import CONFIGS, SAVED

_NONE = "A model must be a SavedModel, or a folder of SavedModels in folders"


def _model(path: str, line: str) -> matrix.Case:
    return matrix.Case({"model": path}, line)


CASES: dict[str, matrix.Case] = {
    "no such folder": _model("{data}/none", _NONE),
    "a file": _model("{data}/notes.txt", _NONE),
    "an empty folder": _model("{data}/models/empty", _NONE),
    "a folder without numbers": _model("{data}/models/no_versions", _NONE),
    "a run": _model("{data}/run", _NONE),
    "the folder of models": _model("{data}/models", _NONE),
    "one of two": _model("{data}/models/right,x={data}/none", _NONE),
    **{
        f"version {name}": _model(f"{{data}}/models/{name}", line)
        for name, line in SAVED.items()
    },
    **{
        f"SavedModel {name}": _model(f"{{data}}/models/{name}/1", line)
        for name, line in SAVED.items()
    },
    "no such config_dir": matrix.Case(
        {"model": None, "config_dir": "{data}/none"},
        "models.config lists no model, or is not there: export_saved_model.py",
    ),
    "config_dir without a list": matrix.Case(
        {"model": None, "config_dir": "{data}/models"},
        "models.config lists no model, or is not there: export_saved_model.py",
    ),
    **{
        f"models.config {name}": matrix.Case(
            {"model": None, "config_dir": f"{{data}}/configs/{name}"}, line
        )
        for name, (_, line) in CONFIGS.items()
    },
}
