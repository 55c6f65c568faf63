import pathlib

from tests.bad_inputs import cases, matrix

SCRIPT, CASES, RIGHT = cases.read("labelling")
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


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)
