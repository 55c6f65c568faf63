"""Imports go one way, and flags end at the scripts' `main`."""

import ast
import itertools
import pathlib
import re
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parent.parent
_SCRIPTS = sorted(_ROOT.glob("*.py"))
_SCRIPT_NAMES = {path.stem for path in _SCRIPTS}

# Module -> which modules of ours it may import. A name ending in ".*" stands
# for all modules below. A new module needs a line here.
_LAYERS: tuple[dict[str, set[str]], ...] = (
    # No TensorFlow
    {
        "options": set(),
        "phases": set(),
        "quiet": set(),
        "file_systems": set(),
        "input_files": {"file_systems"},
        "lock_file": {"file_systems"},
        "run_lock": {"file_systems", "lock_file"},
        "files": {"file_systems", "run_lock"},
        "characters": set(),
        "tokenization": {"characters", "input_files"},
        "data_sets": set(),
        "tasks.*": {
            "characters",
            "data_sets",
            "files",
            "input_files",
            "tasks.*",
            "tokenization",
        },
        "cutting": set(),
        "masking": set(),
        "packing": set(),
        "pretraining_data": {"cutting", "masking", "tokenization"},
        "pretraining_features": {"masking", "packing", "pretraining_data"},
        "manifests": {"files", "input_files"},
        "text_files": {"input_files"},
        "text_formats": {"data_sets", "text_files"},
        "corpus": {"text_files", "text_formats"},
        "vocabulary": {"tokenization"},
        "wire_format": set(),
        "cluster": set(),
        "bulk_tokenization": {"characters", "tokenization"},
        "tfrecord": {"files"},
        "workers": set(),
        "processes": {"run_lock"},
        "paths": {"file_systems", "input_files"},
        "resuming": set(),
        "creation": {
            "bulk_tokenization",
            "corpus",
            "pretraining_data",
            "pretraining_features",
            "wire_format",
            "word_lists",
        },
        "creation_files": {
            "file_systems",
            "files",
            "pretraining_data",
            "run_lock",
        },
        "creation_output": {
            "creation",
            "creation_files",
            "file_systems",
            "manifests",
            "pretraining_data",
        },
        "creation_run": {
            "bulk_tokenization",
            "corpus",
            "creation",
            "creation_files",
            "creation_output",
            "files",
            "manifests",
            "pretraining_data",
            "tfrecord",
            "tokenization",
            "word_lists",
            "workers",
        },
        "beam": {
            "corpus",
            "creation",
            "creation_output",
            "creation_run",
            "manifests",
            "pretraining_data",
            "tfrecord",
        },
        "word_lists": {"input_files"},
    },
    # TensorFlow, no BERT
    {
        "functions": set(),
        "records": {"files", "input_files", "phases", "wire_format"},
        "losses": set(),
        "long_documents": {"options"},
        "loss_scaling": set(),
        "optimization": {"loss_scaling", "options"},
        "recipes": {"loss_scaling", "optimization", "options"},
        "distribution": {"cluster", "options"},
        "progress": {"files", "phases"},
        "text_ops": {"characters", "tokenization"},
        "word_ops": {"tasks.*"},
        "window_ops": set(),
    },
    {
        "configuration": {"functions", "input_files"},
    },
    # Data, and the model
    {
        "input_pipeline": {"manifests", "masking", "records"},
        "inspection": {"input_pipeline", "manifests", "masking", "records"},
        "shuffled_records": {"records"},
        "text_records": {
            "long_documents",
            "phases",
            "records",
            "shuffled_records",
            "tasks.*",
            "text_ops",
        },
        "tagging_records": {
            "phases",
            "records",
            "shuffled_records",
            "tasks.*",
            "text_records",
        },
        "squad_records": {"phases", "records", "tasks.*", "text_records"},
        "offset_ops": {"text_ops"},
        "choice_ops": {"text_ops"},
        "choice_records": {
            "choice_ops",
            "phases",
            "records",
            "shuffled_records",
            "tasks.*",
            "text_ops",
            "text_records",
        },
        "layouts": {"functions"},
        "modeling": {"configuration", "functions", "layouts"},
    },
    # checkpoints works on any map from names to variables
    {
        "devices": {"modeling"},
        "heads": {"functions", "modeling"},
        "checkpoints": {"files", "input_files", "optimization", "resuming"},
    },
    # Checkpoints of other libraries
    {
        "interop.*": {
            "checkpoints",
            "files",
            "input_files",
            "interop.*",
            "modeling",
            "options",
            "tokenization",
        },
    },
    {
        "training": {"checkpoints", "distribution", "optimization", "phases"},
        "export": {
            "files",
            "heads",
            "long_documents",
            "modeling",
            "phases",
            "text_ops",
            "tokenization",
            "window_ops",
        },
        "features": {
            "distribution",
            "modeling",
            "options",
            "text_ops",
            "tokenization",
        },
        "feature_files": {
            "features",
            "files",
            "options",
            "records",
            "wire_format",
        },
        "export_features": {"export", "features", "modeling", "text_ops"},
        "export_tagging": {
            "export",
            "heads",
            "modeling",
            "tasks.*",
            "text_ops",
            "window_ops",
            "word_ops",
        },
        "export_span": {
            "export",
            "heads",
            "modeling",
            "offset_ops",
            "tasks.*",
            "window_ops",
        },
        "export_masked_words": {
            "export",
            "heads",
            "modeling",
            "tasks.*",
            "text_ops",
            "window_ops",
        },
        "export_next_sentence": {"export", "heads", "modeling", "text_ops"},
        "export_multiple_choice": {
            "choice_ops",
            "export",
            "heads",
            "modeling",
            "text_ops",
        },
    },
    {
        "inference": {"distribution", "phases", "training"},
        "pretraining_input": {
            "configuration",
            "input_pipeline",
            "manifests",
            "masking",
            "paths",
            "records",
        },
        "micro_batches": {"devices", "modeling", "optimization", "training"},
        "pretraining": {"losses", "training"},
        "best": {"checkpoints", "files", "interop.*"},
    },
    {
        "disk_space": {"checkpoints"},
        "fine_tuned": {
            "best",
            "checkpoints",
            "files",
            "interop.*",
            "modeling",
            "tokenization",
        },
    },
    {
        "fine_tuning": {
            "best",
            "checkpoints",
            "devices",
            "disk_space",
            "distribution",
            "export",
            "files",
            "fine_tuned",
            "inference",
            "input_pipeline",
            "interop.*",
            "long_documents",
            "modeling",
            "optimization",
            "phases",
            "progress",
            "recipes",
            "text_records",
            "training",
        },
    },
    {
        "serving": {
            "best",
            "checkpoints",
            "export",
            "export_features",
            "export_masked_words",
            "export_multiple_choice",
            "export_next_sentence",
            "export_span",
            "export_tagging",
            "features",
            "fine_tuned",
            "heads",
            "interop.*",
            "long_documents",
            "modeling",
            "options",
            "tasks.*",
        },
        "glue_experiment": {
            "checkpoints",
            "files",
            "fine_tuned",
            "interop.*",
            "phases",
            "processes",
            "progress",
            "run_lock",
            "tasks.*",
        },
    },
    {
        "prediction": {"serving", "tasks.*"},
    },
    # What scripts share: the only modules that know flags. These do without
    # TensorFlow: flags are read before it is imported.
    {
        "flag_sections": set(),
        "help_text": {"flag_sections"},
        "output_paths": {"file_systems", "flag_sections"},
        "flagfiles": {"files"},
        "command_line": {
            "flag_sections",
            "help_text",
            "output_paths",
            "quiet",
        },
        "common_flags": {"flag_sections", "options"},
        "fine_tuning_flags": {"flag_sections", "options"},
        "optimization_flags": {"flag_sections", "options"},
        "serving_flags": {"flag_sections", "options", "tasks.*"},
        "task_flags": {"flag_sections", "options", "tasks.*"},
        "text_flags": {"corpus", "flag_sections", "paths", "text_files"},
    },
    # And these do what the flags say.
    {
        "common_setup": {
            "best",
            "checkpoints",
            "command_line",
            "common_flags",
            "devices",
            "distribution",
            "files",
            "flagfiles",
            "interop.*",
            "modeling",
            "optimization_flags",
            "output_paths",
            "progress",
            "recipes",
            "run_lock",
        },
        "task_setup": {
            "common_flags",
            "long_documents",
            "task_flags",
            "tasks.*",
        },
        "serving_setup": {
            "export",
            "features",
            "fine_tuned",
            "flag_sections",
            "flagfiles",
            "interop.*",
            "long_documents",
            "serving",
            "serving_flags",
            "tasks.*",
            "tokenization",
        },
    },
    {
        "fine_tuning_setup": {
            "checkpoints",
            "command_line",
            "common_flags",
            "common_setup",
            "devices",
            "distribution",
            "fine_tuned",
            "fine_tuning",
            "fine_tuning_flags",
            "flagfiles",
            "interop.*",
            "optimization_flags",
            "tokenization",
        },
    },
)
_DEFINE_FLAGS = next(layer for layer in _LAYERS if "flag_sections" in layer)
_KNOW_FLAGS = {
    *_DEFINE_FLAGS,
    *("common_setup", "fine_tuning_setup", "serving_setup", "task_setup"),
}
_ALLOWED = {name: own for layer in _LAYERS for name, own in layer.items()}

