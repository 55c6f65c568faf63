"""A released checkpoint, copied for each test."""

import pathlib
import shutil

import pytest


@pytest.fixture(scope="session", name="_released")
def _released_fixture(tmp_path_factory: pytest.TempPathFactory) -> str:
    # Imported here: the process that starts the workers loads this file, too.
    from bert_tf import modeling
    from tests import interop_samples as samples

    config = modeling.BertConfig(**samples.SMALL)
    model = samples.random_model("pretraining", config)
    return samples.write_tf1(tmp_path_factory.mktemp("released"), model)


@pytest.fixture
def tf1(_released: str, tmp_path: pathlib.Path) -> str:
    """A folder with both pre-training heads, and a vocabulary."""
    return str(shutil.copytree(_released, tmp_path / "tf1"))
