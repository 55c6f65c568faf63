"""BERT with a head for each kind of task; shapes as in modeling.py.

Variables of the released checkpoints have their released names; fine-tuned
models have the names from the original's scripts. Heads that the
original does not have use the same scheme, `cls/...`, so that a checkpoint's
names identify its head.

As in the original, every model has the pooler; a head over the sequence output
does not use it.
"""

from typing import Any

from bert_tf import compiled, modeling
from bert_tf.encoders import layers, model_inputs, ops
from bert_tf.errors import InputError

import keras
import tensorflow as tf

# The logit of a padded choice.
_NO_CHOICE = -1e9
# The logit of a padded word, within the range of float16. exp(-10000) is 0.
_NO_WORD = -1e4
_TILE = 128


class _Transform(keras.layers.Layer):
    """Dense, activation and layer norm before the vocabulary product."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        size = config.embedding_size
        self.activation = ops.ACTIVATIONS[
            config.transform_act or config.hidden_act
        ]
        self.dense = layers.Dense(
            config, config.hidden_size, size, name="dense"
        )
        epsilon = config.transform_layer_norm_eps or config.layer_norm_eps
        self.norm = layers.LayerNorm(size, epsilon, name="LayerNorm")

    def build(self, input_shape=None):
        self.dense.build()
        self.norm.build()

    def call(self, x):  # [..., D]
        return self.norm(self.activation(self.dense(x)))  # [..., E]


class MaskedLMHead(keras.layers.Layer):
    """Predicts words with the word embeddings as output weights."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocab_size = config.vocab_size
        self.has_bias = not config.has_plain_outputs
        self.transform = (
            _Transform(config, name="transform")
            if config.has_transform
            else modeling.Identity(name="transform")
        )

    def build(self, input_shape=None):
        self.transform.build()
        self.output_bias = self.add_weight(
            name="output_bias",
            shape=(self.vocab_size,),
            initializer="zeros",
            trainable=self.has_bias,
        )

    def call(self, x, words):  # [B, P, D], [V, E]
        """Returns logits [B, P, V].

        A compiled step rounds V up to a multiple of 128, the tile size of TPUs
        and GPUs; the extra logits belong to no word.
        """
        x = self.transform(x)
        rows = tf.reshape(x, [-1, x.shape[-1]])  # [B * P, E]
        bias = tf.convert_to_tensor(self.output_bias)
        more = -self.vocab_size % _TILE if compiled.is_compiled() else 0
        if more:
            words = tf.pad(words, [[0, more], [0, 0]])
            bias = tf.pad(bias, [[0, more]], constant_values=_NO_WORD)
        logits = tf.matmul(rows, words, transpose_b=True)
        logits = ops.add_bias(logits, bias)
        shape = tf.concat([tf.shape(x)[:2], [self.vocab_size + more]], axis=0)
        return tf.reshape(logits, shape)


class OutputBias(keras.layers.Layer):
    """Predicts words as `MaskedLMHead`, without a transformation."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.vocab_size = config.vocab_size

    def build(self, input_shape=None):
        self.output_bias = self.add_weight(
            name="output_bias", shape=(self.vocab_size,), initializer="zeros"
        )

    def call(self, x, words):  # [B, P, D], [V, D]
        """Returns logits [B, P, V]."""
        return ops.affine(x, tf.transpose(words), self.output_bias)


def _check_labels(number: int) -> None:
    if number < 1:
        raise InputError(
            "A classifier needs at least one label. "
            f"Received: num_labels={number}"
        )


class LinearHead(keras.layers.Layer):
    """`x @ output_weights^T + output_bias`, the original's last layer."""

    def __init__(
        self, config: modeling.BertConfig, num_outputs: int, **kwargs: Any
    ):
        super().__init__(**kwargs)
        _check_labels(num_outputs)
        self.shape = (num_outputs, config.hidden_size)
        self.initializer = layers.initializer(config)

    def build(self, input_shape=None):
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=self.shape,
            initializer=self.initializer,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=self.shape[:1], initializer="zeros"
        )

    def call(self, x):  # [..., D]
        kernel = tf.transpose(self.output_weights)
        return ops.affine(x, kernel, self.output_bias)  # [..., C]


