"""Writes the flags of a script, for benchmarks/same_as_before.py.

    python benchmarks/same/flags_of_script.py SCRIPT FOLDER

Runs in a checkout, and starts its script with --helpfull. FOLDER gets the help
page, and flags.jsonl with properties that the page does not show: bounds,
choices, and conditions of use. Does not import bert_tf by name.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import runpy
import sys
from typing import Any

from absl import flags


def _about_flags() -> Any:
    """Returns the function that returns extra properties of a flag."""
    for name, module in list(sys.modules.items()):
        if name.startswith("bert_tf.") and hasattr(module, "Section"):
            # Earlier versions call it `about`.
            about = getattr(module, "about", None)
            return getattr(module, "find_about", about)
    return None


def _plain(value: Any) -> Any:
    """Converts a value to JSON types, without memory addresses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {x.name: _plain(getattr(value, x.name)) for x in fields}
    if isinstance(value, dict):
        return {str(name): _plain(x) for name, x in sorted(value.items())}
    if isinstance(value, (set, frozenset)):
        return sorted(map(_plain, value))
    if isinstance(value, (list, tuple)):
        return [_plain(x) for x in value]
    if callable(value):
        return getattr(value, "__qualname__", type(value).__qualname__)
    if value is None or isinstance(value, (str, int, float)):
        return value
    return type(value).__qualname__


def _parts(flag: flags.Flag, about: Any) -> dict[str, Any]:
    own = about(flag) if about else None
    return {
        "default": _plain(flag.default),
        "default_as_text": flag.default_as_str,
        "help": flag.help,
        "short_name": flag.short_name,
        "kind": type(flag).__qualname__,
        "parser": type(flag.parser).__qualname__,
        "parsed_as": _plain(vars(flag.parser)),
        "checks": len(flag.validators),
        "about": _plain(own),
    }


def main() -> None:
    """Runs the script until its flags are defined."""
    script, folder = sys.argv[1:]
    root = os.getcwd()
    # As if the script had been started directly.
    sys.path[0] = root
    sys.argv = [f"{script}.py", "--helpfull"]
    out = pathlib.Path(folder)
    with (
        (out / "help.txt").open("w") as page,
        contextlib.redirect_stdout(page),
        contextlib.suppress(SystemExit),
    ):
        runpy.run_path(sys.argv[0], run_name="__main__")
    import bert_tf

    if not bert_tf.__file__.startswith(root + os.sep):
        raise SystemExit(f"{bert_tf.__file__} is not that of {root}.")
    about = _about_flags()
    if about is None:
        raise SystemExit("bert_tf has no module of flags that knows sections.")
    own = {
        flag.name for flag in flags.FLAGS.get_key_flags_for_module(sys.argv[0])
    }
    found = {
        name: _parts(flags.FLAGS[name], about) | {"own": name in own}
        for name in sorted(flags.FLAGS)
    }
    lines = [json.dumps({name: x}, sort_keys=True) for name, x in found.items()]
    (out / "flags.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
