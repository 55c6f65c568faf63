"""Where the loss of next pieces may stand beside that of a task."""

import contextlib

from bert_tf.encoders import families
from bert_tf.errors import InputError
from bert_tf.setup import auxiliary_lm

import pytest
from absl import flags
from absl.testing import flagsaver

_READS_LEFT = {"model_type": "left_to_right", "vocab_size": 9}
_OF_LAYERS = r"--distillation=minilm trains layers and no head, so there is"


@pytest.mark.parametrize(
    "config, distillation, weight, refusal",
    [
        (_READS_LEFT, None, 0.5, None),
        (_READS_LEFT, "logits", 0.5, None),
        (_READS_LEFT, "minilm", None, None),
        (_READS_LEFT, "minilm", 0.5, _OF_LAYERS),
        ({"vocab_size": 9}, None, None, None),
        ({"vocab_size": 9}, None, 0.5, "for encoders that read from left to"),
    ],
)
def test_check(config, distillation, weight, refusal):
    flags.FLAGS.mark_as_parsed()
    asked: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if refusal:
        asked = pytest.raises(InputError, match=refusal)
    with flagsaver.flagsaver(distillation=distillation), asked:
        auxiliary_lm.check(weight, families.from_values(config))
