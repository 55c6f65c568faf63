"""The output of `bert-tf completion`, run in the shells themselves."""

import pathlib
import re
import shutil
import subprocess
import sys

from tests.scripts import run_here

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Called like readline does: words are split at "=".
_ASK_BASH = r"""
    source "$1"
    COMP_LINE=$2 COMP_POINT=${#2}
    read -ra COMP_WORDS <<< "${2//=/ = }"
    [[ $2 == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _bert_tf
    printf '%s\n' "${COMPREPLY[@]}"
"""


# Prints the script of each shell; reads the flags of the scripts once.
_PRINT_ALL = """
import contextlib, sys
from bert_tf import __main__ as program
from bert_tf.flags import completion
found = completion.of_scripts(program._scripts().values())
completion.of_scripts = lambda paths: dict(found)
folder = sys.argv.pop()
for shell in completion.SHELLS:
    sys.argv[1:] = "completion", shell
    with open(f"{folder}/{shell}", "w") as file:
        with contextlib.redirect_stdout(file):
            program.main()
"""


def _run(*arguments, code=0):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert not re.search(r"\| +(tensorflow|keras)\b", done.stderr)
    return done


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """Returns the printed scripts: shell -> file."""
    folder = tmp_path_factory.mktemp("scripts")
    _run("-c", _PRINT_ALL, folder)
    return {path.name: path for path in folder.iterdir()}


@pytest.fixture(params=["bash", "fish"])
def complete(request, scripts):
    """Returns the completions that a shell offers for a line."""
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    script = scripts[shell]

    def complete(line):
        if shell == "bash":
            command = [shell, "-c", _ASK_BASH, "ask", str(script), line]
        else:
            text = "source $argv[1]; complete -C $argv[2]"
            command = [shell, "--no-config", "-c", text, str(script), line]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True
        )
        offered = (x.partition("\t")[0] for x in done.stdout.splitlines())
        # fish adds "=" itself, and repeats the flag before a value.
        typed = line.rpartition(" ")[2].partition("=")[0]
        return {x.removesuffix("=").removeprefix(f"{typed}=") for x in offered}

    return complete


@pytest.mark.slow
def test_names_of_scripts(complete):
    expected = {path.stem for path in _ROOT.glob("run_*.py")}
    assert complete("bert-tf run_") == expected
    assert complete("bert-tf co") == {
        "completion",
        "configs",
        "convert_checkpoint",
    }


def test_flags_of_the_script(complete):
    assert complete("bert-tf run_classifier --do_") == {
        *("--do_train", "--do_eval", "--do_predict", "--do_export"),
        "--do_lower_case",
    }
    # run_glue.py rejects the other flags of this name.
    assert complete("bert-tf run_glue --do_") == {
        *("--do_predict", "--do_lower_case"),
    }
    assert complete("bert-tf run_glue --see") == {"--seeds"}


def test_values_of_flags(complete, tmp_path):
    assert complete("bert-tf run_ner --dtype=") == {
        "float32",
        "bfloat16",
        "float16",
    }
    assert complete("bert-tf run_ner --dtype=b") == {"bfloat16"}
    line = "bert-tf run_ner --dtype=float32 --do_train="
    assert complete(line) == {"true", "false"}
    (tmp_path / "a file.tsv").touch()
    (tmp_path / "b.tsv").touch()
    found = complete(f"bert-tf run_classifier --train_file={tmp_path}/a")
    assert {x.replace("\\", "") for x in found} == {f"{tmp_path}/a file.tsv"}
    assert complete("bert-tf run_classifier --learning_rate=") <= {""}


def test_every_flag_is_in_each_script(scripts, capfd):
    assert not run_here("run_squad", "--helpfull")
    names = set(re.findall(r"^  --(\w+)", capfd.readouterr().out, re.M))
    assert len(names) > 50
    for shell, pattern in (
        ("bash", r" run_squad\) words='(.*)'"),
        ("zsh", r" run_squad\) specs=\(((?:\n            .*)+)"),
        ("fish", r"((?:complete .*from run_squad' .*\n)+)"),
    ):
        (found,) = re.findall(pattern, scripts[shell].read_text())
        known = set(re.findall(r"(?:--|-l )(\w+)(?==| |\[)", found))
        # Each flag under one name.
        assert names - known == {"albert_config_file", "spm_model_file"}


def test_an_unknown_shell():
    done = _run("-m", "bert_tf", "completion", "csh", code=1)
    assert done.stderr.splitlines()[-1] == (
        "error: Name one shell: bash, zsh, fish. Received: csh"
    )
