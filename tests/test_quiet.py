"""Messages and libraries that are hidden while TensorFlow starts."""

import os
import subprocess
import sys

from bert_tf import quiet
from tests import combinations, processes

import pytest

_IMPORTS = """
import os, sys
from bert_tf import quiet
def noise(): os.write(2, b'I0000 noise\\n')
"""
_SHOWN = "I0000 noise\n"


@pytest.mark.parametrize(
    ("code", "end", "shown"),
    [
        (
            "quiet.begin(); noise(); quiet.end()\n"
            "print('after', file=sys.stderr); os.write(2, b'later')\n"
            # More than a pipe's buffer holds.
            "quiet.begin()\nfor _ in range(100_000): noise()\nquiet.end()\n"
            # A nested block ends with the outer block.
            "with quiet.kept_back():\n"
            "    with quiet.kept_back():\n"
            "        noise()\n"
            "    noise()\n"
            "os.write(2, b'last')",
            0,
            "after\nlaterlast",
        ),
        # As TensorFlow aborts on a processor that it was not compiled for.
        ("quiet.begin(); noise(); os.abort()", -6, _SHOWN),
        ("quiet.begin(); noise(); os.kill(os.getpid(), 9)", -9, _SHOWN),
        (
            "quiet.end(); quiet.begin(); quiet.begin(); noise()\n"
            "quiet.end(); quiet.end(); os.write(2, b'later')",
            0,
            "later",
        ),
    ],
)
def test_begin_and_end(code, end, shown):
    """C code writes directly to the file descriptor."""
    found, _, errors = processes.run(_IMPORTS + code)
    assert (found, errors) == (end, shown)


def test_error_shows_all():
    code = "with quiet.kept_back():\n    noise()\n    import nowhere\n"
    end, _, errors = processes.run(_IMPORTS + code)
    assert end == 1
    assert errors.startswith(f"{_SHOWN}Traceback")
    assert "No module named 'nowhere'" in errors


def test_error_of_another_thread_is_shown():
    """The traceback is complete, although the start-up succeeds."""
    code = """
import threading
with quiet.kept_back():
    noise()
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
"""
    end, _, errors = processes.run(_IMPORTS + code)
    assert end == 0
    assert errors.startswith(f"{_SHOWN}Exception in thread")
    assert errors.endswith("ZeroDivisionError: division by zero\n")


_SCRIPT = f"""{_IMPORTS}
from bert_tf.flags import command_line
command_line.start(__name__)
noise()
def main(_):
    pass
command_line.run(main)
"""


@pytest.mark.parametrize("arguments", [[], ["--verbosity=1"]])
def test_script_shows_messages_on_request(arguments):
    code, _, errors = processes.run(_SCRIPT, *arguments)
    assert code == 0
    assert (_SHOWN in errors) == bool(arguments), errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("level", "is_quiet"),
    combinations.some([("1", True)], [("1", True), ("0", False)]),
)
def test_library_shows_no_messages_of_tensorflow(level, is_quiet):
    code, printed, errors = processes.run(f"""
        import os
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "{level}"
        import bert_tf
        print(bert_tf.Tokenizer.__name__)
        import tensorflow as tf
        print((tf.constant(1) + 1).numpy())
    """)
    assert (code, printed) == (0, "Tokenizer\n2\n")
    assert (not errors) == is_quiet, errors


# ---- Libraries that scripts do not use ---------------------------------------

_TRIES = """
try:
    import sklearn
    found = True
except ImportError:
    found = False
"""
# The package itself acts on the import of keras, so only the file is run.
_HIDES = """
import runpy, sys
runpy.run_path(sys.argv[1])["skip_unused_imports"]()
import keras, other, sklearn
print(keras.found, keras.tensorflow.found, other.found)
"""


def test_only_tensorflow_and_keras_do_not_find_them(tmp_path):
    sources = {
        "sklearn": "",
        "other": _TRIES,
        "tensorflow": _TRIES,
        "keras": f"import tensorflow{_TRIES}",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-c", _HIDES, quiet.__file__],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["False", "False", "True"]
