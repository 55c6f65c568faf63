"""Wrong problems, models and folders of run_multiple_choice.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.multiple_choice.inputs import Case, out, predict, train

CASES: dict[str, matrix.Case] = {
    # ---- Problems
    "empty": train("empty.jsonl", "holds no problem"),
    "blank": train("blank.jsonl", "holds no problem"),
    "a folder": train("folder.jsonl", "This is a folder: give a file"),
    "no ending": train(
        "problems", "The name of a file of problems must end in .csv (SWAG's),"
    ),
    "text": train(
        "problems.txt",
        "The name of a file of problems must end in .csv (SWAG's),",
    ),
    "compressed": train(
        "train.jsonl.gz",
        "The name of a file of problems must end in .csv (SWAG's),",
    ),
    "gzip by another name": train(
        "gzip.jsonl", "can't be read: it is compressed (gzip). Unpack it."
    ),
    "lfs": train(
        "lfs.jsonl", "can't be read: it is a pointer of git-lfs, not the file"
    ),
    "html": train(
        "page.jsonl", "line 1: the line is not JSON (it is a web page, saved in"
    ),
    "binary": train(
        "binary.jsonl",
        "line 1: the text is not UTF-8 (invalid start byte at byte",
    ),
    "latin-1": train(
        "latin_1.jsonl",
        "line 13: the text is not UTF-8 (invalid continuation byte",
    ),
    "UTF-16": train("utf_16.jsonl", "can't be read: it is UTF-16, not UTF-8"),
    "cut": train(
        "cut.jsonl", "line 12: the line is not JSON (Unterminated string"
    ),
    "one object over lines": train(
        "indented.jsonl",
        "line 1: the line is not JSON (Expecting property name",
    ),
    "a list of all": train("list.jsonl", "line 1: expected a JSON object"),
    "deep": train(
        "deep.jsonl", "line 1: the line is not JSON (maximum recursion depth"
    ),
    "no prompt": train(
        "no_prompt.jsonl", "line 3: expected 'prompt' of type str"
    ),
    "prompt null": train(
        "prompt_null.jsonl", "line 1: expected 'prompt' of type str"
    ),
    "choices a text": train(
        "choices_text.jsonl", "line 3: expected 'choices' of type list"
    ),
    "choices of numbers": train(
        "choices_numbers.jsonl", "line 3: expected 'choices' of type str"
    ),
    "one choice": train(
        "one.jsonl", "line 3: expected two choices or more, none of them empty"
    ),
    "no choice": train(
        "none_of.jsonl",
        "line 3: expected two choices or more, none of them empty",
    ),
    "choice empty": train(
        "choice_empty.jsonl",
        "line 3: expected two choices or more, none of them empty",
    ),
    "no label": train("no_label.jsonl", "line 3: expected 'label' of type int"),
    "label true": train(
        "label_true.jsonl", "line 3: expected 'label' of type int"
    ),
    "label a text": train(
        "label_text.jsonl", "line 3: expected 'label' of type int"
    ),
    "label beyond": train(
        "label_beyond.jsonl", "line 3: the label must be from 0 to 1"
    ),
    "label -1": train(
        "label_hidden.jsonl", "line 3: the label must be from 0 to 1"
    ),
    "half a surrogate": train(
        "surrogate.jsonl", "line 3: a text holds half a surrogate pair (such as"
    ),
    "RACE, answer beyond": train(
        "race_beyond.jsonl", "line 2: the label must be from 0 to 1"
    ),
    "RACE, answer a number": train(
        "race_number.jsonl", "line 2: expected 'answers' of type str"
    ),
    "RACE, answers too few": train(
        "race_few.jsonl",
        "line 2: expected as many options and answers as questions",
    ),
    "RACE, option empty": train(
        "race_empty.jsonl", "line 2: option 2 is empty"
    ),
    "SWAG, no header": train(
        "no_header.csv", "line 1: the column 'sent1' is missing from the header"
    ),
    "SWAG, header alone": train("header.csv", "the file has no rows"),
    "SWAG, by tabs": train(
        "tabs.csv", "line 1: the column 'sent1' is missing from the header"
    ),
    "SWAG, label in words": train(
        "label_words.csv",
        "line 2: the label must be the number of the right choice,",
    ),
    "SWAG, label 4": train(
        "label_4.csv", "line 2: the label must be from 0 to 3"
    ),
    "SWAG, ending empty": train("ending_empty.csv", "line 2: ending2 is empty"),
    "SWAG, a quote open": train(
        "quote.csv", "line 3: the row is not valid CSV (unexpected end of"
    ),
    "SWAG, a column too many": train(
        "ragged.csv", "line 2: more columns than the first row"
    ),
    "SWAG, a column twice": train(
        "twice.csv", "line 1: the column 'ending0' appears twice in the header"
    ),
    "dev with hidden labels": Case(
        {"dev_file": "{data}/label_hidden.jsonl"},
        "line 3: the label must be from 0 to 1",
    ),
    "test with one choice": predict(
        "line 3: expected two choices or more, none of them empty",
        test_file="{data}/one.jsonl",
    ),
    "test not given": predict(
        "Give --test_file, the test set.", test_file=None
    ),
    # ---- Models
    "predicting with the untrained": predict(
        "is not fine-tuned: it has no multiple_choice head",
        init_checkpoint="{data}/model",
    ),
    "predicting with nothing": predict(
        "There is no trained model: --output_dir={out} holds no",
        init_checkpoint=None,
    ),
    "cut weights": Case(
        {"init_checkpoint": "{data}/models/cut_data"},
        "can't be read, it is truncated, corrupt or not all there:",
    ),
    "flipped weights": Case(
        {"init_checkpoint": "{data}/models/flipped_data_model"},
        "There is no checkpoint {data}/models/flipped_data_model:",
    ),
    "weights of another size": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/models/config_wide/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "has other shapes than this model:",
    ),
    "weights of fewer layers": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/models/config_deep/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "does not fit this model",
    ),
    "a vocabulary of 10": Case(
        {
            "init_checkpoint": "{data}/bare/bert_model.ckpt",
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/short.txt",
        },
        "does not belong to this BERT config: it has 10 pieces,",
    ),
    "vocabulary without [SEP]": Case(
        {"init_checkpoint": "{data}/models/vocab_no_sep"},
        "lacks the piece '[SEP]', which the model reads beside",
    ),
    # ---- Folders
    "out of the original's model": out(
        "model", "holds a model (bert_model.ckpt.data-00000-of-00001), and"
    ),
    "out of another script": out(
        "others", "holds a run of run_classifier.py, not of"
    ),
    "out of a result of others": out(
        "foreign", "holds eval_results.txt, which this run would replace and"
    ),
    "out a pipe": out(
        "pipe", "--output_dir must be a folder, and this is a file"
    ),
    "other data": out(
        "run",
        "holds another run: train_file was {data}/train.jsonl and",
        train_file="{data}/other.jsonl",
    ),
    "other batch": out(
        "run",
        "holds another run: train_batch_size was 4 and is 2",
        train_batch_size="2",
    ),
    "grouped by length": out(
        "run",
        "holds another run: group_by_length was false and is true",
        group_by_length="true",
    ),
    "cased now": out(
        "run",
        "is uncased: none of its 31 pieces with letters has an",
        do_lower_case="false",
    ),
    "other weights to predict with": predict(
        "--output_dir={data}/run holds a run, whose weights are",
        output_dir="{data}/run",
    ),
    "changed data": out(
        "runs/data", "The run in {data}/runs/data was trained on other"
    ),
    "no checkpoint can be read": out(
        "runs/cut", "None of the checkpoints in {data}/runs/cut can be read"
    ),
    "a checkpoint of other things": out(
        "runs/of_squad", "can't be gone on with"
    ),
    "flags binary": out(
        "runs/flags",
        "is damaged: it keeps the flags of a run, and is not UTF-8",
    ),
    "metrics cut": out(
        "runs/metrics", "{data}/runs/metrics/metrics.jsonl, line 1, is no JSON"
    ),
    "metrics of another kind": out(
        "runs/metrics_list",
        "{data}/runs/metrics_list/metrics.jsonl, line 1, is no",
    ),
    "best cut": out(
        "runs/best", "is not JSON: Unterminated string starting at: line 1"
    ),
    "best of another kind": out("runs/best_list", "must hold one JSON object"),
    "examples cut": out(
        "runs/examples", "is not JSON: Unterminated string starting at: line 1"
    ),
    "examples of another kind": out(
        "runs/examples_other",
        "The run in {data}/runs/examples_other was trained on",
    ),
    "config gone wrong": out(
        "runs/config",
        "is not JSON: Expecting property name enclosed in double",
        init_checkpoint=None,
    ),
    "predicting with best cut": predict(
        "is not JSON: Unterminated string starting at: line 1",
        output_dir="{data}/runs/best",
        init_checkpoint=None,
    ),
    "predicting with best gone": predict(
        "says that the best weights are",
        output_dir="{data}/runs/best_gone",
        init_checkpoint=None,
    ),
    "predicting with best damaged": predict(
        "can't be read, it is truncated, corrupt or not all there:",
        output_dir="{data}/runs/best_cut",
        init_checkpoint=None,
    ),
}
