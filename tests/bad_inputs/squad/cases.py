"""Wrong flags, questions, models and folders of run_squad.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.squad.inputs import CONFIGS, VOCABS, model, out, train

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "nothing to do": matrix.Case(
        {"do_train": None, "do_eval": None},
        "At least one of --do_train, --do_eval, --do_predict and",
    ),
    "no output_dir": matrix.Case(
        {"output_dir": None},
        "Give --output_dir (Folder for checkpoints and results).",
    ),
    "no train_file": matrix.Case(
        {"train_file": None}, "--do_train needs --train_file, such as SQuAD's"
    ),
    "no predict_file": matrix.Case(
        {"predict_file": None},
        "--do_eval and --do_predict need --predict_file, such as",
    ),
    "unknown flag": matrix.Case(
        {"max_sequence_length": "16"}, "There is no flag --max_sequence_length"
    ),
    "a value behind a blank": matrix.Case(
        {}, "Only flags are expected, as --name=value", arguments=("true",)
    ),
    "rate nan": matrix.Case(
        {"learning_rate": "nan"}, "--learning_rate must be a number, at least 0"
    ),
    "rate inf": matrix.Case(
        {"learning_rate": "inf"}, "--learning_rate must be a number, at least 0"
    ),
    "rate 1e99": matrix.Case(
        {"learning_rate": "1e99"},
        "--learning_rate must be a number, at least 0, at most",
    ),
    "epochs nan": matrix.Case(
        {"num_train_epochs": "nan"},
        "--num_train_epochs must be a number, above 0",
    ),
    "epochs 0": matrix.Case(
        {"num_train_epochs": "0"},
        "--num_train_epochs must be a number, above 0",
    ),
    "epochs 1e12": matrix.Case(
        {"num_train_epochs": "1e12"}, "A run takes less than 2147483648 steps"
    ),
    "epochs 1e99": matrix.Case(
        {"num_train_epochs": "1e99"},
        "--num_train_epochs must be a number, above 0, at most",
    ),
    "epsilon 1e-99": matrix.Case(
        {"adam_epsilon": "1e-99"},
        "--adam_epsilon must be a number, above 0, at least",
    ),
    "epochs empty": matrix.Case(
        {"num_train_epochs": ""}, "--num_train_epochs must be a number, above 0"
    ),
    "batch 0": matrix.Case(
        {"train_batch_size": "0"},
        "--train_batch_size must be a whole number, at least 1",
    ),
    "batch 2.5": matrix.Case(
        {"train_batch_size": "2.5"},
        "--train_batch_size must be a whole number, at least 1",
    ),
    "batch 1e3": matrix.Case(
        {"train_batch_size": "1000"},
        "There are too few examples for one training step",
    ),
    "batch 2**63": matrix.Case(
        {"train_batch_size": str(2**63)},
        "--train_batch_size must be a whole number, at least 1, at",
    ),
    "eval batch 2**63": matrix.Case(
        {"eval_batch_size": str(2**63)},
        "--eval_batch_size must be a whole number, at least 1, at",
    ),
    "stride 0": matrix.Case(
        {"doc_stride": "0"}, "--doc_stride must be a whole number, at least 1"
    ),
    "no room for the context": matrix.Case(
        {"max_query_length": "13"},
        "max_seq_length must leave room for the context: be more",
    ),
    "longer than positions": matrix.Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions",
    ),
    "n_best 0": matrix.Case(
        {"n_best_size": "0"}, "--n_best_size must be a whole number, at least 1"
    ),
    "answers of length -1": matrix.Case(
        {"max_answer_length": "-1"},
        "--max_answer_length must be a whole number, at least 1",
    ),
    "warm-up of more than all": matrix.Case(
        {"warmup_proportion": "1.5"},
        "--warmup_proportion must be a number, at least 0 and at",
    ),
    "threshold for version 1": matrix.Case(
        {"null_score_diff_threshold": "auto"},
        "--null_score_diff_threshold goes with",
    ),
    "threshold is a word": matrix.Case(
        {
            "null_score_diff_threshold": "high",
            "version_2_with_negative": "true",
        },
        "--null_score_diff_threshold must be a number or auto",
    ),
    "threshold nan": matrix.Case(
        {"null_score_diff_threshold": "nan", "version_2_with_negative": "true"},
        "--null_score_diff_threshold must be a number or auto",
    ),
    "threshold not known": matrix.Case(
        {
            "null_score_diff_threshold": "auto",
            "version_2_with_negative": "true",
            "do_eval": None,
            "do_export": "true",
        },
        "--null_score_diff_threshold=auto needs questions with",
    ),
    "a boolean that is none": matrix.Case(
        {"do_train": "perhaps"}, "--do_train must be true or false"
    ),
    "no such flagfile": matrix.Case(
        {"flagfile": "{data}/none.flags"},
        "A flagfile, or one that it names, can't be read: No such",
    ),
    "predicting with the untrained": matrix.Case(
        {"do_train": None, "do_eval": None, "do_predict": "true"},
        "is not fine-tuned: it has no span head",
    ),
    "predicting with nothing": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": None,
            "bert_config_file": "{data}/model/bert_config.json",
            "vocab_file": "{data}/model/vocab.txt",
        },
        "There is no trained model: --output_dir={out} holds no",
    ),
    "predicting with a classifier": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": "{data}/models/strangers",
        },
        "the tensors are not those of the config beside them:",
    ),
    # ---- Questions
    "none": train("none.json", "There is no such file"),
    "empty": train("empty.json", "is not JSON: it is empty"),
    "folder": train("model", "This is a folder: give a file"),
    "dangling link": train("dangling.json", "There is no such file"),
    "cut in the middle": train(
        "cut.json", "is not JSON: Expecting ':' delimiter: line 1 column 1136"
    ),
    "cut by one byte": train(
        "cut_1.json", "is not JSON: Expecting ',' delimiter: line 1 column 2271"
    ),
    "html": train(
        "page.json", "is not JSON: it is a web page, saved in the place of the"
    ),
    "lfs": train(
        "lfs.json", "is not JSON: it is a pointer of git-lfs, not the file"
    ),
    "gzip": train(
        "train.json.gz", "is not JSON: it is compressed (gzip). Unpack it"
    ),
    "binary": train(
        "binary.json", "is not JSON: 'utf-8' codec can't decode byte 0x80 in"
    ),
    "latin-1": train(
        "latin_1.json", "is not JSON: 'utf-8' codec can't decode byte 0xe9 in"
    ),
    "csv": train(
        "table.json", "is not JSON: Expecting value: line 1 column 1 (char 0)."
    ),
    "JSON lines": train(
        "lines.json", "is not JSON: Extra data: line 2 column 1 (char 29)."
    ),
    "deep": train(
        "deep.json", "is not JSON: maximum recursion depth exceeded while"
    ),
    "a list": train(
        "list.json", "expected a JSON object with 'data', as in SQuAD's files"
    ),
    "a number": train(
        "number.json", "expected a JSON object with 'data', as in SQuAD's files"
    ),
    "no data": train("no_data.json", "'data' is missing"),
    "data is a text": train("data_text.json", "'data' must be of type list"),
    "article is a list": train(
        "article_list.json",
        "article 4: expected a JSON object with 'paragraphs', as",
    ),
    "no paragraphs": train(
        "no_paragraphs.json", "article 4: 'paragraphs' is missing"
    ),
    "no context": train(
        "no_context.json", "article 4, paragraph 1: 'context' is missing"
    ),
    "empty context": train(
        "empty_context.json", "question q3: the context is empty"
    ),
    "context without a word": train(
        "no_word.json", "question q3: the answer is not in the context"
    ),
    "no qas": train("no_qas.json", "article 4, paragraph 1: 'qas' is missing"),
    "no questions": train("no_questions.json", "holds no question."),
    "question is a number": train(
        "question_number.json", "question q3: 'question' must be of type str"
    ),
    "question null": train(
        "question_null.json", "question q3: 'question' is missing"
    ),
    "question empty": train(
        "question_empty.json", "question q3: the question is empty"
    ),
    "half a surrogate": train(
        "surrogate.json",
        "article 4, paragraph 1: a text holds half a surrogate",
    ),
    "id is a number": train(
        "id_number.json", "article 4, paragraph 1: 'id' must be of type str"
    ),
    "id twice": train("id_twice.json", "question q1: the id comes twice."),
    "answers an object": train(
        "answers_object.json", "question q3: 'answers' must be of type list"
    ),
    "no answer": train(
        "no_answer.json", "question q3: there is no answer to learn"
    ),
    "answer empty": train(
        "answer_empty.json", "question q3: the answer is empty"
    ),
    "answer not there": train(
        "answer_lost.json", "question q3: the answer is not in the context"
    ),
    "answer out of range": train(
        "answer_out.json",
        "question q3: the answer is out of range; the context has",
    ),
    "answer before the beginning": train(
        "answer_negative.json",
        "question q3: the answer is out of range; the context has",
    ),
    "answer without a start": train(
        "answer_nowhere.json",
        "question q3: the answer has no 'answer_start'. Correct",
    ),
    "start is a text": train(
        "start_text.json", "question q3: 'answer_start' must be of type int"
    ),
    "impossible in words": train(
        "impossible_text.json",
        "question q3: 'is_impossible' must be of type bool",
    ),
    "version 2 without saying so": train(
        "version_2.json", "question q3: there is no answer to learn"
    ),
    "dev without answers": matrix.Case(
        {"predict_file": "{data}/hidden.json"},
        "--do_eval needs answers, and {data}/hidden.json has none",
    ),
    "dev of version 2": matrix.Case(
        {"predict_file": "{data}/version_2.json"},
        "question q3: there is no answer, as for 1 of 12 questions",
    ),
    "dev with a surrogate": matrix.Case(
        {"predict_file": "{data}/surrogate.json"},
        "article 4, paragraph 1: a text holds half a surrogate",
    ),
    # ---- Configs and vocabularies
    **{name: model(name, line) for name, line in CONFIGS.items()},
    **{name: model(name, line) for name, line in VOCABS.items()},
    "config not there": matrix.Case(
        {"bert_config_file": "{data}/none"}, "There is no such file"
    ),
    "config is a folder": matrix.Case(
        {"bert_config_file": "{data}/model"}, "This is a folder: give a file"
    ),
    "config of another": matrix.Case(
        {"bert_config_file": "{data}/models/config_wide/bert_config.json"},
        "is not the config of {data}/model/bert_model.ckpt:",
    ),
    "vocabulary not there": matrix.Case(
        {"vocab_file": "{data}/none"}, "There is no such file"
    ),
    "vocabulary is a folder": matrix.Case(
        {"vocab_file": "{data}/model"}, "This is a folder: give a file"
    ),
    "vocabulary of another": matrix.Case(
        {"vocab_file": "{data}/models/vocab_short/vocab.txt"},
        "is not the vocabulary of {data}/model/bert_model.ckpt: it",
    ),
    "cased said of an uncased": matrix.Case(
        {"do_lower_case": "false"},
        "is uncased: none of its 31 pieces with letters has an",
    ),
    # ---- Folders
    "out is where the questions are": matrix.Case(
        {
            "predict_file": "{data}/answers/predictions.json",
            "output_dir": "{data}/answers",
        },
        "The run would write over what --predict_file reads:",
    ),
    "out with a result of others": out(
        "answers", "holds predictions.json, which this run would replace and"
    ),
    "out with a hard link": out(
        "hard",
        "holds eval.tf_record, which this run would replace and no",
        train_file="{data}/train.json",
    ),
    "out of another script": out(
        "others", "holds a run of run_ner.py, not of run_squad.py: choose"
    ),
    "out of the vocabulary": out(
        "words",
        "holds vocab.txt, which this run would replace and no run",
        vocab_file="{data}/words/vocab.txt",
    ),
    "other stride": out(
        "run", "holds another run: doc_stride was 4 and is 5", doc_stride="5"
    ),
    "other version": out(
        "run",
        "holds another run: version_2_with_negative was false and",
        version_2_with_negative="true",
    ),
    "other questions": out(
        "run",
        "holds another run: train_file was {data}/train.json and",
        train_file="{data}/dev.json",
    ),
    "questions changed": out(
        "runs/examples", "The run in {data}/runs/examples was trained on other"
    ),
    "no moments": out("runs/stripped", "can't be gone on with"),
    "a folder for the answers": out(
        "runs/folder", "is a folder, and the run writes a file of that name:"
    ),
    "a file for the best": out(
        "runs/best_file",
        "is no folder, and the run writes one of that name: remove",
    ),
    "predicting with a threshold gone wrong": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_export": "true",
            "version_2_with_negative": "true",
            "null_score_diff_threshold": "auto",
            "init_checkpoint": None,
            "output_dir": "{data}/runs/threshold",
        },
        "must hold the threshold that was tuned",
    ),
    "predicting with other weights": matrix.Case(
        {
            "do_train": None,
            "do_eval": None,
            "do_predict": "true",
            "init_checkpoint": "{data}/models/config_wide",
            "output_dir": "{data}/run",
        },
        "--output_dir={data}/run holds a run, whose weights are",
    ),
}
