"""Models of the Hugging Face Hub by name, such as google-bert/bert-base-cased.

The library huggingface_hub downloads them to its cache, so its environment
variables apply: HF_HOME, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE.
"""

import contextlib
import functools
import glob
import logging as python_logging
import os
import re
from collections.abc import Iterator, Sequence

from bert_tf import extras
from bert_tf.checkpoints import (
    huggingface,
    huggingface_names,
    keras_hub,
    opened,
    original,
    sentence_transformers,
)
from bert_tf.errors import InputError
from bert_tf.storage import weight_files
from bert_tf.vocabularies import tokenizer_config

from absl import logging

_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*(@[\w.-]+)?", re.ASCII)
_ADDRESS = re.compile(r"^(hf://|https://(www\.)?huggingface\.co/)")
# Such arguments are paths, even if the file is missing.
_FILE = re.compile(
    r"\.(bin|ckpt|data|h5|index|json|keras|meta|model|msgpack|safetensors|txt)"
    r"(?![a-z])"
)
# All files but the weights.
_FILES = (
    *(huggingface.CONFIG, *tokenizer_config.FILES),
    *(huggingface.GENERATION_FILE, huggingface_names.SBERT_FILE),
    *sentence_transformers.FILES,
    *(original.CONFIG, original.LABELS, *original.vocab_names()),
    *(*keras_hub.FILES, weight_files.ADAPTER),
)


def locate(path: str, with_weights: bool = True) -> str:
    """Returns a Hub model's folder in the cache, or another path unchanged.

    Args:
        path: A name on the Hub, or any other path.
        with_weights: Whether to download the weights, too.

    Raises:
        InputError: The Hub has no such model, or only unreadable formats.
        OSError: The download failed.
    """
    name = _ADDRESS.sub("", path)
    return _download(name, with_weights) if is_name(path) else path


def is_name(path: str) -> bool:
    """Whether this is OWNER/NAME or OWNER/NAME@REVISION, not a local file.

    An address may precede it: hf:// or https://huggingface.co/.
    """
    return (
        bool(_NAME.fullmatch(_ADDRESS.sub("", path)))
        and not _FILE.search(path)
        and not any(map(os.path.lexists, (path, f"{path}.index")))
    )


def repository(path: str) -> str:
    """Returns the OWNER/NAME that a path names; "" if it may be a local path.

    A path whose files are gone looks like a name. Without an address, only the
    names of downloaded models are certain.
    """
    name = _ADDRESS.sub("", path).partition("@")[0]
    is_certain = is_name(path) and (_ADDRESS.match(path) or _is_cached(name))
    return name if is_certain else ""


def _is_cached(name: str) -> bool:
    """Whether a model of the Hub was downloaded to this machine."""
    try:
        from huggingface_hub import constants
    except ImportError:
        return False
    folder = f"models--{name.replace('/', '--')}"
    return os.path.isdir(os.path.join(constants.HF_HUB_CACHE, folder))


@functools.cache
def _download(name: str, with_weights: bool) -> str:
    """Returns the folder of a model, the same one in the whole process."""
    extras.check(
        "huggingface_hub",
        "huggingface-hub",
        f"There is no folder {name} here; models of the Hugging Face Hub",
    )
    repository, _, revision = name.partition("@")
    folder = _fetch(repository, revision or None, _FILES, is_shown=False)
    _check_config(name, folder)
    if not with_weights:
        return folder
    files = [weights.file for weights in weight_files.find_all()]
    if not any(_is_there(folder, file) for file in files):
        logging.info("Downloading the weights of %s.", name)
    commit = os.path.basename(folder)
    for first, parts in weight_files.find_all():
        if parts or not _is_there(folder, first):
            # The config is included: huggingface_hub warns if no file matches.
            wanted = (huggingface.CONFIG, original.CONFIG, first, *parts)
            _fetch(repository, commit, wanted, is_shown=True)
        if _is_there(folder, first):
            logging.info("%s is in %s.", name, folder)
            return folder
    _check_adapter(name, folder)
    raise InputError(
        f"{name} has no weights that can be read. Looked for: "
        f"{', '.join(files)}. Received: {folder}"
    )


def _check_adapter(name: str, folder: str) -> None:
    """Raises InputError if a model without weights is an adapter of PEFT."""
    if _is_there(folder, weight_files.ADAPTER):
        raise opened.only_adapter(folder, name)


def _is_there(folder: str, pattern: str) -> bool:
    return bool(glob.glob(os.path.join(glob.escape(folder), pattern)))


def _fetch(
    name: str, revision: str | None, patterns: Sequence[str], is_shown: bool
) -> str:
    """Downloads the files missing in the cache and returns their folder.

    Args:
        name: Name of the model, without a revision.
        revision: A branch, tag or commit; None for the default branch.
        patterns: Patterns that file names must match.
        is_shown: Whether to show the progress on terminals.
    """
    # Slow to import, and not needed for local paths.
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import tqdm

    bars = []

    class Bar(tqdm):
        def __init__(self, *args, **kwargs):
            # None: on terminals only.
            kwargs["disable"] = None if is_shown else True
            super().__init__(*args, **kwargs)
            bars.append(self)

    for client in ("httpx", "httpx2"):  # They log every request.
        python_logging.getLogger(client).setLevel("WARNING")
    with _explained(name, revision):
        try:
            return snapshot_download(
                name,
                revision=revision,
                allow_patterns=list(patterns),
                tqdm_class=Bar,
            )
        finally:
            for bar in bars:
                bar.close()  # Otherwise some bars are drawn again at exit.


def _check_config(name: str, folder: str) -> None:
    """Raises InputError for unsupported models, before any weights."""
    values = opened.read_json(folder, huggingface.CONFIG)
    if "class_name" in values:  # KerasHub's, whose reader checks it
        return
    if not values and os.path.exists(os.path.join(folder, original.CONFIG)):
        return
    if not values:
        _check_adapter(name, folder)
        raise InputError(
            f"{name} has no {huggingface.CONFIG}, which says what model it is. "
            f"Received: {folder}"
        )
    try:
        huggingface_names.to_config(huggingface_names.with_own_kind(values))
    except InputError as error:
        raise InputError(
            f"{name} can't be read. Its {huggingface.CONFIG}: {error}"
        ) from error


@contextlib.contextmanager
def _explained(name: str, revision: str | None) -> Iterator[None]:
    """Turns huggingface_hub's errors into one-line errors of this package."""
    from huggingface_hub import constants, errors

    there = f"{constants.ENDPOINT}/{name}"
    try:
        yield
    except errors.GatedRepoError as error:
        raise InputError(
            f"The model {name} is gated: accept its terms at {there}, and log "
            "in with `hf auth login`, or set HF_TOKEN."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(
            f"The model {name} has no such branch, tag or commit. "
            f"Received: revision={revision}"
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise InputError(
            f"There is no folder {name} here, and no model {there}. Correct "
            "the path or the name; if the model is private, log in with "
            "`hf auth login`, or set HF_TOKEN."
        ) from error
    # Network errors have no common base class.
    except Exception as error:
        reason = str(error.__cause__ or error).partition("\n")[0]
        option = f" --revision={revision}" if revision else ""
        raise OSError(
            f"There is no folder {name} here, and {there} can't be downloaded: "
            f"{reason.rstrip('.')}. Where the Hub can be reached, run `hf "
            f"download {name}{option} --local-dir=DIR`; then pass DIR instead "
            "of the name."
        ) from error
