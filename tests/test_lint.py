"""Tests of tools/lint on repositories of a few lines."""

import json

from tools.lint import (
    architecture,
    code,
    commands,
    documents,
    english,
    names,
    notebooks,
    packaging,
)
from tools.lint.problems import Repository

import pytest

_FILES = {
    "setup.cfg": (
        "[options]\npackages =\n    bert_tf\ninstall_requires =\n    numpy>=2\n"
        "[options.extras_require]\nall =\n    bert-tf[onnx]\nonnx =\n    onnx\n"
    ),
    "constraints.txt": "numpy==2.1\nonnx==1.0\n",
    "constraints-tpu.txt": "numpy==2.1\n",
    "bert_tf/__init__.py": "",
    "bert_tf/encoders/albert.py": (
        'class Config:\n    model_type: ClassVar[str] = "albert"\n'
    ),
    "bert_tf/vocabularies/symbols.py": (
        'class Symbols:\n    kind: ClassVar[str] = "symbols"\n'
    ),
    "bert_tf/heads.py": 'extras.check("onnx", "onnx", "Models")\n',
    "tests/test_heads.py": "",
    "tools/mutants/targets.py": 'Target("heads", ("test_heads.py",), 1)\n',
    "tools/mutants/chosen.txt": "heads:module:constant:0\n",
    "run_x.py": (
        "def main(_):\n    pass\n\n\n"
        'if __name__ == "__main__":\n    command_line.run(main)\n'
    ),
    "mkdocs.yml": (
        "nav:\n  - Home: index.md\n  - Heads: heads.md\n"
        "  - Architecture: architecture.md\n"
    ),
    "README.md": (
        "[](docs/index.md) [](docs/heads.md#a-head) [](docs/architecture.md)\n"
    ),
    "docs/index.md": "[](heads.md) [](architecture.md)\n",
    "docs/architecture.md": (
        "words | `__init__`, `vocabularies` | tokens\n"
        "model | `heads`, `encoders` | layers\n"
        "scripts | `*.py` | a `main` each\n\n"
        "`bert_tf/encoders/albert.py` | `Config.model_type`\n"
    ),
    "docs/pictures/components.svg": "<svg></svg>\n",
    "docs/heads.md": "# A head\n\nbert_tf/heads.py\n\n::: bert_tf.heads\n",
}


