"""Generates shell scripts that complete the command `bert-tf`.

A shell script contains all script and flag names, so completion does not start
Python.
"""

import dataclasses
import multiprocessing
import pathlib
import re
import runpy
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from bert_tf.flags import command_line, flag_sections, flag_values

from absl import flags


@dataclasses.dataclass(frozen=True)
class Option:
    """A flag to complete.

    Attributes:
        name: As typed, such as --seed.
        text: The first sentence of its help.
        takes_value: Whether "=" follows the name.
        values: Possible values; empty if any value is possible.
        is_path: Whether the value is a path.
    """

    name: str
    text: str
    takes_value: bool = True
    values: tuple[str, ...] = ()
    is_path: bool = False


# Script name or other word after bert-tf -> the words that can follow.
Commands: TypeAlias = Mapping[str, Sequence[Option]]

_OF_ALL_SCRIPTS = (
    Option("--flagfile", "Reads flags from a file", is_path=True),
    Option("--help", "Shows the flags", takes_value=False),
    Option("--helpfull", "Shows all flags", takes_value=False),
)


# ---- Options ----------------------------------------------------------------


def of_scripts(paths: Iterable[pathlib.Path]) -> dict[str, list[Option]]:
    """Returns the flags of scripts, by script name."""
    texts = [str(path) for path in paths]
    # Flags can be defined only once per process.
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
        found = pool.map(_options, texts, chunksize=1)
    names = (pathlib.Path(text).stem for text in texts)
    return dict(zip(names, found, strict=True))


class _FlagsAreDefinedError(Exception):
    """Raised when a script would parse its flags."""


def _options(path: str) -> list[Option]:
    """Returns the flags that a script defines, using a separate process."""
    left_out: list[str] = []

    def stop(_: str, unsupported: Collection[str] = (), **__: object) -> None:
        left_out.extend(unsupported)
        raise _FlagsAreDefinedError

    vars(command_line)["start"] = stop
    sys.argv = [path]
    try:
        runpy.run_path(path, run_name="__main__")
    except _FlagsAreDefinedError:
        own = flags.FLAGS.get_key_flags_for_module(path)
        options = [_option(x) for x in own if x.name not in left_out]
        return [*_OF_ALL_SCRIPTS, *filter(None, options)]
    raise ValueError(f"{path} ends before it reads flags.")


def _option(flag: flags.Flag) -> Option | None:
    about = flag_sections.find_about(flag)
    if about and about.alias:
        return None
    values: tuple[str, ...] = ("true", "false") if flag.boolean else ()
    if about and isinstance(flag.parser, flag_values.OneOf):
        values = tuple(about.kind.split("|"))
    sentence = re.split(r"[.:;](?:\s|$)", flag.help.strip())[0]
    # Removes characters with a special meaning in shells.
    text = re.sub(r"[^\w ,./()-]", "", " ".join(sentence.split()))
    is_path = bool(about and about.role)
    return Option(f"--{flag.name}", text, values=values, is_path=is_path)


# ---- bash -------------------------------------------------------------------

_BASH = """\
# Completes bert-tf in bash. To install:
#   bert-tf completion bash > \\
#     ~/.local/share/bash-completion/completions/bert-tf
_bert_tf() {
    local line=${COMP_LINE:0:COMP_POINT} words='' flag IFS=$' \\t\\n'
    # COMP_WORDS splits flags at "=".
    local word=${line##*[[:space:]]}
    COMPREPLY=()
    if [[ $COMP_CWORD == 1 ]]; then
        words='@names@'
    elif [[ $word == --*=* ]]; then
        flag=${word%%=*} word=${word#*=}
        case ${COMP_WORDS[1]}$flag in
@values@
        esac
    else
        case ${COMP_WORDS[1]} in
@flags@
        esac
        compopt -o nospace 2> /dev/null
    fi
    if [[ $words == PATH ]]; then
        compopt -o filenames 2> /dev/null
        IFS=$'\\n'
        COMPREPLY=($(compgen -f -- "$word"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
}
complete -F _bert_tf bert-tf
"""


def bash(commands: Commands) -> str:
    """Returns the completion script for bash."""
    by_words: dict[str, list[str]] = {}
    lines = []
    for command, options in commands.items():
        names = [x.name + "=" * x.takes_value for x in options]
        lines.append(f"            {command}) words='{' '.join(names)}' ;;")
        for option in options:
            words = "PATH" if option.is_path else " ".join(option.values)
            if words:
                by_words.setdefault(words, []).append(command + option.name)
    values = [
        f"            {'|'.join(names)})\n                words='{words}' ;;"
        for words, names in by_words.items()
    ]
    return (
        _BASH.replace("@names@", " ".join(commands))
        .replace("@values@", "\n".join(values))
        .replace("@flags@", "\n".join(lines))
    )


# ---- zsh --------------------------------------------------------------------

_ZSH = """\
#compdef bert-tf
# Completes bert-tf in zsh. To install, with FOLDER in $fpath before compinit:
#   bert-tf completion zsh > FOLDER/_bert_tf
_bert_tf() {
    local -a specs
    if (( CURRENT == 2 )); then
        compadd -- @names@
        return
    fi
    case $words[2] in
@flags@
    esac
    shift words
    (( CURRENT-- ))
    (( $#specs )) && _arguments $specs
}
compdef _bert_tf bert-tf
# Read from a file of $fpath, the first call completes, too.
if [[ $funcstack[1] == _bert_tf ]]; then
    _bert_tf "$@"
fi
"""


def zsh(commands: Commands) -> str:
    """Returns the completion script for zsh."""

    def spec(option: Option) -> str:
        if not option.takes_value:
            return f"'{option.name}[{option.text}]'"
        action = f"({' '.join(option.values)})" if option.values else " "
        action = "_files" if option.is_path else action
        return f"'{option.name}=-[{option.text}]:value:{action}'"

    lines = [
        f"        {command}) specs=(\n"
        + "".join(f"            {spec(option)}\n" for option in options)
        + "        ) ;;"
        for command, options in commands.items()
    ]
    return _ZSH.replace("@names@", " ".join(commands)).replace(
        "@flags@", "\n".join(lines)
    )


# ---- fish -------------------------------------------------------------------

_FISH = """\
# Completes bert-tf in fish. To install:
#   bert-tf completion fish > ~/.config/fish/completions/bert-tf.fish
complete -c bert-tf -f
"""


def fish(commands: Commands) -> str:
    """Returns the completion script for fish."""
    lines = [
        f"complete -c bert-tf -n __fish_use_subcommand -a {command}"
        for command in commands
    ]
    for command, options in commands.items():
        for option in options:
            value = "-x" if option.takes_value else ""
            if option.values:
                value = f"-x -a '{' '.join(option.values)}'"
            if option.is_path:
                value = "-r -F"
            lines.append(
                "complete -c bert-tf "
                f"-n '__fish_seen_subcommand_from {command}' "
                f"-l {option.name[2:]} {value} -d '{option.text}'"
            )
    return _FISH + "\n".join(lines) + "\n"


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
