"""Records for tests of training."""

from tests import pretraining_records, tiny_model

import pytest


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("data")
    return pretraining_records.write(folder, tiny_model.COUNTS)