class PretrainingHeads(keras.layers.Layer):
    """The two heads of pre-training, under the released name `cls`."""

    def __init__(self, config: modeling.BertConfig, **kwargs: Any):
        super().__init__(**kwargs)
        self.predictions = MaskedLMHead(config, name="predictions")
        # Class 0: the second segment follows the first. Class 1: it does not.
        self.seq_relationship = LinearHead(config, 2, name="seq_relationship")

    def build(self, input_shape=None):
        self.predictions.build()
        self.seq_relationship.build()

    def call(self, x, pooled, words):  # [B, P, D], [..., D], [V, E]
        return self.predictions(x, words), self.seq_relationship(pooled)


class Model(keras.Model):
    """A head over `bert`.

    Attributes:
        reads_all: Whether it reads every token, not only some of each sequence.
        reads_pooled: Whether it reads the pooled output.
        reads_sequence: Whether it reads vectors of tokens.
        reads_choices: Whether some of its rows may be padding, which stands
            for no choice.
        predicts_next: Whether it predicts the token after each position.
        has_estimates: Whether the formulas for FLOP/s and memory count all of
            its layers.
        generator: The model that produces inputs of `bert` in pre-training, or
            None.
    """

    reads_all = False
    reads_pooled = True
    reads_sequence = False
    reads_choices = False
    predicts_next = False
    has_estimates = True
    generator: modeling.Bert | None = None

    def __init__(self, bert: modeling.Bert, **kwargs: Any):
        super().__init__(**{"dtype": bert.dtype_policy} | kwargs)
        bert.config.check_head(self)
        self._drawn = model_inputs.DrawnSeeds()
        self.bert = bert

    def _own_policy(self):
        return layers.of_policy(self.dtype_policy)

    @property
    def trained_variables(self) -> list[keras.Variable]:
        """Variables that affect its outputs: all, or all but the pooler's.

        The others have no gradient, and the original's optimizer skips them:
        they do not decay, and have no moments.
        """
        if self.reads_pooled:
            return self.trainable_variables
        unread = {variable.path for variable in self.bert.pooler.variables}
        return [v for v in self.trainable_variables if v.path not in unread]


