"""Libraries that scripts don't use are hidden from TensorFlow and Keras."""

import os
import subprocess
import sys

from bert_tf.flags import unused_imports

_IMPORT = """
try:
    import sklearn
    found = True
except ImportError:
    found = False
"""
# The package itself acts on the import of keras, so only the file is run.
_SCRIPT = """
import runpy, sys
runpy.run_path(sys.argv[1])["skip"]()
import keras, other, sklearn
print(keras.found, keras.tensorflow.found, other.found)
"""


def test_only_tensorflow_and_keras_do_not_find_them(tmp_path):
    sources = {
        "sklearn": "",
        "other": _IMPORT,
        "tensorflow": _IMPORT,
        "keras": f"import tensorflow{_IMPORT}",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, unused_imports.__file__],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["False", "False", "True"]
