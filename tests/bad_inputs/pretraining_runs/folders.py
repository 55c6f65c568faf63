"""Wrong folders of run_pretraining.py."""

from tests.bad_inputs.matrix import Case
from tests.bad_inputs.pretraining_runs.inputs import CAN_NOT, EVALUATE, RANDOM

CASES = {
    f"output {name}": Case({"output_dir": path, **more}, line)
    for name, path, more, line in (
        ("of an unset variable", "", {}, "--output_dir is empty. Is a variab"),
        ("blank", " ", {}, "--output_dir is empty. Is a variable of the shel"),
        (
            "with a line end",
            "{out}/a\nb",
            {},
            "--output_dir holds a line end, which flags.txt can't keep.",
        ),
        (
            "a file",
            "{data}/model/vocab.txt",
            {},
            "--output_dir must be a folder, and this is a file. Received: out",
        ),
        ("a device", "/dev/null", {}, "must be a folder, and this is a file"),
        (
            "below a file",
            "{data}/model/vocab.txt/out",
            {},
            "--output_dir can't be made: {data}/model/vocab.txt is no folder.",
        ),
        (
            "a dangling link",
            "{data}/dangling",
            {},
            "can't be made: {data}/dangling is a link to what is not there.",
        ),
        ("a link to itself", "{data}/loop", {}, "a link to what is not there"),
        ("with a bracket", "{out}[1]", {}, "Received: output_dir='{out}[1]'"),
        (
            "of too long a name",
            "{out}/" + 300 * "x",
            {},
            "a name has at most 251 bytes there. Choose a shorter one. Receiv",
        ),
        (
            "the model",
            "{data}/model",
            {},
            "{data}/model holds a model (bert_model.ckpt.data-00000-of-00001)",
        ),
        (
            "the model by ..",
            "{data}/records/../model",
            {},
            "/../model holds a model (bert_model.ckpt.data-00000-of-00001)",
        ),
        ("the model by a link", "{data}/link", {}, "holds a model (bert_mod"),
        (
            "the vocabulary's folder",
            "{data}/foreign",
            {"vocab_file": "{data}/foreign/vocab.txt"},
            "{data}/foreign holds vocab.txt, which this run would replace",
        ),
        (
            "of another script",
            "{data}/classifier",
            {},
            "holds a run of run_classifier.py, not of run_pretraining.py",
        ),
        (
            "of other records",
            "{data}/trained",
            {"input_file": "{data}/records/records-1*"},
            "{data}/trained holds another run: input_file was {data}/records/",
        ),
        (
            "of another seed",
            "{data}/trained",
            {"seed": "7"},
            "holds another run: seed was 12345 and is 7. Choose another outpu",
        ),
        (
            "of another architecture",
            "{data}/trained",
            {**RANDOM, "bert_config_file": "{data}/configs/deep.json"},
            "deep.json is not the config of {data}/trained: num_hidden_layers",
        ),
        (
            "of another vocabulary",
            "{data}/trained",
            {**RANDOM, "vocab_file": "{data}/vocabs/swapped.txt"},
            "swapped.txt is not the vocabulary of {data}/trained: line 43 is",
        ),
        (
            "of a checkpoint that is cut",
            "{data}/run_cut",
            {},
            "None of the checkpoints in {data}/run_cut can be read. Remove the",
        ),
        ("of a broken config", "{data}/run_config", {}, "json is not JSON: "),
        (
            "of flags that are no text",
            "{data}/run_flags",
            {},
            "flags.txt is damaged: it keeps the flags of a run, and is not UT",
        ),
        (
            "of a broken vocabulary",
            "{data}/run_vocab",
            {},
            "must be UTF-8 text",
        ),
        (
            "of the weights to start from",
            "{data}/kept",
            {
                "init_checkpoint": "{data}/kept/best",
                "bert_config_file": "{data}/model/bert_config.json",
            },
            "{data}/kept/best lies in --output_dir, whose best/ a run that be",
        ),
        (
            "of the weights to start from, by their name",
            "{data}/kept",
            {
                "init_checkpoint": "{data}/kept/best/model.ckpt-2",
                "bert_config_file": "{data}/model/bert_config.json",
            },
            "{data}/kept/best/model.ckpt-2 lies in --output_dir, whose best/ ",
        ),
        (
            "without a run to evaluate",
            "{out}",
            {
                **EVALUATE,
                **RANDOM,
                "bert_config_file": "{data}/model/bert_config.json",
            },
            "There is no trained model: --output_dir={out} holds no checkpoin",
        ),
        (
            "of a run, to evaluate other weights",
            "{data}/trained",
            {**EVALUATE, "init_checkpoint": "{data}/models/bare/model.ckpt-2"},
            "holds a run, whose weights are used, and --init_checkpoint names",
        ),
        (
            "of a run that is cut, to evaluate",
            "{data}/run_cut",
            {**EVALUATE, "init_checkpoint": None},
            f"The checkpoint {{data}}/run_cut/model.ckpt-2 {CAN_NOT}",
        ),
    )
}
