"""The command `bert-tf`, which runs the scripts from any folder.

    bert-tf                                # lists the scripts
    bert-tf run_classifier --flagfile=configs/mrpc.flags ...
    bert-tf configs                        # copies configs/ to this folder
    bert-tf completion bash                # prints a shell completion of flags

`python -m bert_tf` is the same command.
"""

import difflib
import pathlib
import runpy
import shutil
import sys

import bert_tf
from bert_tf import terminals

_PACKAGE = pathlib.Path(__file__).resolve().parent
_TYPED = "python -m bert_tf" if __name__ == "__main__" else "bert-tf"
# Commands that are not scripts -> their purpose.
_OTHERS = {
    "completion": "Prints a script that completes flags in bash, zsh or fish.",
    "configs": "Copies flagfiles and models' configs into a folder.",
}


def _place(name: str) -> pathlib.Path:
    """Returns the path of scripts or configs, in a wheel or in a clone."""
    installed = _PACKAGE / name
    clone = {"scripts": _PACKAGE.parent, "configs": _PACKAGE.parent / "configs"}
    return installed if installed.is_dir() else clone[name]


def _scripts() -> dict[str, pathlib.Path]:
    return {path.stem: path for path in sorted(_place("scripts").glob("*.py"))}


def _purpose(script: pathlib.Path) -> str:
    """Returns the first line of a script's docstring."""
    with script.open(encoding="utf-8") as lines:
        return lines.readline().removeprefix("r").strip('"\n')


def _listing() -> str:
    rows = {name: _purpose(path) for name, path in _scripts().items()}
    rows |= _OTHERS
    width = max(map(len, rows))
    return "\n".join(
        [
            f"{_TYPED} NAME --flag=value ... runs one of these, from any",
            f"folder; {_TYPED} NAME --help shows its flags.",
            "",
            *(f"  {name:{width}}  {text}" for name, text in rows.items()),
            "",
            f"{_TYPED} configs [DIR] copies {_place('configs')}",
            "to DIR, by default ./configs, where --flagfile=configs/mrpc.flags "
            "finds it.",
        ]
    )


def _end(message: str) -> None:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(1)


def _copy_configs(arguments: list[str]) -> None:
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-")):
        _end(
            "Give one folder, or none for ./configs. Received: "
            f"{' '.join(arguments)}"
        )
    # Imports packages, which `main` checks first.
    from bert_tf.storage import file_systems

    folder = pathlib.Path(*arguments or ["configs"])
    try:
        file_systems.check_working_folder()
        shutil.copytree(
            _place("configs"),
            folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    except FileExistsError:
        _end(
            "The folder is there already. Name another, as in "
            f"{_TYPED} configs DIR. Received: {folder}"
        )
    except OSError as error:
        _end(f"The configs can't be copied: {error}")
    terminals.write(f"Copied the configs to {folder}.\n")


def _print_completion(arguments: list[str]) -> None:
    from bert_tf.flags import completion

    if len(arguments) != 1 or arguments[0] not in completion.SHELLS:
        _end(
            "Name one shell: "
            f"{', '.join(completion.SHELLS)}. Received: {' '.join(arguments)}"
        )
    commands = completion.of_scripts(_scripts().values())
    commands |= {name: [] for name in _OTHERS}
    text = completion.SHELLS[arguments[0]](commands)
    terminals.write(text)


def main() -> None:
    """Runs the command on the command line."""
    bert_tf.check_python()
    name, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if name in ("", "-h", "--help", "help"):
        terminals.write(f"{_listing()}\n")
        return
    if name == "--version":
        terminals.write(f"bert-tf {bert_tf.__version__}\n")
        return
    if name in _OTHERS:
        act = _print_completion if name == "completion" else _copy_configs
        act(arguments)
        return
    scripts = _scripts()
    script = scripts.get(name.removesuffix(".py"))
    if script is None:
        near = difflib.get_close_matches(name, [*scripts, *_OTHERS], 1)
        way_out = f"Did you mean {near[0]}? " if near else ""
        _end(
            f"There is no script of this name. {way_out}{_TYPED} alone lists "
            f"all. Received: {name}"
        )
        return
    from bert_tf.flags import help_text

    help_text.launch_with(_TYPED)
    sys.argv = [str(script), *arguments]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    main()