class BertPretrainer(Model):
    """BERT with masked words and next sentences (paper, section 3.1)."""

    reads_sequence = True

    def __init__(
        self, bert: modeling.Bert, name: str = "pretrainer", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        with self._own_policy():
            self.cls = PretrainingHeads(bert.config, name="cls")
        self.cls.build()
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits of words [B, P, V] and of sentences [B, 2].

        The inputs are the inputs of `Bert`, and int32 `masked_lm_positions`
        [B, P]. If rows are packed with K sequences, they also have
        `cls_positions` [B, K], and there are logits for each sequence, [B, K,
        2].
        """
        inputs = model_inputs.standard(inputs, needs=("masked_lm_positions",))
        dropout_seed = self._drawn.unless(dropout_seed, training)
        masked = inputs["masked_lm_positions"]
        firsts = inputs.get("cls_positions", _first(masked))  # [B, K]
        positions = tf.concat([firsts, masked], axis=1)  # [B, K + P]
        outputs = self.bert(inputs, dropout_seed, positions)
        pooled, K = outputs.pooled, firsts.shape[1]
        if "cls_positions" in inputs:
            pooled = self.bert.pooler(outputs.sequence[:, :K])  # [B, K, D]
        words = self.bert.embeddings.word_embeddings
        logits, next_sentence = self.cls(outputs.sequence[:, K:], pooled, words)
        return tf.cast(logits, tf.float32), tf.cast(next_sentence, tf.float32)


def _first(ids: tf.Tensor) -> tf.Tensor:
    """Returns the position of [CLS] in each row of `ids`: zeros, [B, 1]."""
    return tf.zeros([tf.shape(ids)[0], 1], tf.int32)


class BertMaskedLM(Model):
    """BERT with the masked-word head of pre-training only."""

    reads_pooled = False
    reads_sequence = True

    def __init__(
        self, bert: modeling.Bert, name: str = "masked_lm", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        with self._own_policy():
            self.predictions = MaskedLMHead(bert.config, name="predictions")
        _build(self.predictions)
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, P, V]; arguments as in BertPretrainer."""
        inputs = model_inputs.standard(inputs, needs=("masked_lm_positions",))
        dropout_seed = self._drawn.unless(dropout_seed, training)
        masked = inputs["masked_lm_positions"]
        x = self.bert(inputs, dropout_seed, masked).sequence  # [B, P, D]
        logits = self.predictions(x, self.bert.embeddings.word_embeddings)
        return tf.cast(logits, tf.float32)


def next_piece_head(bert: modeling.Bert, scope: str = "cls") -> MaskedLMHead:
    """Returns a head that predicts the token after each position: [B, S, V].

    It is the masked-word head, read at other positions and named differently: a
    checkpoint's names identify which of the two it has.
    """
    config = bert.config
    if config.pretraining_head != "next_piece":
        raise InputError(
            "The next piece is predicted by encoders that read from left to "
            "right; this one has seen it. Give a config with model_type="
            f"left_to_right. Received: model_type={config.model_type}"
        )
    with layers.of_policy(bert.dtype_policy):
        head = MaskedLMHead(config, name="next_piece")
    with keras.name_scope(scope):
        head.build()
    return head


class BertNextPiece(Model):
    """A left-to-right encoder that predicts the token after each position."""

    reads_all = True
    reads_pooled = False
    reads_sequence = True
    predicts_next = True

    def __init__(
        self, bert: modeling.Bert, name: str = "next_piece", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        self.next_piece = next_piece_head(bert)
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, S, V]; arguments as in `Bert`.

        The logits at a position are for the token after it.
        """
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        x = self.bert(inputs, dropout_seed).sequence  # [B, S, D]
        logits = self.next_piece(x, self.bert.embeddings.word_embeddings)
        return tf.cast(logits, tf.float32)


class BertNextSentence(Model):
    """BERT with the next-sentence head of pre-training only."""

    def __init__(
        self, bert: modeling.Bert, name: str = "next_sentence", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        with self._own_policy():
            self.seq_relationship = LinearHead(
                bert.config, 2, name="seq_relationship"
            )
        _build(self.seq_relationship)
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, 2]; arguments as in `Bert`."""
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        first = _first(inputs["input_ids"])
        pooled = self.bert(inputs, dropout_seed, first).pooled  # [B, D]
        return tf.cast(self.seq_relationship(pooled), tf.float32)


def _build(head: keras.layers.Layer) -> None:
    """Creates the variables of a head under the released prefix `cls`."""
    with keras.name_scope("cls"):
        head.build()


class BertClassifier(Model):
    """BERT with one linear layer over the pooled output.

    With one class it is a regression: the logit is the score.
    """

    def __init__(
        self,
        bert: modeling.Bert,
        num_labels: int,
        name: str = "classifier",
        **kwargs: Any,
    ):
        super().__init__(bert, name=name, **kwargs)
        _check_labels(num_labels)
        # Unlike the original, which always drops 0.1, this follows the config,
        # because a config without dropout should have none. It is 0.1 in all
        # released configs.
        self.rate = bert.config.head_dropout_prob
        self.num_labels = num_labels
        # Created outside any layer's scope: the original's names have no
        # prefix.
        shape = (num_labels, bert.config.hidden_size)
        self.output_weights = keras.Variable(
            layers.initializer(bert.config)(shape),
            dtype=self.variable_dtype,
            name="output_weights",
        )
        self.output_bias = keras.Variable(
            tf.zeros([num_labels]),
            trainable=not bert.config.has_plain_outputs,
            dtype=self.variable_dtype,
            name="output_bias",
        )
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, C]; arguments as in `Bert`."""
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 2)
        first = _first(inputs["input_ids"])
        pooled = self.bert(inputs, seeds[0], first).pooled  # [B, D]
        pooled = ops.dropout(pooled, self.rate, seeds[1])
        logits = tf.matmul(pooled, self.output_weights, transpose_b=True)
        return tf.cast(tf.nn.bias_add(logits, self.output_bias), tf.float32)


class BertTagger(Model):
    """BERT with a label for each token (paper, section 5.3)."""

    reads_all = True
    reads_pooled = False
    reads_sequence = True

    def __init__(
        self,
        bert: modeling.Bert,
        num_labels: int,
        name: str = "tagger",
        **kwargs: Any,
    ):
        super().__init__(bert, name=name, **kwargs)
        self.rate = bert.config.head_dropout_prob
        with self._own_policy():
            self.tagging = LinearHead(bert.config, num_labels, name="tagging")
        self.num_labels = num_labels
        _build(self.tagging)
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, S, C]; arguments as in `Bert`."""
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 2)
        x = self.bert(inputs, seeds[0]).sequence  # [B, S, D]
        x = ops.dropout(x, self.rate, seeds[1])
        return tf.cast(self.tagging(x), tf.float32)


