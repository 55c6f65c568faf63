"""A large request neither delays others nor keeps the server from stopping."""

from bert_tf.server import batching
from bert_tf.server.refusals import Refusal
from tests.server import test_batching

import numpy as np
import pytest


class _Model(test_batching._Lengths):
    def ask_all(self, lengths):
        texts = np.array([b"a" * n for n in lengths], object)
        return self.batcher.submit(test_batching._ONE, {"text": texts})


def test_requests_take_turns():
    model = _Model(batching.Limits(max_batch_size=2))
    model.hold()
    large = model.ask_all([5] * 6)
    small = model.ask_all([7, 7])
    model.finish()
    # One batch of the large request, then the small one, then the rest.
    assert model.batches == [[99], [5, 5], [7, 7], [5, 5], [5, 5]]
    assert all(future.done() for future in [*large, *small])


def test_rows_that_wait_are_limited():
    model = _Model(batching.Limits(max_batch_size=2, max_queued_rows=6))
    model.hold()
    with pytest.raises(Refusal, match=r"at most 6 rows.*Received: 7") as error:
        model.ask_all([1] * 7)
    assert error.value.status == 413
    model.ask_all([1] * 4)
    with pytest.raises(Refusal, match="4 rows wait") as error:
        model.ask_all([1] * 3)
    assert error.value.status == 503
    model.ask_all([1] * 2)
    model.finish()
    assert model.batcher.waiting == 0


def test_a_cancelled_request_leaves_the_queue():
    model = _Model(batching.Limits(max_batch_size=2, max_queued_rows=6))
    model.hold()
    large = model.ask_all([1] * 6)
    assert large[1].cancel()
    assert all(future.cancelled() for future in large)
    # Its rows no longer count, and none of them runs.
    stays = model.ask_all([2] * 6)
    model.finish()
    assert model.batches == [[99], *[[2, 2]] * 3]
    assert all(future.done() for future in stays)
    assert model.batcher.waiting == 0


def test_closing_ends_in_time():
    model = _Model(batching.Limits(max_batch_size=2))
    held = model.hold()
    waits = model.ask_all([1] * 4)
    model.batcher.close(seconds=0)  # The batch that runs does not end.
    for future in waits:
        with pytest.raises(Refusal, match="stopping"):
            future.result(timeout=0)
    model.may_run.set()
    assert held.result(timeout=60)["score"].tolist() == [99]
