"""Records for tests of training."""

import pytest


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    # Imported here: the process that starts the workers loads this file, too.
    from tests import pretraining_records, tiny_model

    folder = tmp_path_factory.mktemp("data")
    return pretraining_records.write(folder, tiny_model.COUNTS)
