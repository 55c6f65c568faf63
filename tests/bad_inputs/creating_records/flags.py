"""Wrong vocabularies and flags together of create_pretraining_data.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.creating_records.inputs import file, vocab

CASES = {
    # ---- Vocabularies
    "vocab missing": matrix.Case(
        {"vocab_file": None},
        "Give --vocab_file (The vocabulary: a vocab.txt, a RoBERTa's vocab",
    ),
    "vocab not given a file": vocab(
        "none.txt", "There is no such file. Received:"
    ),
    "vocab folder": vocab("model", "This is a folder: give a file. Received:"),
    "vocab empty": vocab(
        "empty", "empty is not a BERT vocabulary: it is empty."
    ),
    "vocab empty string": matrix.Case(
        {"vocab_file": ""},
        "--vocab_file is empty. Is a variable of the shell not",
    ),
    "vocab dangling": vocab("dangling", "There is no such file. Received:"),
    "vocab fifo": vocab(
        "fifo", "This file is read twice, which a pipe or a device can't"
    ),
    "vocab is text": vocab(
        "a.txt", "a.txt is not a BERT vocabulary: it lacks the piece"
    ),
    "vocab is config": vocab(
        "model/bert_config.json",
        "model/merges.txt is missing: a vocabulary of byte pairs is",
    ),
    "vocab is merges alone": vocab(
        "vocabs/merges.txt",
        "vocabs/vocab.json is missing: a vocabulary of byte pairs is",
    ),
    "casing of byte pairs": matrix.Case(
        {
            "vocab_file": "{data}/vocabs/pairs/vocab.json",
            "do_lower_case": "false",
        },
        "--do_lower_case is not for a vocabulary of byte_pairs, whose files",
    ),
    "vocab is a BPE model": vocab(
        "vocabs/bpe.model", "Received: model_type=bpe"
    ),
    "vocab is no model": vocab(
        "vocabs/text.model", "vocabs/text.model is no model of sentencepiece"
    ),
    "white space in a symbol": vocab(
        "vocabs/space.symbols", "vocabs/space.symbols, line 6: a line of a"
    ),
    "a symbol twice": vocab(
        "vocabs/twice.symbols", "line 7: this symbol is already on line 6."
    ),
    "symbols without special pieces": vocab(
        "vocabs/words.symbols",
        "vocabs/words.symbols: a vocabulary of symbols must hold the special",
    ),
    "vocab is tokenizer": vocab(
        "tokenizer.json",
        "tokenizer.json lacks [CLS], which pre-training needs: add it as a",
    ),
    "vocab lfs": vocab(
        "lfs", "lfs is not a BERT vocabulary: it is a pointer of git-lfs,"
    ),
    "vocab binary": vocab(
        "model/bert_model.ckpt.data-00000-of-00001",
        "model/bert_model.ckpt.data-00000-of-00001, line 1: a",
    ),
    "vocab utf16": vocab(
        "vocabs/utf16", "vocabs/utf16 can't be read: it is UTF-16, not UTF-8."
    ),
    "vocab latin1": vocab(
        "vocabs/latin1",
        "vocabs/latin1, line 45: a vocabulary must be UTF-8 text.",
    ),
    "vocab twice": vocab(
        "vocabs/twice",
        "vocabs/twice, line 45: this piece is already on line 8.",
    ),
    "vocab hole": vocab(
        "vocabs/hole", "vocabs/hole, line 10: a vocabulary must not hold empty"
    ),
    "vocab without unk": vocab(
        "vocabs/no_unk", "vocabs/no_unk is not a BERT vocabulary: it lacks the"
    ),
    "vocab without mask": vocab(
        "vocabs/no_mask",
        "The vocabulary {data}/vocabs/no_mask lacks [MASK], which",
    ),
    "vocab without cls": vocab(
        "vocabs/no_cls",
        "The vocabulary {data}/vocabs/no_cls lacks [CLS], which",
    ),
    "vocab without sep": vocab(
        "vocabs/no_sep",
        "The vocabulary {data}/vocabs/no_sep lacks [SEP], which",
    ),
    "vocab specials only": vocab(
        "vocabs/specials",
        "All words of the text are [UNK]: its language, or its",
    ),
    "vocab cased": vocab(
        "vocabs/cased",
        "vocabs/cased is cased: lower-casing and accent stripping",
    ),
    "vocab uncased": matrix.Case(
        {"do_lower_case": "false"},
        "vocab.txt is uncased: none of its 31 pieces with letters",
    ),
    "vocab columns": vocab(
        "vocabs/columns",
        "vocabs/columns is not a BERT vocabulary: it lacks the",
    ),
    "vocab glob": vocab("vocab*.txt", "There is no such file. Received:"),
    # ---- Combinations
    "max_sequences_per_row=0": matrix.Case(
        {"pack": "true", "max_sequences_per_row": "0"},
        "`max_sequences_per_row` must be at least 1. Received:",
    ),
    "max_sequences_per_row=2**63": matrix.Case(
        {"pack": "true", "max_sequences_per_row": "9223372036854775808"},
        "--max_sequences_per_row must be a whole number, at most",
    ),
    "num_shards and size": matrix.Case(
        {"num_shards": "2", "shard_size_mb": "9"},
        "The size of a file follows from their number: give either",
    ),
    "num_shards of named": file(
        "{out}/x",
        "--num_shards goes with --output_dir: leave it out.",
        num_shards="2",
    ),
    "overwrite of folder": matrix.Case(
        {"overwrite": "true"},
        "--overwrite goes with --output_file: leave it out.",
    ),
    "whole word and span": matrix.Case(
        {"masking": "span", "do_whole_word_mask": "true"},
        "--do_whole_word_mask means --masking=whole_word: leave",
    ),
    "whole word and n-grams of pieces": matrix.Case(
        {"masking": "ngram", "do_whole_word_mask": "false"},
        "N-grams are of whole words: leave --do_whole_word_mask out.",
    ),
    "n-grams and span": matrix.Case(
        {"masking": "span", "ngram": "2"},
        "--ngram means --masking=ngram: leave one out. Received:",
    ),
    "random_next_sentence and sop": matrix.Case(
        {"objective": "sop", "random_next_sentence": "true"},
        "--random_next_sentence=true means --objective=nsp: leave",
    ),
    "random_next_sentence and none": matrix.Case(
        {"objective": "none", "random_next_sentence": "false"},
        "--random_next_sentence=false means --objective=sop: leave",
    ),
    "word_list without": matrix.Case(
        {"word_list": "{data}/words"},
        "--word_list goes with --do_whole_word_mask or",
    ),
    "segmenter without": matrix.Case(
        {"segmenter": "json:loads"},
        "--segmenter goes with --do_whole_word_mask or",
    ),
    "word_list and segmenter": matrix.Case(
        {
            "masking": "whole_word",
            "word_list": "{data}/words",
            "segmenter": "shlex:split",
        },
        "Give either --word_list or --segmenter. Received:",
    ),
    "word_list of symbols": matrix.Case(
        {
            "vocab_file": "{data}/vocabs/right.symbols",
            "masking": "whole_word",
            "word_list": "{data}/words",
        },
        "--word_list and --segmenter join word pieces only: leave them out.",
    ),
    "word_list missing": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/none"},
        "There is no such file. Received: word_list={data}/none",
    ),
    "word_list folder": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}"},
        "This is a folder: give a file. Received: word_list={data}",
    ),
    "word_list empty": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/empty"},
        "The word list {data}/empty holds no words: write one per",
    ),
    "word_list blank": matrix.Case(
        {"masking": "whole_word", "word_list": "{data}/blank"},
        "The word list {data}/blank holds no words: write one per",
    ),
    "word_list latin1": matrix.Case(
        {"masking": "span", "word_list": "{data}/latin1"},
        "The word list {data}/latin1 must be UTF-8 (invalid",
    ),
    "word_list fifo": matrix.Case(
        {"masking": "span", "word_list": "{data}/fifo"},
        "This file is read twice, which a pipe or a device can't",
    ),
    "segmenter no function": matrix.Case(
        {"masking": "span", "segmenter": "jieba"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter no module": matrix.Case(
        {"masking": "span", "segmenter": "no_such_module:cut"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter no such": matrix.Case(
        {"masking": "span", "segmenter": "json:no_such"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter not callable": matrix.Case(
        {"masking": "span", "segmenter": "json:__name__"},
        "The segmenter must be an importable module:function, such",
    ),
    "segmenter raises": matrix.Case(
        {"masking": "span", "segmenter": "json:loads"},
        "The segmenter json:loads must make a list of words of a",
    ),
    "segmenter returns None": matrix.Case(
        {"masking": "span", "segmenter": "gc:set_debug"},
        "The segmenter gc:set_debug must make a list of words of a",
    ),
    "segmenter returns numbers": matrix.Case(
        {"masking": "span", "segmenter": "builtins:len"},
        "The segmenter builtins:len must make a list of words of a",
    ),
    "segmenter returns bytes": matrix.Case(
        {"masking": "span", "segmenter": "os:fsencode"},
        "The segmenter os:fsencode must return strings. Received:",
    ),
    "segmenter dots": matrix.Case(
        {"masking": "span", "segmenter": ".:x"},
        "The segmenter must be an importable module:function, such",
    ),
    "runner without beam": matrix.Case(
        {"runner": "DirectRunner"},
        "--runner needs Apache Beam, in an environment of its own:",
    ),
    "runner and workers": matrix.Case(
        {"runner": "DirectRunner", "num_workers": "2"},
        "--num_workers goes without --runner: leave it out.",
    ),
    "beam_options alone": matrix.Case(
        {"beam_options": "--region=x"},
        "--beam_options goes with --runner: leave it out.",
    ),
    "beam options quote": matrix.Case(
        {"runner": "DirectRunner", "beam_options": "--region='x"},
        "--beam_options must be written as in a shell (No closing",
    ),
}
