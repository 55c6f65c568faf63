"""Which requests form a batch and in which order; bad and large requests."""

import threading

from bert_tf.server import batching
from bert_tf.server.refusals import Refusal
from bert_tf.server.signature_defs import PREDICT, Signature, Tensor

import numpy as np
import pytest
import tensorflow as tf

_TEXT = {"text": Tensor(tf.string, (None,))}
_SCORE = {"score": Tensor(tf.int64, (None,))}
_ONE = Signature("one", PREDICT, _TEXT, _SCORE, {})
_OTHER = Signature("other", PREDICT, _TEXT, _SCORE, {})


class _Lengths:
    """Returns lengths of texts; waits for permission, and records batches."""

    def __init__(self, limits):
        self.batches = []
        self.may_run = threading.Event()
        self.runs = threading.Event()
        self.batcher = batching.Batcher(self.run, limits)

    def run(self, signature, inputs):
        self.runs.set()
        self.may_run.wait()
        lengths = [len(text) for text in inputs["text"]]
        self.batches.append(lengths)
        if 13 in lengths:
            raise ValueError("unlucky")
        return {"score": np.array(lengths)}

    def hold(self):
        """Keeps the thread busy with a request, so that others wait."""
        held = self.ask(99)
        assert self.runs.wait(60)
        return held

    def ask(self, *lengths, signature=_ONE):
        texts = np.array([b"a" * n for n in lengths], object)
        return self.batcher.submit(signature, {"text": texts})

    def finish(self):
        self.may_run.set()
        self.batcher.close()


def test_the_oldest_goes_first_with_those_nearest_to_it():
    model = _Lengths(batching.Limits(max_batch_size=3))
    model.hold()
    asked = {n: model.ask(n) for n in (50, 1, 48, 2, 49, 3)}
    model.finish()
    assert model.batches == [[99], [50, 49, 48], [1, 2, 3]]
    for length, future in asked.items():
        assert future.result()["score"].tolist() == [length]


def test_no_more_rows_than_fit_and_no_other_signature():
    model = _Lengths(batching.Limits(max_batch_size=3))
    model.hold()
    asked = [model.ask(5, 5), model.ask(5, signature=_OTHER)]
    asked += [model.ask(6, 6), model.ask(9)]
    model.finish()
    assert model.batches == [[99], [5, 5, 9], [5], [6, 6]]
    found = [future.result()["score"].tolist() for future in asked]
    assert found == [[5, 5], [5], [6, 6], [9]]


def test_a_bad_request_fails_alone():
    model = _Lengths(batching.Limits(max_batch_size=8))
    model.hold()
    asked = {n: model.ask(n) for n in (10, 11, 12, 13, 14, 15)}
    model.finish()
    with pytest.raises(ValueError, match="unlucky"):
        asked.pop(13).result()
    for length, future in asked.items():
        assert future.result()["score"].tolist() == [length]
    # A failing batch is halved, not split into single requests.
    halves = [[10, 11, 12], [13, 14, 15], [13], [14, 15]]
    assert model.batches == [[99], [10, 11, 12, 13, 14, 15], *halves]


def test_who_has_gone_is_not_answered():
    model = _Lengths(batching.Limits(max_batch_size=8))
    model.hold()
    gone, stays = model.ask(4), model.ask(5)
    assert gone.cancel()
    model.finish()
    assert model.batches == [[99], [5]]
    assert stays.result()["score"].tolist() == [5]
    assert model.batcher.waiting == 0


def test_a_full_queue_refuses():
    model = _Lengths(batching.Limits(max_queue=2))
    model.hold()
    model.ask(1)
    with pytest.raises(Refusal, match="full; 2 requests wait") as error:
        model.ask(2)
    assert error.value.status == 503
    model.finish()
    with pytest.raises(Refusal) as error:
        model.ask(3)
    assert error.value.status == 503


def test_an_idle_model_waits_for_more_if_it_is_told_to():
    model = _Lengths(batching.Limits(max_batch_size=2, batch_timeout=60))
    model.may_run.set()
    one, two = model.ask(1), model.ask(2)
    # A full batch does not wait for the minute to pass.
    assert one.result(30)["score"].tolist() == [1]
    assert two.result(30)["score"].tolist() == [2]
    model.finish()
    assert model.batches == [[1, 2]]


@pytest.mark.parametrize("requests", [[(3,), (5,)], [(3, 5)]])
def test_as_many_batches_at_once_as_there_are_threads(requests):
    both = threading.Barrier(2, timeout=30)

    def run(signature, inputs):
        both.wait()
        return {"score": np.array([len(text) for text in inputs["text"]])}

    batcher = batching.Batcher(run, batching.Limits(1, threads=2))
    asked = [
        batcher.submit(_ONE, {"text": np.array([b"a" * n for n in x], object)})
        for x in requests
    ]
    assert [tuple(x.result(30)["score"]) for x in asked] == requests
    batcher.close()


def test_outputs_that_are_no_rows_are_computed_alone():
    def total(signature, inputs):
        return {"score": np.array([sum(map(len, inputs["text"]))])}

    model = _Lengths(batching.Limits(max_batch_size=8))
    model.hold()
    model.batcher._run = total
    asked = [model.ask(2), model.ask(3), model.ask(4)]
    model.finish()
    found = [future.result()["score"].tolist() for future in asked]
    assert found == [[2], [3], [4]]


def test_requests_take_turns():
    model = _Lengths(batching.Limits(max_batch_size=2))
    model.hold()
    large = model.ask(*[5] * 6)
    small = model.ask(7, 7)
    model.finish()
    # A batch of the large request, then the small request, then the rest.
    assert model.batches == [[99], [5, 5], [7, 7], [5, 5], [5, 5]]
    assert large.result()["score"].tolist() == [5] * 6
    assert small.done()