class BertSpanFinder(Model):
    """BERT that predicts start and end of the answer (paper, section 4.2)."""

    reads_all = True
    reads_pooled = False
    reads_sequence = True

    def __init__(
        self, bert: modeling.Bert, name: str = "span_finder", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        with self._own_policy():
            self.squad = LinearHead(bert.config, 2, name="squad")
        _build(self.squad)
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits of starts and of ends, both [B, S].

        As in the original, there is no dropout between encoder and head.
        Arguments are as in `Bert`.
        """
        inputs = model_inputs.standard(inputs)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        x = self.bert(inputs, dropout_seed).sequence  # [B, S, D]
        logits = tf.cast(self.squad(x), tf.float32)  # [B, S, 2]
        return logits[..., 0], logits[..., 1]


class BertMultipleChoice(Model):
    """BERT with a score for each of K continuations (paper, section 4.4)."""

    reads_choices = True

    def __init__(
        self, bert: modeling.Bert, name: str = "multiple_choice", **kwargs: Any
    ):
        super().__init__(bert, name=name, **kwargs)
        self.rate = bert.config.head_dropout_prob
        with self._own_policy():
            self.multiple_choice = LinearHead(
                bert.config, 1, name="multiple_choice"
            )
        _build(self.multiple_choice)
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        """Returns float32 logits [B, K] for inputs of `Bert`, each [B, K, S].

        Problems with fewer than K choices are padded with empty sequences.
        Their logit is so low that softmax gives 0.
        """
        inputs = model_inputs.standard(inputs, rank=3)
        dropout_seed = self._drawn.unless(dropout_seed, training)
        seeds = ops.split_seed(dropout_seed, 2)
        shape = tf.shape(inputs["input_ids"])
        rows = {
            name: tf.reshape(x, [-1, shape[2], *x.shape[3:]])
            if name == "inputs_embeds"
            else tf.reshape(x, [-1, shape[2]])
            for name, x in inputs.items()
            if name in model_inputs.PER_TOKEN
        }
        first = _first(rows["input_ids"])
        pooled = self.bert(rows, seeds[0], first).pooled  # [B * K, D]
        pooled = ops.dropout(pooled, self.rate, seeds[1])
        scores = self.multiple_choice(pooled)  # [B * K, 1]
        logits = tf.cast(tf.reshape(scores, shape[:2]), tf.float32)
        is_choice = tf.reduce_any(inputs["input_mask"] != 0, axis=-1)
        return tf.where(is_choice, logits, _NO_CHOICE)
