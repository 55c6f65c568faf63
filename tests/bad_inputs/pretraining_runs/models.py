"""Wrong configs, vocabularies and checkpoints of run_pretraining.py."""

from tests.bad_inputs.matrix import Case
from tests.bad_inputs.pretraining_runs.inputs import (
    BY_MANIFEST,
    CAN_NOT,
    RANDOM,
)

_CONFIGS = {
    f"config {name}": Case(
        {**RANDOM, "bert_config_file": f"{{data}}/configs/{file}"}, line
    )
    for name, file, line in (
        ("missing", "none.json", "There is no such file. Received: bert_conf"),
        ("a folder", "", "This is a folder: give a file. Received: bert_conf"),
        ("empty", "empty.json", "is not JSON: it is empty. Give the bert_con"),
        ("text", "text.json", "is not JSON: Expecting value: line 1 column 1"),
        ("a list", "list.json", "must hold one JSON object, the config of a"),
        ("binary", "binary.json", "is not JSON: "),
        ("cut", "cut.json", "is not JSON: Unterminated string"),
        ("nested", "nested.json", "is not JSON: maximum recursion depth exce"),
        ("git-lfs", "lfs.json", "is not JSON: it is a pointer of git-lfs"),
        ("with a key", "unknown.json", "unknown keys: colour. What is unknow"),
        ("misspelt", "misspelt.json", "hiden_size (did you mean hidden_size?"),
        ("of XLNet", "xlnet.json", "This is a xlnet model, not BERT"),
        ("of a decoder", "decoder.json", "`is_decoder` must be False."),
        ("of other positions", "relative.json", "must be 'absolute'. Receive"),
        ("without size", "nosize.json", "The BERT config has no `vocab_size`"),
        ("of text", "text_size.json", "`hidden_size` must be a positive inte"),
        ("of 0 layers", "layers.json", "`num_hidden_layers` must be a positi"),
        ("of 3 heads", "heads.json", "hidden_size=8, num_attention_heads=3"),
        ("of nan", "nan.json", "Received: hidden_dropout_prob=nan"),
        ("of no function", "act.json", "Received: hidden_act='gelo'"),
        (
            "of terabytes",
            "wide_huge.json",
            "than this machine has free. Is the config the right one? Receive",
        ),
        (
            "of a billion layers",
            "deep_huge.json",
            "Received: hidden_size=8, num_hidden_layers=1000000000",
        ),
        (
            "of no generator",
            "no_generator.json",
            "There is no generator of these sizes: change `generator_hidden_s",
        ),
        (
            "of a generator of nan",
            "generator_of_nan.json",
            "`generator_layers` must be a positive number, a share of the mod",
        ),
        (
            "of a generator's size for its share",
            "generator_of_64.json",
            "`generator_hidden_size` must be a positive number, a share of the",
        ),
        (
            "of too few positions",
            "positions.json",
            "Received: max_seq_length=16, max_position_embeddings=8",
        ),
        (
            "of a smaller vocabulary",
            "small.json",
            "and the model has room for 0 to 19. Use the bert_config.json that",
        ),
    )
} | {
    "config not given": Case(
        RANDOM, "The model's architecture is not known: give --bert_config_f"
    ),
    "config of an unset variable": Case(
        {"bert_config_file": ""}, "--bert_config_file is empty. Is a variable"
    ),
    "config of another checkpoint": Case(
        {"bert_config_file": "{data}/configs/deep.json"},
        "deep.json is not the config of {data}/model/bert_model.ckpt: "
        "num_hidden_layers is 3 there and 2 in the checkpoint's config. Leave",
    ),
}

