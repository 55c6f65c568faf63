"""The training examples that benchmarks hold out to choose a learning rate."""

from benchmarks import small_tasks

SENTENCES = ("a b c d", "e f", "g h i", "j", "k l m", "n o")
PHRASES = ("b c", "a b", "f", "g h", "i", "k", "m", "d", "o n", "b d")


def _examples(texts):
    return [((f"{text} ",), "1") for text in texts]


def test_whole_texts_stand_in_no_other():
    texts = [*PHRASES, *SENTENCES]
    # The words of these two are not adjacent in any sentence.
    assert small_tasks.whole_texts(texts) == ["o n", "b d", *SENTENCES]


def test_parts_of_what_is_held_out_are_not_learned():
    everything = _examples([*SENTENCES, *PHRASES])
    learned, held_out = small_tasks.hold_out(
        small_tasks.TASKS["SST-2"], everything, everything
    )
    # Every fifth sentence, in their order.
    assert held_out == _examples(["a b c d", "n o"])
    kept = ["e f", "g h i", "j", "k l m", "f", "g h", "i", "k", "m"]
    assert learned == _examples([*kept, "o n", "b d"])


def test_of_other_tasks_it_is_every_tenth():
    rows = [((str(i),), "0") for i in range(25)]
    learned, held_out = small_tasks.hold_out(
        small_tasks.TASKS["spam"], rows, []
    )
    assert held_out == [rows[0], rows[10], rows[20]]
    assert len(learned) == 22
    assert not {*learned} & {*held_out}
