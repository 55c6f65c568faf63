"""A SavedModel that writes a text for a text.

Shapes: B texts.
"""

import functools

from bert_tf import vocabularies
from bert_tf.errors import InputError
from bert_tf.exporting import inference, saved_model, serving_inputs
from bert_tf.seq2seq import beam_search, decoder, seq2seq_options
from bert_tf.text import detokenizer, text_graph

import tensorflow as tf


def make_search(
    vocabulary: vocabularies.Vocabulary,
    generation: seq2seq_options.Generation,
) -> beam_search.Search:
    """Returns the search for targets between the vocabulary's special tokens.

    As in records, targets of up to `max_target_length` tokens begin with [CLS]
    and end with [SEP], or what the vocabulary has there.
    """
    template = vocabulary.template
    if len(template.before) != 1 or len(template.after) != 1:
        raise InputError(
            "A target needs one token before it and one after it, and the "
            "texts of this vocabulary have others. "
            f"Received: kind={vocabulary.kind}"
        )
    return beam_search.Search(
        start=template.before[0],
        end=template.after[0],
        pad=vocabulary.special.pad.id,
        tokens=len(vocabulary.pieces),
        max_length=generation.max_target_length - 1,
        beams=generation.beam_size,
        alpha=generation.length_penalty,
    )


class _Seq2SeqModule(tf.Module):
    def __init__(
        self,
        model: decoder.Seq2Seq,
        vocabulary: vocabularies.Vocabulary,
        max_seq_length: int,
    ):
        super().__init__()
        self.tokenizer = text_graph.make_tokenizer(vocabulary)
        self.detokenizer = detokenizer.Detokenizer(vocabulary)
        served = inference.AsTrained(model)
        self.weights = served.variables

        def serve(text):
            (text,) = serving_inputs.shaped(text)
            tokens = self.tokenizer.tokenize(text)
            inputs = self.tokenizer.pack(tokens, None, max_seq_length, False)
            found = served(inputs)
            return {
                "target": self.detokenizer(found["target_ids"]),
                "score": found["score"],
            }

        function = functools.partial(tf.function, autograph=False)
        self.serve = function(serve, [serving_inputs.TEXTS])
        self.serve_text = self.serve
        # Makes the loaded model callable.
        self.__call__ = self.serve


def writer(
    model: decoder.Seq2Seq,
    vocabulary: vocabularies.Vocabulary,
    max_seq_length: int,
) -> saved_model.Export:
    """Returns an export of the model that takes raw text.

    The signature `serving_default` takes `text` (string [B]) and returns
    `target` (string [B]), the best text found, and `score` (float32 [B]), its
    log-probability divided by the length penalty. `serve_text` is the same.
    Sources longer than `max_seq_length` tokens are truncated. The model's
    `search` says how to search.
    """
    config, search = model.bert.config, model.search
    if search is None:
        raise InputError("The model needs a `search` to write texts with.")
    saved_model.check_fits(config, vocabulary, max_seq_length)
    module = _Seq2SeqModule(model, vocabulary, max_seq_length)
    return saved_model.of_module(
        *(module, "seq2seq", config, vocabulary),
        ("serve", "serve_text"),
        max_seq_length=max_seq_length,
        max_target_length=search.max_length + 1,
        beam_size=search.beams,
        length_penalty=search.alpha,
    )