_VOCABULARIES = {
    f"vocabulary {name}": Case(
        {
            "init_checkpoint": None,
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": f"{{data}}/vocabs/{file}",
        },
        line,
    )
    for name, file, line in (
        ("missing", "none.txt", "There is no such file. Received: vocab_file="),
        ("a folder", "", "This is a folder: give a file. Received: vocab_file"),
        ("empty", "empty.txt", "is not a BERT vocabulary: it is empty."),
        (
            "of 100 pieces",
            "100.txt",
            "100.txt does not belong to this BERT config: it has 100 pieces",
        ),
        ("without [UNK]", "unk.txt", "it lacks the piece '[UNK]', which sta"),
        ("latin-1", "latin.txt", "must be UTF-8 text. Received: byte=0xe9"),
        ("UTF-16", "utf16.txt", "utf16.txt can't be read: it is UTF-16, not"),
        ("binary", "binary.txt", "binary.txt, line 2: a vocabulary must be U"),
        ("git-lfs", "lfs.txt", "vocabulary: it is a pointer of git-lfs"),
        ("with a piece twice", "twice.txt", "this piece is already on line 6"),
        ("with a hole", "line.txt", "line 10: a vocabulary must not hold emp"),
        ("JSON", "vocab.json", "vocabs/merges.txt is missing: a vocabulary of"),
    )
} | {
    "vocabulary of another checkpoint": Case(
        {"vocab_file": "{data}/vocabs/swapped.txt"},
        "swapped.txt is not the vocabulary of {data}/model/bert_model.ckpt: "
        "line 43 is '##ing', and the checkpoint's is '##s'",
    ),
    "vocabulary of other records": Case(
        {**BY_MANIFEST, "input_file": "{data}/m_good/*.tfrecord"},
        "The records were not made with the vocabulary {data}/model/vocab.txt",
    ),
    "vocabulary of an unset variable": Case(
        {"vocab_file": ""}, "--vocab_file is empty. Is a variable of the she"
    ),
}

_CHECKPOINTS = {
    f"checkpoint {name}": Case(
        {"vocab_file": None, "init_checkpoint": f"{{data}}/models/{path}"}, line
    )
    for name, path, line in (
        ("missing", "none", "There is no checkpoint {data}/models/none: "),
        ("of index only", "index_only", "has an index but no data: "),
        ("of data only", "data_only", "is there: copy its index, too."),
        ("cut in the index", "cut_index", CAN_NOT),
        ("cut in the data", "cut_data", CAN_NOT),
        ("corrupt in the index", "flipped_index", CAN_NOT),
        ("corrupt in the data", "flipped_data", "Checksum does not match: st"),
        ("of an empty index", "empty_index", "index can't be read: it is emp"),
        ("git-lfs in the index", "lfs_index", "it is a pointer of git-lfs"),
        ("git-lfs in the data", "lfs_data", "it is a pointer of git-lfs"),
        ("beside another", "two", "holds several checkpoints. Name one of"),
        ("SavedModel", "saved_model", "is a SavedModel, which can be served"),
        ("of ALBERT", "albert", "is no BERT: by its names it is ALBERT."),
        ("of TensorFlow 2", "tf2", "it is of TensorFlow 2's tf.train.Checkpo"),
        ("of other names", "strangers", "not those of the config beside them"),
        ("of another config", "config_of_other", "bert/encoder/layer_2/atten"),
        ("of a broken config", "config_broken", "config.json is not JSON: "),
        (
            "of a broken vocabulary",
            "vocab_latin_1",
            "a vocabulary must be UTF-8",
        ),
        ("without a config", "bare", "known: give --bert_config_file, or a c"),
        ("empty folder", "empty_folder", "holds no checkpoint. Looked for: b"),
        ("of Hugging Face, bare", "hf_no_weights", "There are no weights bes"),
        ("of Hugging Face, cut", "hf_cut", "such as a download that was cut"),
        ("of Hugging Face, git-lfs", "hf_lfs", "it is a pointer of git-lfs"),
        ("of XLNet", "hf_xlnet", "This is a xlnet model, not BERT"),
        ("a vocabulary", "two/vocab.txt", "vocab.txt is no checkpoint. Give"),
        ("a pipe", "../fifo", "fifo is no checkpoint. Give the folder of a"),
    )
} | {
    f"checkpoint {name}": Case(
        {"vocab_file": None, "init_checkpoint": path, **more}, line
    )
    for name, path, more, line in (
        ("of an unset variable", "", {}, "--init_checkpoint is empty. Is a v"),
        ("name of the Hub", "bert-base-uncased", {}, "There is no folder ber"),
        (
            "name of the Hub with its owner",
            "google-bert/bert-base-uncased",
            {},
            "Names of the Hub are not downloaded; `hf download NAME",
        ),
        (
            "at an unknown address",
            "foo://bucket/model",
            {},
            "no file system foo:// here. Give a local path",
        ),
        (
            "of other shapes",
            "{data}/models/bare",
            {"bert_config_file": "{data}/configs/wide.json"},
            "beta is [8] there and [12] in the model; bert/embeddings/LayerNo",
        ),
        (
            "of fewer layers",
            "{data}/models/bare",
            {"bert_config_file": "{data}/configs/deep.json"},
            "does not fit this model. In the model only: bert/encoder/layer_2",
        ),
    )
}

CASES: dict[str, Case] = {
    **_CONFIGS,
    **_VOCABULARIES,
    **_CHECKPOINTS,
}
