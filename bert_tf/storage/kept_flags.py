"""What the flags of a run were: its flags.txt, read without knowing flags."""

import os

from bert_tf.errors import InputError

from etils import epath

# Of a run, in its folder.
FILE = "flags.txt"


def read(path: str) -> dict[str, str]:
    """Returns the flags that a run wrote, as text by name."""
    try:
        lines = epath.Path(path).read_bytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is damaged: it keeps the flags of a run, and is not "
            f"UTF-8 text ({error.reason} at byte {error.start}). Bring it back "
            "as it was, or choose another folder."
        ) from error
    texts = {}
    for line in lines:
        if line.startswith("--"):
            name, _, text = line.removeprefix("--").partition("=")
            texts[name] = text
    return texts


def of_folder(folder: str) -> dict[str, str]:
    """Returns the flags of the run in a folder; none if it keeps none."""
    path = os.path.join(folder, FILE)
    return read(path) if epath.Path(path).exists() else {}
