from bert_tf.tasks import tables
from bert_tf.tasks.classification import objective

import numpy as np
import pytest
from sklearn.utils import class_weight


def _examples(labels):
    return (tables.Example("", "x", label=label) for label in labels)


def test_balanced_is_scikit_learns():
    given = ["a"] * 7 + ["b"] + ["c"] * 4
    found = objective.balanced_class_weights(_examples(given), ("a", "b", "c"))
    expected = class_weight.compute_class_weight(
        "balanced", classes=np.array(["a", "b", "c"]), y=given
    )
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="no examples of d, e"):
        objective.balanced_class_weights(_examples(given), ("a", "d", "b", "e"))


def test_balanced_labels_for_themselves():
    given = [("a",), ("a", "b"), (), ("a",), ("a", "c")]
    found = objective.balanced_class_weights(_examples(given), ("a", "b", "c"))
    # For each label, the ratio of the weights of its two classes.
    weights = [
        class_weight.compute_class_weight(
            "balanced", classes=np.array([0, 1]), y=[x in own for own in given]
        )
        for x in "abc"
    ]
    assert found == pytest.approx([yes / no for no, yes in weights])
    assert objective.balanced_class_weights(
        _examples([("a",)] * 2), ("a",)
    ) == (0.5,)


def test_given_weights():
    labels = ("x=1", "b", "c")
    assert objective.parse_class_weights(["b=2.5", "x=1=3"], labels) == (
        3,
        2.5,
        1,
    )
    for bad in ("b", "d=1", "b=0", "b=-1", "b=nan", "b=inf", "b=1e9", "b=x"):
        with pytest.raises(ValueError, match=f"x=1, b, c.*Received.*{bad}"):
            objective.parse_class_weights([bad], labels)
    with pytest.raises(ValueError, match=r"x=1, b, c.*Received.*b=3"):
        objective.parse_class_weights(["b=2", "b=3"], labels)
