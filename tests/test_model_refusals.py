"""Models and configs that cannot be made."""

from bert_tf import heads, modeling
from bert_tf.errors import InputError
from tests import tiny_files

import pytest


def test_a_head_without_outputs():
    with pytest.raises(InputError, match="at least one label"):
        heads.LinearHead(tiny_files.CONFIG, 0)


def test_a_config_without_a_vocabulary():
    with pytest.raises(InputError, match="has no `vocab_size`"):
        modeling.BertConfig.from_dict({"hidden_size": 8})
