from bert_tf.tasks.squad import squad_threshold

import pytest


def test_given_tuned_and_not_used(tmp_path):
    folder = str(tmp_path)
    assert squad_threshold.find("1.5", True, folder).known() == 1.5
    assert squad_threshold.find("1.5", False, folder).known() is None
    assert squad_threshold.find("auto", False, folder).known() is None
    tuned = squad_threshold.find("auto", True, folder)
    with pytest.raises(ValueError, match="needs questions with answers"):
        tuned.known()
    tuned.note(-2.1875)
    assert tuned.known() == -2.1875
    (file,) = tmp_path.iterdir()
    assert file.read_text() == "-2.1875\n"
    file.unlink()
    # A threshold that is passed needs no file.
    squad_threshold.find("1.5", True, folder).note(1.5)
    squad_threshold.find("auto", False, folder).note(None)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"number or auto.*=high"):
        squad_threshold.find("high", True, folder)
