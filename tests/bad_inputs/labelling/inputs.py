"""What label_versions.py is given that is wrong: commands and files."""

import pathlib

from tests.bad_inputs import matrix

SCRIPT = matrix.Script("label_versions", {"config_dir": "{data}/right"})

_MODEL = (
    "config {{ name: '{}' base_path: '{}' model_version_policy {{ specific {{ "
    "versions: 1 versions: 2 }} }} version_labels {{ key: 'stable' value: 1 }} "
    "}}"
)


def build(folder: pathlib.Path) -> None:
    """Writes versions, and lists of them."""
    for number in (1, 2, 3):
        (folder / "mrpc" / str(number)).mkdir(parents=True)
    entry = _MODEL.format("mrpc", folder / "mrpc")
    for name, text in {
        "right": f"model_config_list {{ {entry} }}",
        "two": f"model_config_list {{ {entry} {_MODEL.format('x', '/x')} }}",
        "no_text": "model_config_list {",
        "custom": "custom_model_config {}",
    }.items():
        (folder / name).mkdir()
        (folder / name / "models.config").write_text(text)
    (folder / "empty").mkdir()


def _case(line: str, **flags: str | None) -> matrix.Case:
    return matrix.Case(flags, line)


CASES: dict[str, matrix.Case] = {
    "no config_dir": _case("config_dir", config_dir=None),
    "no such config_dir": _case(
        "models.config lists no model, or is not there", config_dir="{out}/x"
    ),
    "config_dir without a list": _case(
        "models.config lists no model, or is not", config_dir="{data}/empty"
    ),
    "config_dir is a file": _case(
        "--config_dir must be a folder, and this is a file",
        config_dir="{data}/right/models.config",
    ),
    "list of no text": _case(
        "is not a list of models of TensorFlow", config_dir="{data}/no_text"
    ),
    "list of another kind": _case(
        "has a custom_model_config", config_dir="{data}/custom"
    ),
    "no such model": _case("lists: mrpc. Received: model=ner", model="ner"),
    "one of two models": _case(
        "lists: mrpc, x. Received: model=", config_dir="{data}/two", stable="1"
    ),
    "no such version": _case(
        "has no version 9: there are 1, 2, 3. Received: stable=9", stable="9"
    ),
    "a version that is not served": _case(
        "TensorFlow Serving moves no label to a version that it has not",
        stable="3",
    ),
    "stable no number": _case("--stable must be a whole number", stable="two"),
    "stable is none": _case("--stable must be a whole number", stable="0"),
    "canary negative": _case("--canary must be a whole number", canary="-1"),
    "nothing to go back to": _case(
        "mrpc has no previous version to go back to", rollback="true"
    ),
    "back and forth": _case(
        "--rollback goes without --stable and --canary",
        rollback="true",
        stable="2",
    ),
}