_TENSORFLOW = {"tensorflow", "tensorflow_text", "keras", "keras_hub"}


def _name(path: pathlib.Path) -> str:
    """`bert_tf/tasks/common.py` -> `tasks.common`."""
    parts = path.relative_to(_ROOT / "bert_tf").with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


_MODULES = {
    _name(path): path for path in sorted((_ROOT / "bert_tf").rglob("*.py"))
}


def _tree(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _imports(path: pathlib.Path) -> set[str]:
    """Dotted names that a file imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _packages(path: pathlib.Path) -> set[str]:
    return {name.split(".")[0] for name in _imports(path)}


def _own_imports(path: pathlib.Path) -> set[str]:
    """Modules of ours that a file imports, without `bert_tf.`."""
    own = set()
    for name in _imports(path):
        if name == "bert_tf" or not name.startswith("bert_tf."):
            continue
        module = name.removeprefix("bert_tf.")
        while module and module not in _MODULES:  # a class or a function
            module = module.rpartition(".")[0]
        if module:
            own.add(module)
    return own


def _row(module: str) -> str:
    """The line of the table that a module belongs to."""
    parent = module.partition(".")[0] + ".*"
    return parent if parent in _ALLOWED else module


@pytest.mark.parametrize("module", [m for m in _MODULES if m])
def test_module_imports_only_what_its_layer_allows(module):
    row = _row(module)
    assert row in _ALLOWED, f"{module} has no line in the table of layers"
    got = {_row(name) for name in _own_imports(_MODULES[module])}
    assert got - {module} <= _ALLOWED[row]


def test_table_itself_goes_one_way():
    below: set[str] = set()
    for layer in _LAYERS:
        for module, own in layer.items():
            assert own <= below | set(layer), module
        below |= set(layer)


def test_table_names_only_modules_there_are():
    assert {_row(module) for module in _MODULES if module} == set(_ALLOWED)


_LIGHT = {**_LAYERS[0], **_DEFINE_FLAGS}


def test_light_modules_name_no_tensorflow():
    for module, path in _MODULES.items():
        if _row(module) in _LIGHT:
            assert not _packages(path) & _TENSORFLOW, module


def test_light_modules_load_no_tensorflow():
    modules = [
        name
        for name in _MODULES
        # Two that define the same flags can't be loaded together.
        if _row(name) in _LIGHT and name != "serving_flags"
    ]
    code = "import sys\n"
    code += "".join(f"import bert_tf.{name}\n" for name in modules)
    code += f"print(sorted(set(sys.modules) & {_TENSORFLOW!r}))"
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == "[]"


def test_text_ops_alone_imports_tensorflow_text():
    paths = [*_MODULES.values(), *_SCRIPTS]
    importers = [p.stem for p in paths if "tensorflow_text" in _packages(p)]
    assert importers == ["text_ops"]


def test_nobody_imports_a_script():
    paths = [*_MODULES.values(), *_SCRIPTS]
    paths += sorted((_ROOT / "quickstart").glob("*.py"))
    for path in paths:
        assert not _packages(path) & _SCRIPT_NAMES, path


def test_library_knows_no_flags():
    for module, path in _MODULES.items():
        if module in _KNOW_FLAGS:
            continue
        flags = {name for name in _imports(path) if "absl.flags" in name}
        assert not flags, module
        assert "FLAGS" not in {
            node.id
            for node in ast.walk(_tree(path))
            if isinstance(node, ast.Name)
        }, module


def _flag_reads(nodes: list[ast.stmt]) -> list[int]:
    """Lines that read `_FLAG.value` or `common_flags.FLAG.value`."""
    lines = []
    for node in itertools.chain.from_iterable(map(ast.walk, nodes)):
        if isinstance(node, ast.Attribute) and node.attr == "value":
            of = node.value
            holder = str(getattr(of, "attr", "") or getattr(of, "id", ""))
            if re.fullmatch(r"_?[A-Z][A-Z0-9_]*", holder):
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda path: path.stem)
def test_no_flag_is_read_at_import(path):
    functions = (ast.FunctionDef, ast.ClassDef)
    body = _tree(path).body
    assert not _flag_reads([x for x in body if not isinstance(x, functions)])
    assert _flag_reads(body), "which shows that reads are found"


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda path: path.stem)
def test_script_has_a_main_that_runs_only_as_a_script(path):
    body = _tree(path).body
    names = [x.name for x in body if isinstance(x, ast.FunctionDef)]
    assert names[-1] == "main"
    assert ast.unparse(body[-1]) == (
        "if __name__ == '__main__':\n    command_line.run(main)"
    )
