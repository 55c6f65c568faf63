"""What the flags of a run were: its flags.txt, read without knowing flags."""

from bert_tf.errors import InputError

from etils import epath


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


def read_if_there(path: str) -> dict[str, str]:
    """Returns the flags of a file; none if there is no file."""
    return read(path) if epath.Path(path).exists() else {}
