"""Reads flags.txt, the saved flags of a run, without knowing the flags."""

import os

from bert_tf.errors import InputError
from bert_tf.storage import input_files

from etils import epath

# In the folder of a run.
FILE = "flags.txt"
# In the folder of a search: the weights and the flags of its best trial.
_BEST = "best"


def read(path: str) -> dict[str, str]:
    """Returns the saved flags of a run, as text by name."""
    input_files.check_can_be_read_again(path)
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
            texts[name] = text.removesuffix("\r")  # of an editor of Windows
    return texts


def of_folder(folder: str) -> dict[str, str]:
    """Returns the flags of the run in a folder, empty if none are saved.

    A search stands for its best trial: its own flags lack the values that the
    trials had.
    """
    path = os.path.join(folder, FILE)
    found = read(path) if epath.Path(path).exists() else {}
    if "search" in found:
        return of_folder(os.path.join(folder, _BEST)) or found
    return found