def test_rows_that_wait_are_limited():
    model = _Lengths(batching.Limits(max_batch_size=2, max_queued_rows=6))
    model.hold()
    with pytest.raises(Refusal, match=r"at most 6 rows.*Received: 7") as error:
        model.ask(*[1] * 7)
    assert error.value.status == 413
    with pytest.raises(Refusal, match="Received: 7"):
        model.batcher.submit(
            _ONE,
            {"text": np.full(7, b"a"), "text_b": np.full(1, b"")},
        )
    model.ask(*[1] * 4)
    with pytest.raises(Refusal, match="4 rows wait") as error:
        model.ask(*[1] * 3)
    assert error.value.status == 503
    model.ask(1, 1)
    model.finish()
    assert model.batcher.waiting == 0


def _words(signature, inputs):
    """Returns outputs of each word, padded by TensorFlow."""
    words = tf.strings.split(inputs["text"])
    lengths = tf.strings.length(words)
    found = {
        "label": words.to_tensor(),
        "start": lengths.to_tensor(-1),
        "score": tf.stack([lengths, lengths], -1).to_tensor(),
        "count": words.row_lengths(),
    }
    return {name: found[name].numpy() for name in signature.outputs}


@pytest.mark.parametrize(("counts", "sizes"), [(True, [2, 2, 1]), (False, [5])])
def test_parts_are_padded_as_the_whole(counts, sizes):
    outputs = {
        "label": Tensor(tf.string, (None, None)),
        "start": Tensor(tf.int32, (None, None)),
        "score": Tensor(tf.int32, (None, None, 2)),
        **({"count": Tensor(tf.int64, (None,))} if counts else {}),
    }
    signature = Signature("words", PREDICT, _TEXT, outputs, {})
    found: list[int] = []
    limits = batching.Limits(max_batch_size=2)
    batcher = batching.Batcher(_words, limits, found.append)
    texts = [b"a", b"bb c", b"", b"", b"d ee fff"]
    inputs = {"text": np.array(texts, object)}
    joined = batcher.submit(signature, inputs).result(30)
    batcher.close()
    assert found == sizes
    for name, expected in _words(signature, inputs).items():
        np.testing.assert_array_equal(joined[name], expected, strict=True)


@pytest.mark.parametrize(
    ("output", "batches"),
    [
        # As wide as the input.
        (lambda ids: ids + 1, [[2, 2, 1], [2, 2, 1]]),
        # Padded in an unknown way, or not one for each row.
        (lambda ids: np.full([len(ids), ids.max()], 7), [[2, 2, 1, 5], [5]]),
        (lambda ids: np.unique(ids)[:, np.newaxis], [[2, 2, 1, 5], [5]]),
    ],
)
def test_large_requests_to_models_of_other_programs(output, batches):
    wide = {"ids": Tensor(tf.int64, (None, None))}
    signature = Signature("ids", PREDICT, wide, wide, {})
    found: list[int] = []

    def run(_, inputs):
        return {"ids": output(inputs["ids"])}

    limits = batching.Limits(max_batch_size=2)
    batcher = batching.Batcher(run, limits, found.append)
    inputs = {"ids": np.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 9]])}
    for sizes in batches:
        found.clear()
        joined = batcher.submit(signature, inputs).result(30)
        assert found == sizes
        np.testing.assert_array_equal(joined["ids"], output(inputs["ids"]))
    batcher.close()


def test_a_cancelled_request_leaves_the_queue():
    model = _Lengths(batching.Limits(max_batch_size=2, max_queued_rows=6))
    model.hold()
    large = model.ask(*[1] * 6)
    assert large.cancel()
    # Its rows no longer count, and none of them is computed.
    stays = model.ask(*[2] * 6)
    model.finish()
    assert model.batches == [[99], *[[2, 2]] * 3]
    assert stays.done()
    assert model.batcher.waiting == 0


def test_closing_ends_in_time():
    model = _Lengths(batching.Limits(max_batch_size=2))
    held = model.hold()
    waits = model.ask(*[1] * 4)
    model.batcher.close(seconds=0)  # The running batch does not end.
    with pytest.raises(Refusal, match="stopping"):
        waits.result(timeout=0)
    model.may_run.set()
    assert held.result(timeout=60)["score"].tolist() == [99]


def test_a_large_request_is_not_cut_when_it_comes(monkeypatch):
    """A million parts would stop the event loop for a minute."""
    model = _Lengths(batching.Limits(max_batch_size=1, max_queued_rows=10**6))
    held = model.hold()
    items: list[tuple] = []
    monkeypatch.setattr(batching, "_Item", lambda *x: items.append(x))
    large = model.batcher.submit(_ONE, {"text": np.full(10**6, b"a", object)})
    assert len(model.batcher._queue) == 1
    assert large.cancel()
    assert not items
    model.finish()
    assert held.done()


def test_parts_that_end_in_another_order():
    """The answer has the order of the rows; a failing part ends them all."""
    both = threading.Barrier(2, timeout=30)
    first = threading.Event()

    def run(signature, inputs):
        (length,) = map(len, inputs["text"])
        if length < 3:
            both.wait()
            first.wait(0 if length == 2 else 30)
            first.set()
        if length == 13:
            raise ValueError("unlucky")
        return {"score": np.array([length])}

    limits = batching.Limits(max_batch_size=1, threads=2)
    batcher = batching.Batcher(run, limits)
    texts = [
        np.array([b"a" * n for n in x], object) for x in ((1, 2), (13,) * 9)
    ]
    asked = [batcher.submit(_ONE, {"text": x}) for x in texts]
    assert asked[0].result(30)["score"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="unlucky"):
        asked[1].result(30)
    batcher.close()
    assert batcher.waiting == 0
