"""Hides TensorFlow's start-up messages, and libraries that it need not import.

TensorFlow's C++ code writes to the file descriptor of stderr, whatever its log
level. The text written between `begin` and `end` is shown if the process dies,
or if a thread writes a traceback in that time.
"""

import contextlib
import importlib.abc
import os
import subprocess
import sys
from collections.abc import Iterator

# A separate process, which survives if TensorFlow aborts this one. It reads the
# text to its end and shows it unless the start-up succeeded in all threads.
_KEEPER = """
import os, sys
text, verdict = map(int, sys.argv[1:])
parts = []
while part := os.read(text, 1 << 16):
    parts.append(part)
written = b"".join(parts)
if not os.read(verdict, 16) or b"Traceback (most recent call last)" in written:
    os.write(2, written)
"""
# The original stderr, the pipe for the result, and the separate process.
_held: tuple[int, int, subprocess.Popen] | None = None


def begin() -> None:
    """Redirects stderr to a process that holds the text."""
    global _held
    if _held is not None:
        return
    sys.stderr.flush()
    text_end, text = os.pipe()
    verdict_end, verdict = os.pipe()
    keeper = subprocess.Popen(
        [sys.executable, "-ISc", _KEEPER, str(text_end), str(verdict_end)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(text_end, verdict_end),
        # Ctrl-C and a closed terminal end this process, not the separate one.
        start_new_session=True,
    )
    os.close(text_end)
    os.close(verdict_end)
    _held = os.dup(2), verdict, keeper
    os.dup2(text, 2)
    os.close(text)


def end(is_well: bool = True) -> None:
    """Restores stderr; drops the text, or shows it if `is_well` is false."""
    global _held
    if _held is None:
        return
    screen, verdict, keeper = _held
    _held = None
    sys.stderr.flush()
    os.dup2(screen, 2)
    os.close(screen)
    if is_well:
        os.write(verdict, b"well")
    os.close(verdict)
    # A process that another thread has started may hold the pipe. Only the
    # order of an error's lines depends on the wait.
    with contextlib.suppress(subprocess.TimeoutExpired):
        keeper.wait(timeout=1 if is_well else None)


@contextlib.contextmanager
def kept_back() -> Iterator[None]:
    """Holds back the text written to stderr, and shows it after an error.

    Does nothing once TensorFlow is imported: it writes these messages on
    import.
    """
    if _held is not None or "tensorflow" in sys.modules:
        yield
        return
    begin()
    try:
        yield
    except BaseException:
        end(is_well=False)
        raise
    end()


# ---- Imports -----------------------------------------------------------------

_LIBRARIES = ("jax", "matplotlib", "sklearn")
_IMPORTERS = ("tensorflow", "keras")


class _Hidden(importlib.abc.MetaPathFinder):
    """Hides the libraries while TensorFlow or Keras is imported."""

    def find_spec(self, fullname, path, target=None):
        if fullname in _LIBRARIES and any(map(_is_initializing, _IMPORTERS)):
            raise ModuleNotFoundError(
                f"{fullname} is not needed by {' or '.join(_IMPORTERS)} here",
                name=fullname,
            )
        return None


def _is_initializing(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return getattr(spec, "_initializing", False)


def skip_unused_imports() -> None:
    """Hides JAX, Matplotlib and scikit-learn from TensorFlow and Keras only.

    TensorFlow and Keras import these libraries wherever they are installed, for
    functions that no script calls: TensorFlow Lite's `from_jax`, Keras' plots
    and its estimators. That takes almost as long as TensorFlow itself.
    """
    if not any(isinstance(finder, _Hidden) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hidden())
