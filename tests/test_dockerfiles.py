"""The Dockerfiles agree with setup.cfg, the files and the flags.

Nothing here builds an image. tests/test_packaging.py builds the wheel from the
files that .dockerignore lets through.
"""

import configparser
import json
import pathlib
import re

from bert_tf.server import openapi
from tests import scripts

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(params=["serve", "train"])
def dockerfile(request):
    """Returns the instructions, as pairs of name and arguments."""
    text = (_ROOT / "docker" / f"{request.param}.Dockerfile").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line]


def _values(dockerfile, name):
    return [value for found, value in dockerfile if found == name]


def test_copies_what_is_there(dockerfile):
    """The whole context, in which each exception of .dockerignore is a file."""
    assert _values(dockerfile, "COPY") == [". /src"]
    lines = (_ROOT / ".dockerignore").read_text().splitlines()
    for pattern in (line[1:] for line in lines if line.startswith("!")):
        assert list(_ROOT.glob(pattern)), pattern
    for path in re.findall(r"/src/(\S+)", " ".join(_values(dockerfile, "RUN"))):
        assert f"!{path}" in lines


def test_installs_extras_there_are(dockerfile):
    setup = configparser.ConfigParser()
    setup.read(_ROOT / "setup.cfg", "utf-8")
    (install,) = _values(dockerfile, "RUN")
    (extras,) = re.findall(r"'/src\[(.*?)\]'", install)
    assert set(extras.split(",")) <= set(setup["options.extras_require"])


def test_does_not_run_as_root(dockerfile):
    names = [name for name, _ in dockerfile]
    (user,) = _values(dockerfile, "USER")
    assert f"--uid {user} " in _values(dockerfile, "RUN")[0] + " "
    assert user != "0"
    assert names.index("RUN") < names.index("USER") < names.index("ENTRYPOINT")


def test_starts_a_script_with_flags_there_are(dockerfile, tmp_path):
    (entry,) = map(json.loads, _values(dockerfile, "ENTRYPOINT"))
    (command,) = map(json.loads, _values(dockerfile, "CMD"))
    program, *words = entry + command
    assert program == "bert-tf"
    if words:
        script, *flags = words
        done = scripts.run(tmp_path, script, "--only_check_args", *flags)
        assert done.wait() == 0, done.stderr


def test_the_server_is_healthy_at_its_port():
    """The health check requests a path of the server at its port."""
    text = (_ROOT / "docker" / "serve.Dockerfile").read_text()
    ((port, path),) = re.findall(
        r"urlopen\('http://127.0.0.1:(\d+)(/\w+)'", text
    )
    assert f"--port={port}" in text
    assert f"EXPOSE {port}\n" in text
    assert path in {route.path for route in openapi.ROUTES}