@pytest.fixture(name="problems")
def _problems(tmp_path):
    """Returns a function: a rule, a path and its text -> the problems."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    for path, text in _FILES.items():
        write(path, text)

    def check(rule, path="README.md", text=None):
        if text is not None:
            write(path, text)
        found = [str(x) for x in rule(Repository(tmp_path))]
        # An entry that only the real repository needs.
        return [x for x in found if not x.startswith("tools/lint/names.py")]

    return check


_RULES = (
    *architecture.RULES,
    *code.RULES,
    *documents.RULES,
    *english.RULES,
    *names.RULES,
    *notebooks.RULES,
    *packaging.RULES,
)


def _printed(text, count=1, kind="stream"):
    """Returns a notebook with a heading and a cell that printed a text."""
    output = {"output_type": kind, "name": "stdout", "text": [text]}
    cells = [
        {"cell_type": "markdown", "source": ["# A head"]},
        {
            "cell_type": "code",
            "source": ["print()"],
            "execution_count": count,
            "outputs": [output],
        },
    ]
    return json.dumps({"cells": cells})


_ROWS = _FILES["docs/architecture.md"]
_SETUP, _HEADS = _FILES["setup.cfg"], _FILES["docs/heads.md"]
# Rule -> file, its text, the line and a part of the message.
_BROKEN = {
    architecture.components_have_all_modules: (
        "docs/architecture.md",
        *(_ROWS.replace("`heads`, ", ""), 1, "components lacks heads"),
    ),
    architecture.picture_is_current: (
        "docs/pictures/components.svg",
        *("<title>model&#45;&gt;words</title>", 1, "no reason for model -> w"),
    ),
    architecture.named_code_exists: (
        "docs/architecture.md",
        *(_ROWS + "`bert_tf/heads.py` | `Hat`\n", 6, "there is no Hat"),
    ),
    code.nobody_imports_a_script: (
        *("bert_tf/heads.py", "\nimport run_x\n", 2, "the script run_x"),
    ),
    code.scripts_leave_tensorflow_text_alone: (
        *("run_y.py", "import tensorflow_text as text\n", 1, "tensorflow_text"),
    ),
    code.library_knows_no_flags: (
        *("bert_tf/heads.py", "from absl import flags\n", 1, "absl's flags"),
    ),
    code.no_flag_is_read_at_import: (
        *("run_x.py", "\nA = _STEPS.value\n", 2, "before the command line"),
    ),
    code.scripts_end_with_main: (
        *("run_x.py", "def main(_):\n    pass\n", 1, "Add them"),
    ),
    code.test_folders_are_those_of_the_package: (
        *("tests/hats/test_x.py", "", 1, "no folder bert_tf/hats"),
    ),
    code.mutants_have_code_and_tests: (
        "tools/mutants/chosen.txt",
        *("heads:module:not:0\nheads:Hat.f:not:0\n", 2, "has no Hat.f"),
    ),
    documents.paths_exist: (
        *("docs/index.md", "\nbert_tf/hats.py\n", 2, "no bert_tf/hats.py"),
    ),
    documents.links_lead_somewhere: (
        *("docs/index.md", "[](heads.md#a-hat)", 1, "no heading #a-hat"),
    ),
    documents.readme_is_short: (
        *("README.md", "\n" * 181, 181, "has 181 lines"),
    ),
    documents.every_page_is_in_the_menus: (
        "mkdocs.yml",
        *("  - A: index.md\n  - B: architecture.md\n", 1, "heads.md is not in"),
    ),
    documents.documented_modules_exist: (
        *("docs/heads.md", "::: bert_tf.heads.Hat\n", 1, "bert_tf.heads.Hat"),
    ),
    english.pages_are_plain_english: (
        *("docs/heads.md", "# A head\n\nIt is\ntold.\n", 3, '"is told": write'),
    ),
    english.flagfiles_are_plain_english: (
        *("configs/a.flags", "--a=piece\n# piece\n", 2, '"piece": write'),
    ),
    english.code_is_plain_english: (
        *("bert_tf/heads.py", "# A\n# piece\n", 2, '"piece": write token'),
    ),
    names.families_are_in_encoders: (
        *("bert_tf/heads.py", "\nis_albert = 1\n", 2, "'is_albert'"),
    ),
    names.kinds_are_in_vocabularies: (
        *("run_x.py", "\nkind == 'symbols'\n", 2, "'symbols'"),
    ),
    names.config_names_are_in_rows: (
        *("run_x.py", "\nvalues['model_type']\n", 2, "'model_type'"),
    ),
    names.tokens_are_spelled_in_vocabularies: (
        *("run_x.py", "\nids['[CLS]']\n", 2, "'[CLS]'"),
    ),
    notebooks.outputs_are_those_of_any_machine: (
        *("notebooks/a.ipynb", _printed("/home/ann/x"), 1, "cell 2 prints"),
    ),
    notebooks.cells_ran_in_order: (
        *(
            "notebooks/a.ipynb",
            _printed("a", count=2),
            1,
            "cell 2 has number 2",
        ),
    ),
    packaging.every_package_is_listed: (
        *("bert_tf/hats/__init__.py", "", 2, "lacks bert_tf.hats"),
    ),
    packaging.every_dependency_is_pinned: (
        *("constraints.txt", "onnx==1.0\n", 5, "numpy has no version"),
    ),
    packaging.all_brings_every_extra: (
        *("run_y.py", "extras.check('tf2x', 'hats', '')\n", 7, "bert-tf[hats,"),
    ),
    packaging.errors_name_extras_there_are: (
        *("run_y.py", "extras.check('tf2x', 'onnx', '')\n", 1, "have tf2x"),
    ),
}


@pytest.mark.parametrize("rule", _RULES, ids=lambda rule: rule.__name__)
def test_each_rule_finds_its_problem(rule, problems):
    # Folders that only the real repository has.
    before = problems(rule)
    path, text, line, message = _BROKEN[rule]
    (found,) = set(problems(rule, path, text)) - set(before)
    where = "setup.cfg" if rule in packaging.RULES[:3] else path
    assert found.startswith(f"{where}:{line}: ")
    assert message in found


@pytest.mark.parametrize(
    ("function", "exists"),
    [("A", 1), ("A.f", 1), ("A.f.g", 1), ("h", 1), ("f", 0), ("A.g", 0)],
)
def test_mutants_name_functions_by_their_scopes(function, exists, problems):
    source = (
        "class A:\n    def f(self):\n        if self:\n"
        "            def g():\n                pass\n"
        "async def h():\n    pass\n"
    )
    rule = code.mutants_have_code_and_tests
    problems(rule, "bert_tf/heads.py", source)
    chosen = f"heads:{function}:not:0\n"
    found = problems(rule, "tools/mutants/chosen.txt", chosen)
    assert len(found) == 1 - exists


def test_arrows_that_follow_from_others_are_left_out():
    found = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set()}
    assert architecture.arrows(found) == {("a", "b"), ("b", "c"), ("c", "d")}


@pytest.mark.parametrize(
    "line",
    [
        "from bert_tf.encoders import albert",
        "isinstance(config, albert.AlbertConfig)",
        "f(is_albert=True)",
        "def f(is_albert): pass",
        "kind == byte_pairs.BytePairs.kind",
        "from bert_tf.vocabularies import word_pieces",
        'f"[MASK→{label}]"',
        'piece.startswith("##")',
    ],
)
def test_a_name_is_found(line, problems):
    assert any(problems(rule, "run_x.py", line) for rule in names.RULES)


_NOTEBOOK = "notebooks/a.ipynb"
_HEAD, _HATS = 'Target("heads", (), 1),', 'Target("hats", (), 1),'
_PROSE = 'x = "piece"\n\n\ndef f(pieces):\n    """Adds `pieces`."""\n'


@pytest.mark.parametrize(
    ("rule", "path", "text", "message"),
    [
        *(
            (code.mutants_have_code_and_tests, f"tools/mutants/{path}", *more)
            for path, *more in (
                ("targets.py", _HEAD + _HATS, "is no bert_tf/hats.py"),
                (
                    "targets.py",
                    'Target("heads", ("x*",), 1)',
                    "matches tests/x*",
                ),
                ("targets.py", _HEAD * 2, "lists heads twice"),
                ("chosen.txt", "hats:module:not:0", "lists no tests for hats"),
            )
        ),
        (
            *(architecture.picture_is_current, "run_x.py"),
            "def main(_):\n    from bert_tf import heads\n",
            "lacks scripts -> model",
        ),
        (
            architecture.components_have_all_modules,
            *("bert_tf/vocabularies/symbols.py", "from bert_tf import heads\n"),
            "words imports model, which is below it",
        ),
        (
            *(architecture.named_code_exists, "docs/architecture.md"),
            *("`bert_tf/hats.py` | `Hat`\n", "there is no bert_tf/hats.py"),
        ),
        *(
            (notebooks.outputs_are_those_of_any_machine, _NOTEBOOK, text, says)
            for text, says in (
                (_printed("Restored /tmp/a."), "prints /tmp/"),
                (_printed("C:\\Users\\ann"), "prints C:\\Users\\"),
                (_printed("error: The flag is wrong."), "prints error:"),
                (_printed("Traceback (most recent"), "prints Traceback"),
                (_printed("a", 1, "error"), "ended in an error"),
            )
        ),
        (
            *(english.code_is_plain_english, "bert_tf/heads.py"),
            _PROSE.replace("`pieces`", "\n\n    pieces"),
            'bert_tf/heads.py:7: "pieces"',
        ),
    ],
)
def test_other_forms_of_problems(rule, path, text, message, problems):
    (found,) = problems(rule, path, text)
    assert message in found


_NAMES = '''
"""Of ALBERT, its byte_pairs and [CLS]."""
# albert ##
raise ValueError(f"give the vocabulary of an albert: {path}")
help = "the byte_pairs of albert, with a [CLS]"
tokens = tagging_words.WordPieces(vocabulary)
'''


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        *((rule, "run_x.py", _NAMES) for rule in names.RULES),
        (
            *(notebooks.outputs_are_those_of_any_machine, _NOTEBOOK),
            _printed("Wrote runs/a, models/a/1. http://127.0.0.1/home eval/b"),
        ),
        (
            *(english.pages_are_plain_english, "docs/a.md"),
            "`piece` [](piece.md)\n```\npiece\n```\n- x\n  ```\n  piece\n  ```",
        ),
        (english.code_is_plain_english, "bert_tf/heads.py", _PROSE),
        (
            architecture.components_have_all_modules,
            *("bert_tf/heads.py", "import bert_tf.vocabularies"),
        ),
    ],
)
def test_what_is_no_problem(rule, path, text, problems):
    assert not problems(rule, path, text)


def test_commands_are_found():
    text = (
        "`python run_x.py --a`\n\n    python run_prediction.py --b=$C/d \\\n"
        "  --e | f\nbert-tf run_squad --h=$(python -m x) ...\nbert-tf configs"
        "\n`python -m benchmarks.parity.squad --g`, python -m pytest --h"
    )
    modules = {"benchmarks/parity/squad"}
    assert list(commands.find(text, modules)) == [
        (1, "run_x", ["--a"]),
        (3, "run_prediction", ["--b=x/d", "--e"]),
        (5, "run_squad", ["--h=x"]),
        (7, "benchmarks/parity/squad", ["--g"]),
    ]
