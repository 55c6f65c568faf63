"""What convert_checkpoint.py is given that is wrong: commands and files."""

from tests.bad_inputs import matrix

SCRIPT = matrix.Script(
    "convert_checkpoint",
    {
        "input_checkpoint": "{data}/model",
        "output_format": "hf",
        "output_path": "{out}",
    },
)


CONFIG = "{data}/model/bert_config.json"


SHORT = "{data}/models/vocab_short/vocab.txt"


def flags(line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of other flags."""
    return matrix.Case(flags, line)


def input_of(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another model to convert."""
    return matrix.Case({"input_checkpoint": path, **flags}, line)


def model(name: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of a model among the inputs."""
    return input_of(f"{{data}}/{name}", line, **flags)


def new(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another vocabulary to give the model."""
    return matrix.Case({"new_vocab_file": f"{{data}}/{path}", **flags}, line)


def output(path: str, line: str, **flags: str | None) -> matrix.Case:
    """Returns a case of another folder to write."""
    return matrix.Case({"output_path": path, **flags}, line)


def over_input(path: str, flag: str, **flags: str | None) -> matrix.Case:
    """Returns a case of an output that a flag reads."""
    line = f"--output_path would be written over what --{flag} reads: choose"
    return output(path, line, overwrite="true", **flags)


# Name of a model -> words of the line; whole checkpoints and what is beside.
MODELS = {
    "index_only": "has an index but no data: {data}/models/index_only/bert_",
    "data_only": "bert_model.ckpt.data-00000-of-00001 is there: copy its index",
    "cut_data": "corrupt or not all there: Read less bytes than requested",
    "flipped_index": "header entry): block checksum mismatch. If it was copied",
    "flipped_data": "shard 0 (512 bytes): Checksum does not match: stored",
    "lfs_index": "ckpt.index can't be read: it is a pointer of git-lfs, not",
    "lfs_data": "of-00001 can't be read: it is a pointer of git-lfs, not",
    "two": "holds several checkpoints. Name one of them: {data}/models/two/a",
    "saved_model": "is a SavedModel, which can be served (run_prediction.py",
    "albert": "bert_model.ckpt is no BERT: by its names it is ALBERT. Give",
    "tf2": "it is of TensorFlow 2's tf.train.Checkpoint, as those of Tens",
    "strangers": "bert/embeddings/LayerNorm/beta is not there; bert/embedd",
    "config_broken": "is not JSON: Expecting value: line 1 column 16 (char 15)",
    "vocab_latin_1": "vocab.txt, line 2: a vocabulary must be UTF-8",
    "hf_no_weights": "config.json: There are no weights beside it, none of mod",
    "hf_no_config": "has weights of Hugging Face but no config.json, which",
    "hf_xlnet": "config.json: This is a xlnet model, not BERT, and only",
    "empty_folder": "holds no checkpoint. Looked for: bert_model.ckpt.index or",
    # damaged.CONFIGS
    "no_config": "give --bert_config_file, or a checkpoint that has its config",
    "config_empty": "bert_config.json is not JSON: it is empty. Give the bert_",
    "config_cut": "is not JSON: Unterminated string starting at: line 8 colu",
    "config_lfs": "is not JSON: it is a pointer of git-lfs, not the file itse",
    "config_binary": "is not JSON: 'utf-8' codec can't decode byte 0x80 in pos",
    "config_text": "`hidden_size` must be a positive integer. Received: hidden",
    "config_nan": "`hidden_dropout_prob` must be a number, at least 0 and bel",
    "config_heads": "`hidden_size` must be a multiple of `num_attention_heads`",
    "config_act": "must be one of gelu, gelu_erf, relu, tanh, linear. Receive",
    "config_key": "unknown keys: hidden_sise (did you mean hidden_size?). What",
    "config_no_size": "The BERT config has no `vocab_size`: add the number of",
    "config_wide": "word_embeddings is [44, 8] there and [44, 16] by the conf",
    "config_deep": "bert/encoder/layer_2/attention/output/LayerNorm/beta is",
    "config_shallow": "is not in the config, which says num_hidden_layers=1;",
    # damaged.VOCABS
    "vocab_empty": "is not a BERT vocabulary: it is empty. Give the vocab.txt",
    "vocab_binary": "vocab.txt, line 1: a vocabulary must be UTF-8",
    "vocab_utf_16": "vocab.txt can't be read: it is UTF-16, not UTF-8",
    "vocab_short": "it has 43 pieces, the config says vocab_size=44. Give the",
    "vocab_no_unk": "it lacks the piece '[UNK]', which stands for unknown word",
    "vocab_no_cls": "lacks the piece '[CLS]', which the model reads beside eve",
    "vocab_twice": "line 9: this piece is already on line 8. The original ta",
    "vocab_hole": "line 8: a vocabulary must not hold empty lines, but at its",
    # Below
    "config_endless": "bert/encoder/layer_2/attention/output/LayerNorm/beta is",
    "config_architecture": "`architectures` must be a list of texts, or be",
    "labels_few": "has 3 classes: give a name for each by --labels, none empt",
    "labels_twice": "labels.txt must name the classes, one a line: 'a' is the",
    "labels_empty": "labels.txt must name the classes, one a line: it is empty",
    "groups": "beta is not in the config, which says num_hidden_groups=1, inn",
    "adapters": "bert/encoder/layer_0/output/adapters/ff/kernel is not in the",
    "two_heads": "holds several heads: pretraining, span. Say which one is",
}


# Folder of Hugging Face's or KerasHub's -> words of the line.
FOREIGN = {
    "hf/cut": "such as a download that was cut off: Error while deserializing",
    "hf/empty": "model.safetensors can't be read: it is empty. Copy or downlo",
    "hf/keras_weights": "tf_model.h5 can't be read. Download one of them, or",
    "hf/torch_code": "pytorch_model.bin can't be read, it is truncated, corru",
    "hf/index_names_none": "names model-1.safetensors, and there is no such fi",
    "hf/index_empty": "names no files of weights: `weight_map` is not there. ",
    "hf/index_list": "`weight_map` must be an object. Copy or download it agai",
    "hf/index_number": "index.json names 1, and there is no such file. Downloa",
    "hf/config_cut": "config.json is not JSON: Unterminated string starting at",
    "hf/config_lfs": "config.json can't be read: it is a pointer of git-lfs",
    "hf/activation": "gelu_python, relu, tanh, linear. Received: hidden_act='s",
    "hf/activation_list": "`hidden_act` must be a text. Copy or download it ag",
    "hf/shallow": "it says num_hidden_layers=1, and there is bert.encoder.laye",
    "hf/decoder": "`is_decoder` must be False. Received: is_decoder=True",
    "hf/classes_letters": "`id2label` must map the numbers of the classes to",
    "hf/adapter": "Merge adapters (LoRA) into the weights first; layers with",
    "hf/untied": "a model without tied weights can't be read",
    "hf/missing": "bert/encoder/layer_1/output/LayerNorm/beta is not there; b",
    "hf/int8": "holds whole numbers (int8): the model is quantized, and its",
    "hf/tokenizer_text": "tokenizer.json: `model` must be an object. Copy or",
    "hf/tokenizer_ids": "`vocab` must map the pieces to 0, 1, 2 and so on, eac",
    "hf/normalizer": "`normalizer` must be an object. Copy or download it agai",
    "hf/casing_text": "`do_lower_case` must be true or false. Copy or download",
    "hf/class_number": "`tokenizer_class` must be a text. Copy or download it",
    "hf/roberta_rows": "position_embeddings is [16, 8] there and [14, 8] by",
    "keras_hub/no_weights": "is not all there: model.weights.h5 does not exist",
    "keras_hub/weights_cut": "not what its config.json says. Download it agai",
    "keras_hub/no_task_weights": "has a classification head, whose weights ar",
    "keras_hub/task_cut": "task.json is not JSON: Expecting property name enc",
    "keras_hub/gemma": "this is another encoder, and only these can be read: ",
}
