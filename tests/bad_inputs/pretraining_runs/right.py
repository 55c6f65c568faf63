"""What looks wrong to run_pretraining.py, and rightly works."""

from tests.bad_inputs.matrix import Case
from tests.bad_inputs.pretraining_runs.inputs import RANDOM

# What works, and what is said of it.
WORKS: dict[str, Case] = {
    "flags of TPUs": Case(
        {"tpu_name": "a", "num_tpu_cores": "8", "logical_cpus": "2"},
        "WARNING: Not used, as they go with --use_tpu or --distribution_strat",
    ),
    "what evaluation needs": Case(
        {"eval_file": "{data}/records/records-1*", "eval_batch_size": "3"},
        "Not used, as they go with --do_eval or --eval_steps: --eval_batch_si",
    ),
    "a list with blanks": Case(
        {"input_file": "{data}/records/records-0*, {data}/records/records-1*"},
        "19 records in 2 files",
    ),
    "a vocabulary of Windows": Case(
        {"vocab_file": "{data}/vocabs/windows.txt"},
        "is read with the byte-order mark left out and the line ends made LF",
    ),
    "evaluation records of labels that are not read": Case(
        {
            **RANDOM,
            "bert_config_file": "{data}/configs/left_to_right.json",
            "input_file": "{data}/m_good/*.tfrecord",
            "eval_file": "{data}/m_objective/*.tfrecord",
            "do_eval": "true",
        },
        "global_step = 2",
    ),
    "an evaluation batch of millions": Case(
        {"do_eval": "true", "eval_batch_size": "2000000000"}, "global_step = 2"
    ),
    "a flagfile of itself": Case(
        {"flagfile": "{data}/itself.flags"}, "circular flagfile dependency"
    ),
    "a name of words and marks": Case(
        {"output_dir": "{out}/ä ß '\" 水 *? $HOME"}, "step 2/2"
    ),
}
