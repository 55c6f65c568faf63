"""Requests that are joined get the same answers as alone."""

from bert_tf.server import batching, joining, servables
from tests import combinations, exports
from tests.serving_session import example

import numpy as np
import pytest

pytestmark = pytest.mark.slow

_WORDS = ["a", "film", "what", "good", "bad", ",", "Paris", "Ada", "c"]


@pytest.fixture(scope="module")
def load():
    """Returns the servable of a head, loaded once."""
    loaded: dict[str, servables.Servable] = {}

    def load(head):
        if head not in loaded:
            limits = batching.Limits(max_batch_size=4)
            path = str(exports.exported(head))
            loaded[head] = servables.Servable(path, 1, limits)
        return loaded[head]

    with pytest.MonkeyPatch.context() as patch:
        # It would collect garbage in the whole process, for each servable.
        patch.setattr(servables, "_freeze", lambda: None)
        yield load
    for servable in loaded.values():
        servable.close(seconds=0)


def texts(rng, *shape):
    """Returns texts of 0 to 7 words, some of which are masks."""
    words = [*_WORDS, "[MASK]"]
    found = [
        " ".join(rng.choice(words, rng.integers(8))).encode()
        for _ in range(int(np.prod(shape)))
    ]
    return np.array(found, object).reshape(shape)


def requests(signature, rng, count, length=6):
    """Returns inputs of requests of one to three rows."""
    found = []
    for _ in range(count):
        rows = int(rng.integers(1, 4))
        inputs = {}
        for name, info in signature.inputs.items():
            shape = (rows, *(length for _ in info.shape[1:]))
            if signature.name == "serve_examples":
                made = [example(text=x) for x in texts(rng, *shape)]
                inputs[name] = np.array(made, object)
            elif info.dtype.name == "string":
                inputs[name] = texts(rng, *shape)
            elif name == "input_mask":
                real = rng.integers(1, length + 1, (*shape[:-1], 1))
                inputs[name] = (np.arange(length) < real).astype(np.int32)
            else:
                inputs[name] = rng.integers(0, 2, shape, np.int32)
        found.append(inputs)
    return found


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert found[name].shape == array.shape, name
        if array.dtype.kind == "f":
            np.testing.assert_allclose(found[name], array, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    "head",
    # The other heads' outputs have a fixed number of values per row.
    combinations.some(
        {"tagging", "span", "multiple_choice", "masked_lm", "tokens"},
        [*exports.NAMES, "tokens"],
    ),
)
def test_split_outputs_are_those_of_each_alone(load, head):
    servable = load(head)
    for signature in servable.signatures.by_name.values():
        asked = requests(signature, np.random.default_rng(5), 8)
        joined = joining.join(asked)
        sizes = [len(next(iter(inputs.values()))) for inputs in asked]
        outputs = servable.run(signature, joined)
        parts = joining.split(signature, joined, outputs, sizes)
        assert parts is not None, signature.name
        for inputs, part in zip(asked, parts, strict=True):
            assert_same(part, servable.run(signature, inputs))


def test_some_outputs_are_narrower_than_those_of_all(load):
    # This shows that the test above can fail.
    servable = load("tagging")
    signature = servable.signatures.find(None)
    asked = requests(signature, np.random.default_rng(5), 8)
    widths = {servable.run(signature, x)["type"].shape[1] for x in asked}
    assert len(widths) > 1


def test_widths_that_nothing_tells_are_not_split(load):
    servable = load("tagging")
    signature = servable.signatures.find(None)
    asked = requests(signature, np.random.default_rng(5), 2)
    joined = joining.join(asked)
    sizes = [len(next(iter(inputs.values()))) for inputs in asked]
    outputs = servable.run(signature, joined)
    del outputs["count"]
    assert joining.split(signature, joined, outputs, sizes) is None


@pytest.mark.parametrize(
    "head",
    combinations.some(
        {"one text", "tagging", "masked_lm"}, [*exports.NAMES, "one text"]
    ),
)
def test_a_request_of_many_rows_is_answered_in_parts(load, head, monkeypatch):
    servable = load(head)
    sizes: list[int] = []
    monkeypatch.setattr(servable._batcher, "_on_batch", sizes.append)
    for signature in servable.signatures.by_name.values():
        asked = requests(signature, np.random.default_rng(7), 8)
        inputs = joining.join(asked)
        found = servable._batcher.submit(signature, inputs).result(60)
        assert_same(found, servable.run(signature, inputs))
    assert max(sizes) == 4
