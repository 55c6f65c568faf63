"""Writes a question answerer as a SavedModel: raw text in, answer out.

    import tensorflow as tf
    import tensorflow_text  # Registers the tokenizer's op.
    model = tf.saved_model.load("/models/squad/1")
    model(tf.constant(["Who?"]), tf.constant(["It was Ada."]))["answer"]

Contexts of any length are read and answered as by run_squad.py: `windows` and
`answers` in the graph.

Shapes: B questions, W windows of all questions, S sequence length, K starts,
and ends, that are tried in a window.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bert_tf import heads, modeling, vocabularies
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.tasks.squad import squad_options
from bert_tf.text import graph_offsets, graph_rows, graph_windows

import tensorflow as tf

_TEXTS = tf.TensorSpec([None], tf.string)  # [B]
_IDS = tf.TensorSpec([None, None], tf.int32)  # [B, S]
# Below all scores, in float32 as well.
NONE = -1e38


class _Windows(NamedTuple):
    """Where contexts are cut, in tokens; each [W] int64."""

    rows: tf.Tensor  # the number of the question
    starts: tf.Tensor
    lengths: tf.Tensor
    heads: tf.Tensor  # where the context starts in the window
    offsets: tf.Tensor  # of the starts, among the tokens of all contexts


def _windows(
    queries: tf.RaggedTensor,
    pieces: tf.RaggedTensor,
    layout: squad_options.Layout,
    template: vocabularies.Template,
) -> _Windows:
    """Cuts contexts [B, (tokens)] as squad_windows.Cutter does."""
    number = pieces.row_lengths()  # [B]
    room = layout.max_seq_length - template.special(2)
    sizes = room - queries.row_lengths()
    steps = tf.minimum(sizes, layout.doc_stride)
    counts = 1 + (tf.maximum(number - sizes, 0) + steps - 1) // steps
    rows = graph_rows.repeats(counts)  # [W]
    starts = tf.ragged.range(counts).flat_values * tf.gather(steps, rows)
    return _Windows(
        rows,
        starts,
        tf.minimum(tf.gather(number, rows) - starts, tf.gather(sizes, rows)),
        template.second(tf.gather(queries.row_lengths(), rows)),
        tf.gather(pieces.row_starts(), rows) + starts,
    )


def _has_most_context(
    windows: _Windows, column: tf.Tensor, number: tf.Tensor
) -> tf.Tensor:
    """As squad_windows.Windows.has_most_context, [W, S]; else False.

    `column` [1, S] counts from 0; all contexts have `number` tokens.
    """
    place = column - windows.heads[:, tf.newaxis]  # [W, S]
    lengths = windows.lengths[:, tf.newaxis]
    is_context = (place >= 0) & (place < lengths)
    score = tf.cast(tf.minimum(place, lengths - 1 - place), tf.float64)
    score += 0.01 * tf.cast(lengths, tf.float64)
    contexts = tf.where(is_context)  # [tokens in windows, 2]
    score = tf.gather_nd(score, contexts)  # [tokens in windows]
    window, _ = tf.unstack(contexts, axis=1)
    token = windows.offsets[:, tf.newaxis] + place
    token = tf.gather_nd(token, contexts)
    best = tf.math.unsorted_segment_max(score, token, number)
    is_best = score == tf.gather(best, token)
    owner = tf.math.unsorted_segment_min(
        tf.where(is_best, window, tf.size(lengths, tf.int64)), token, number
    )
    return tf.tensor_scatter_nd_update(
        tf.zeros_like(is_context),
        contexts,
        tf.gather(owner, token) == window,
    )


class Rows(NamedTuple):
    """Windows and the inputs of the model for them."""

    windows: _Windows
    inputs: tuple[tf.Tensor, ...]  # ids, mask and segments, int32 [W, S] each


class Best(NamedTuple):
    """The first of the highest scores of each question, each [B]."""

    score: tf.Tensor
    window: tf.Tensor
    column: tf.Tensor


class Found(NamedTuple):
    """The best answers of all questions, in float64; positions in windows."""

    best: Best
    first: tf.Tensor  # [B] int64
    last: tf.Tensor  # [B] int64
    null: tf.Tensor  # [B], the score that there is no answer


def first_best(scores: tf.Tensor, rows: tf.Tensor, size: tf.Tensor) -> Best:
    """Finds the best of [W, x] scores for each of `size` questions."""
    highest = tf.reduce_max(scores, axis=-1)  # [W]
    best = tf.math.unsorted_segment_max(highest, rows, size)  # [B]
    count = tf.size(rows, tf.int64)
    is_best = highest == tf.gather(best, rows)
    window = tf.math.unsorted_segment_min(
        tf.where(is_best, tf.range(count), count), rows, size
    )
    column = tf.gather(tf.argmax(scores, axis=-1), window)
    return Best(best, window, column)


class SpanModule(tf.Module):
    """Questions and contexts -> answers, by the logits of starts and ends."""

    def __init__(
        self,
        model: Any,
        config: modeling.BertConfig,
        vocabulary: vocabularies.Vocabulary,
        layout: squad_options.Layout,
        search: squad_options.Search,
        threshold: float | None,
    ):
        super().__init__()
        self.tokenizer = graph_offsets.make_tokenizer(vocabulary)
        served = inference.make_inference_model(model)
        self.weights = served.variables
        self._hidden_size = config.hidden_size
        self._layout = layout
        self._vocabulary = vocabulary
        self._search = search

        def read(inputs):  # ids, mask, segments, each [rows, S]
            names = ("input_ids", "input_mask", "segment_ids")
            return served(dict(zip(names, inputs, strict=True)))

        def serve(question, context):
            question, context = serving_inputs.shaped(question, context)
            question, context = serving_inputs.checked(
                tf.size(question) == tf.size(context),
                "context must have as many texts as question ([B]).",
                {"question": question, "context": context},
            ).values()
            # Invalid bytes are left out, so that characters can be counted.
            context = tf.strings.unicode_transcode(
                context, "UTF-8", "UTF-8", errors="ignore"
            )
            start, end, score, null = self._answer(question, context, read)
            is_null = score == NONE
            # No token has a score: only no answer has one.
            score = tf.where(is_null, null, score)
            if threshold is not None:
                is_null |= self.odds(null, score) > threshold
            start, end = (tf.where(is_null, 0, x) for x in (start, end))
            return {
                "answer": tf.strings.substr(
                    context, start, end - start, unit="UTF8_CHAR"
                ),
                "start": start,
                "end": end,
                "score": tf.cast(score, tf.float32),
                "null_score": tf.cast(null, tf.float32),
            }

        def serve_ids(input_ids, input_mask, segment_ids):
            inputs = serving_inputs.as_batch(
                input_ids, input_mask, segment_ids, config
            )
            return self.named(read(inputs.values()))

        function = functools.partial(tf.function, autograph=False)
        self.serve = function(serve, [_TEXTS, _TEXTS])
        self.serve_ids = function(serve_ids, [_IDS, _IDS, _IDS])
        # What the loaded model does when it is called.
        self.__call__ = self.serve

    def odds(self, null: tf.Tensor, score: tf.Tensor) -> tf.Tensor:
        """Returns how much better no answer is than the best one."""
        return null - score

    def named(self, found: Any) -> dict[str, tf.Tensor]:
        """Returns the model's outputs by name."""
        return {"start_logits": found[0], "end_logits": found[1]}

    def search(
        self, rows: Rows, may_start: tf.Tensor, read: Callable, size: tf.Tensor
    ) -> Found:
        """Reads windows and finds the best of each of `size` questions."""

        def stacked(inputs: Sequence[tf.Tensor]) -> tf.Tensor:
            return tf.stack(read(inputs), -1)

        logits = graph_windows.in_parts(
            stacked, rows.inputs, tf.TensorSpec([None, None, 2], tf.float32)
        )
        is_used = rows.inputs[1][..., tf.newaxis] > 0
        logits = tf.where(is_used, logits, NONE)  # [W, S, 2]
        null = tf.cast(logits[:, self._vocabulary.template.pooled], tf.float64)
        null = tf.reduce_sum(null, -1)  # [W]
        null = tf.math.unsorted_segment_min(null, rows.windows.rows, size)
        best, first, last = self._best(rows.windows, logits, may_start, size)
        return Found(best, first, last, null)

    def _answer(self, questions, contexts, read):
        """Returns first and last character, score and null score, all [B]."""
        size = tf.size(questions, tf.int64)
        queries = self.tokenizer.tokenize(questions)
        queries = queries[:, : self._layout.max_query_length]
        pieces = self.tokenizer.tokenize_with_offsets(contexts)
        template = self._vocabulary.template
        windows = _windows(queries, pieces.ids, self._layout, template)
        rows = Rows(windows, self._inputs(windows, queries, pieces.ids))
        length = tf.shape(rows.inputs[0], tf.int64)[1]
        column = tf.range(length)[tf.newaxis]  # [1, S]
        may_start = _has_most_context(
            windows, column, tf.size(pieces.starts, tf.int64)
        )
        best, first, last, null = self.search(rows, may_start, read, size)
        shift = tf.gather(windows.offsets - windows.heads, best.window)  # [B]
        # Without any token, any character will do.
        start = tf.gather(
            tf.concat([pieces.starts, [0]], 0),
            tf.where(best.score > NONE, first + shift, 0),
        )
        end = tf.gather(
            tf.concat([pieces.ends, [0]], 0),
            tf.where(best.score > NONE, last + shift, 0),
        )
        return start, end, best.score, null

    def _inputs(self, windows, queries, pieces):
        """Lays out windows: ids, mask and segments, int32 [W, S] each."""
        template = self._vocabulary.template
        front, between = len(template.before), len(template.between)
        start = windows.heads[:, tf.newaxis]
        behind = start + windows.lengths[:, tf.newaxis]  # [W, 1]
        used = behind + len(template.after)
        shortest = [template.special(2)]
        longest = tf.reduce_max(tf.concat([shortest, used[:, 0]], 0))
        column = tf.range(longest)[tf.newaxis]  # [1, S]

        def take(ragged, offsets):  # [W] -> [W, S]
            # One more, so that it is not empty without tokens.
            values = tf.concat([ragged.flat_values, [0]], 0)
            place = offsets[:, tf.newaxis] + column
            last = tf.size(values, tf.int64) - 1
            return tf.gather(values, tf.clip_by_value(place, 0, last))

        query_starts = tf.gather(queries.row_starts(), windows.rows)
        ids = tf.where(
            column < start,
            take(queries, query_starts - front),
            take(pieces, windows.offsets - windows.heads),
        )
        ids = graph_rows.put(ids, template.before, column)
        ids = graph_rows.put(ids, template.between, column - start + between)
        ids = graph_rows.put(ids, template.after, column - behind)
        is_used = column < used
        number_1, number_2 = template.segments
        return (
            tf.where(is_used, ids, self._vocabulary.special.pad.id),
            tf.cast(is_used, tf.int32),
            tf.where(is_used & (column >= start), number_2, number_1),
        )

    def _best(self, windows, logits, may_start, size):
        """Finds the best of each question, its start and end: each [B]."""
        logits = tf.transpose(tf.cast(logits, tf.float64), [2, 0, 1])
        k = tf.minimum(self._search.n_best_size, tf.shape(logits)[2])
        values, places = tf.math.top_k(logits, k)  # [2, W, K]
        places = tf.cast(places, tf.int64)
        start, end = places[0][:, :, tf.newaxis], places[1][:, tf.newaxis]
        behind = windows.heads + windows.lengths  # [W]
        fits = tf.gather(may_start, places[0], batch_dims=1)[..., tf.newaxis]
        fits &= end < behind[:, tf.newaxis, tf.newaxis]
        fits &= self._search.allows(start, end)  # [W, K, K]
        pairs = values[0][:, :, tf.newaxis] + values[1][:, tf.newaxis]
        pairs = tf.where(fits, pairs, NONE)
        shape = [tf.shape(pairs)[0], k * k]
        pair = first_best(tf.reshape(pairs, shape), windows.rows, size)
        # Where no pair fits: the best single token.
        singles = tf.where(may_start, logits[0] + logits[1], NONE)
        single = first_best(singles, windows.rows, size)
        has_pair = pair.score > NONE
        own = tf.gather(places, pair.window, axis=1)  # [2, B, K]
        k = tf.cast(k, tf.int64)
        first = tf.gather(own[0], pair.column // k, batch_dims=1)
        last = tf.gather(own[1], pair.column % k, batch_dims=1)
        best = Best(
            *(
                tf.where(has_pair, x, y)
                for x, y in zip(pair, single, strict=True)
            )
        )
        return (
            best,
            tf.where(has_pair, first, best.column),
            tf.where(has_pair, last, best.column),
        )


def span_finder(
    model: heads.BertSpanFinder,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    layout: squad_options.Layout,
    search: squad_options.Search,
    threshold: float | None,
) -> saved_model.Export:
    """Returns the model as one that takes raw text.

    The signature `serving_default` takes `question` and `context` (string [B])
    and returns `answer` (string [B]), `start` and `end` (int32 [B], in
    characters of the context), `score` and `null_score` (float32 [B]). No
    answer is "", from 0 to 0; it is the only one for a context without tokens,
    whose `score` is the `null_score`. `serve_ids` takes `input_ids`,
    `input_mask` and `segment_ids` (int32 [B, S]) and returns `start_logits` and
    `end_logits`.

    Contexts are cut as in training. The answer is "" where the null score
    exceeds the score by more than `threshold`, never if that is None. Arguments
    that do not fit raise InputError.
    """
    return export(
        SpanModule, "span", model, config, vocabulary, layout, search, threshold
    )


def export(
    module_class: type[SpanModule],
    head: str,
    model: Any,
    config: modeling.BertConfig,
    vocabulary: vocabularies.Vocabulary,
    layout: squad_options.Layout,
    search: squad_options.Search,
    threshold: float | None,
) -> saved_model.Export:
    """Returns an export as `span_finder` does, for a head with a module."""
    saved_model.check_fits(config, vocabulary, layout.max_seq_length)
    config.check_reads_pairs(vocabulary.template.segments)
    layout.check_room(vocabulary.template)
    module = module_class(model, config, vocabulary, layout, search, threshold)
    return saved_model.of_module(
        module,
        head,
        config,
        vocabulary,
        ("serve", "serve_ids"),
        **dataclasses.asdict(layout),
        **dataclasses.asdict(search),
        null_score_diff_threshold=threshold,
    )
