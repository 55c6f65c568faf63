"""Wrong flags, sentences, models and folders of run_ner.py."""

from tests.bad_inputs import matrix
from tests.bad_inputs.ner.inputs import MODELS, Case, model, out, predict, train

CASES: dict[str, matrix.Case] = {
    # ---- Flags
    "no train_file": Case(
        {"train_file": None}, "Give --train_file, the train set."
    ),
    "no dev_file": Case({"dev_file": None}, "Give --dev_file, the dev set."),
    "empty train_file": Case({"train_file": ""}, "--train_file is empty"),
    "line end in a name": train(
        "a\nb.conll",
        "--train_file holds a line end, which flags.txt can't keep",
    ),
    "token column beyond": Case(
        {"token_column": "2"}, "line 1: a column is missing"
    ),
    "token column far below": Case(
        {"token_column": "-3"}, "line 1: a column is missing"
    ),
    "columns the same": Case(
        {"token_column": "1"}, "line 1: word and label are in the same column"
    ),
    "columns the same, from both ends": Case(
        {"token_column": "0", "label_column": "-2"},
        "line 1: word and label are in the same column",
    ),
    "column in words": Case(
        {"label_column": "last"}, "--label_column must be a whole number"
    ),
    "separator a comma": Case(
        {"separator": ","}, "--separator must be one of tab, space"
    ),
    "separator another": Case(
        {"separator": "tab"},
        "line 1: there is only one column, and it can't be word",
    ),
    "scheme unknown": Case(
        {"scheme": "IOBES"},
        "--scheme must be one of BIO, IO, IOB1, BIOES, BILOU, none",
    ),
    "scheme another": Case(
        {"scheme": "BILOU"},
        "line 2: 24 of 24 entities are not spelt as BILOU says",
    ),
    "scheme IO": Case(
        {"scheme": "IO"},
        "The scheme IO has the label O and those that start with",
    ),
    "one label": Case(
        {"labels": "O"}, "Expected at least two labels, each once"
    ),
    "labels twice": Case(
        {"labels": "O,O,B-per,I-per,B-loc"},
        "Expected at least two labels, each once",
    ),
    "label empty": Case(
        {"labels": "O,,B-per"},
        "--labels: a label must not be empty or hold a line end",
    ),
    "labels of none": Case(
        {"labels": ""}, "--labels must be given or left out, and it is empty"
    ),
    "labels too few": Case(
        {"labels": "O,B-per"},
        "line 3: this label is not one of those trained on (O,",
    ),
    "labels with a line end": Case(
        {"labels": "O,B-per,I-per,B-loc,a\nb"},
        "--labels must be texts with commas between, in one line;",
    ),
    "labels of another scheme": Case(
        {"labels": "O,B-per,I-per,B-loc,X-loc", "scheme": "BIO"},
        "The scheme BIO has the label O and those that start with",
    ),
    "context of paragraphs": Case(
        {"context": "paragraph"}, "--context must be one of sentence, document"
    ),
    "length 3": Case(
        {"max_seq_length": "3"},
        "--max_seq_length must be a whole number, at least 4",
    ),
    "length 33": Case(
        {"max_seq_length": "33"},
        "`max_seq_length` is more than the model has positions",
    ),
    "length 2**63": Case(
        {"max_seq_length": str(2**63)},
        "--max_seq_length must be a whole number, at least 4, at",
    ),
    "rate negative": Case(
        {"learning_rate": "-1e-5"},
        "--learning_rate must be a number, at least 0",
    ),
    "layer_decay 0": Case(
        {"layer_decay": "0"},
        "--layer_decay must be a number, above 0 and at most 1",
    ),
    "test file that is not used, rate nan": Case(
        {"test_file": "{data}/none", "learning_rate": "nan"},
        "--learning_rate must be a number, at least 0",
    ),
    "micro-batches that do not fit": Case(
        {"gradient_accumulation_steps": "3"},
        "--train_batch_size must be a multiple of 1 replicas times",
    ),
    "flag of SQuAD": Case({"doc_stride": "8"}, "There is no flag --doc_stride"),
    "name in latin-1": train("caf\udce9.conll", "is no UTF-8 text"),
    # ---- Sentences
    "none": train("none.conll", "There is no such file"),
    "empty": train("empty.conll", "the file has no words"),
    "blank lines": train("blank.conll", "the file has no words"),
    "only document starts": train("docstart.conll", "the file has no words"),
    "folder": train("model", "This is a folder: give a file"),
    "dangling link": train("dangling.conll", "There is no such file"),
    "link to itself": train("loop.conll", "There is no such file"),
    "lfs": train(
        "lfs.conll", "can't be read: it is a pointer of git-lfs, not the file"
    ),
    "html": train(
        "page.conll", "line 2: another number of columns than before"
    ),
    "gzip": train(
        "train.conll.gz", "can't be read: it is compressed (gzip). Unpack it."
    ),
    "binary": train(
        "binary.conll",
        "line 1: the text is not UTF-8 (invalid start byte at byte",
    ),
    "zeros": train(
        "zeros.conll", "line 1: there is only one column, and it can't be word"
    ),
    "latin-1": train(
        "latin_1.conll",
        "line 97: the text is not UTF-8 (invalid continuation byte",
    ),
    "UTF-16": train("utf_16.conll", "can't be read: it is UTF-16, not UTF-8"),
    "cut in a character": train(
        "cut.conll", "line 1: the text is not UTF-8 (unexpected end of data at"
    ),
    "cut in a line": train(
        "cut_line.conll", "line 94: another number of columns than before"
    ),
    "JSON": train(
        "train.json", "line 1: there is only one column, and it can't be word"
    ),
    "CSV": train(
        "train.csv", "line 1: there is only one column, and it can't be word"
    ),
    "one column": train(
        "words.conll", "line 1: there is only one column, and it can't be word"
    ),
    "a column too many": train(
        "ragged.conll", "line 97: another number of columns than before"
    ),
    "empty word": train(
        "no_word.conll", "line 4: a word or its label is empty"
    ),
    "empty label": train(
        "no_label.conll", "line 4: a word or its label is empty"
    ),
    "one label in all": train(
        "outside.conll", "Expected at least two labels, each once"
    ),
    "a sentence of 1,001 words": train(
        "long.conll",
        "line 1001: no empty line so far, so the file would be one",
    ),
    "IOB1": train(
        "iob1.conll",
        "line 1: 9 of 10 entities are not spelt as BIO says",
        scheme="BIO",
    ),
    "dev with a new label": Case(
        {"dev_file": "{data}/new.conll"},
        "line 97: this label is not one of those trained on",
    ),
    "dev empty": Case(
        {"dev_file": "{data}/empty.conll"}, "the file has no words"
    ),
    "dev a folder": Case(
        {"dev_file": "{data}"}, "This is a folder: give a file"
    ),
    "three mistakes": Case(
        {
            "dev_file": "{data}/none.conll",
            "learning_rate": "0.1e",
            "output_dir": "",
        },
        "--learning_rate must be a number, at least 0",
    ),
    "too few": train(
        "few.conll",
        "There are too few examples for one training step",
        train_batch_size="32",
    ),
    # ---- Checkpoints
    **{name: model(name, line) for name, line in MODELS.items()},
    "of other labels": model(
        "other_tagger", "was trained with 3 labels: B-x, I-x, O"
    ),
    "no such checkpoint": Case(
        {"init_checkpoint": "{data}/none"},
        "There is no checkpoint {data}/none: {data}/none.index",
    ),
    "a vocabulary": Case(
        {"init_checkpoint": "{data}/model/vocab.txt"}, "is no checkpoint"
    ),
    "name of the Hub": Case(
        {"init_checkpoint": "google-bert/bert-base-uncased"},
        "There is no folder google-bert/bert-base-uncased here",
    ),
    "address": Case(
        {"init_checkpoint": "https://x.org/model.ckpt"},
        "There is no folder https://x.org/model.ckpt here",
    ),
    "empty checkpoint": Case(
        {"init_checkpoint": ""}, "--init_checkpoint is empty"
    ),
    # ---- Predicting
    "predicting with the untrained": predict(
        "is not fine-tuned: it has no tagging head",
        init_checkpoint="{data}/model",
    ),
    "predicting with nothing": predict(
        "There is no trained model: --output_dir={out} holds no",
        init_checkpoint=None,
    ),
    "labels in another order": predict(
        "was trained with 4 labels: B-loc, B-per, I-per, O",
        labels="O,I-per,B-per,B-loc",
    ),
    "labels of another number": predict(
        "was trained with 4 labels: B-loc, B-per, I-per, O", labels="O,B-loc"
    ),
    "test file of one column": predict(
        "line 1: there is only one column, and it can't be word",
        test_file="{data}/words.conll",
    ),
    "test file with new labels": predict(
        "line 97: this label is not one of those trained on",
        test_file="{data}/new.conll",
    ),
    "no test_file": predict("Give --test_file, the test set.", test_file=None),
    "a pipe": predict(
        "This file is read twice, which a pipe or a device can't",
        test_file="{data}/pipe",
    ),
    "weights beside a run's": predict(
        "--output_dir={data}/run holds a run, whose weights are",
        output_dir="{data}/run",
    ),
    # ---- Folders
    "out empty": out("", "--output_dir is empty"),
    "out blank": out(" ", "--output_dir is empty"),
    "out a file": out(
        "{data}/train.conll",
        "--output_dir must be a folder, and this is a file",
    ),
    "out below a file": out(
        "{data}/train.conll/out",
        "--output_dir can't be made: {data}/train.conll is no",
    ),
    "out a dangling link": out(
        "{data}/dangling.conll",
        "--output_dir can't be made: {data}/dangling.conll is a",
    ),
    "out a link to itself": out(
        "{data}/loop.conll",
        "--output_dir can't be made: {data}/loop.conll is a link",
    ),
    "out with a bracket": out(
        "{out}/[1]", "TensorFlow takes the name of a checkpoint for a glob, so"
    ),
    "out with a line end": out(
        "{out}/a\nb",
        "--output_dir holds a line end, which flags.txt can't keep",
    ),
    "out in a file system that is none": out(
        "foo://bucket/out", "There is no file system foo:// here"
    ),
    "out a model": out(
        "{data}/model",
        "holds a model (bert_model.ckpt.data-00000-of-00001), and",
    ),
    "out a model by ..": out(
        "{data}/models/../model",
        "holds a model (bert_model.ckpt.data-00000-of-00001), and",
    ),
    "out a model by a link": out(
        "{data}/link",
        "holds a model (bert_model.ckpt.data-00000-of-00001), and",
    ),
    "out a model of others": out(
        "{data}/models/hf_lfs",
        "holds a model (model.safetensors), and that of this run",
    ),
    "out of another script": out(
        "{data}/others",
        "holds a run of run_squad.py, not of run_ner.py: choose",
    ),
    "out with foreign files": out(
        "{data}/foreign",
        "holds labels.txt, which this run would replace and no run",
    ),
    "out is what is read": Case(
        {
            "train_file": "{data}/inside/test_predictions.conll",
            "output_dir": "{data}/models/../inside",
        },
        "The run would write over what --train_file reads: choose",
    ),
    "other data": out(
        "{data}/run",
        "holds another run: train_file was {data}/train.conll and",
        train_file="{data}/dev.conll",
    ),
    "other length": out(
        "{data}/run",
        "holds another run: max_seq_length was 16 and is 12",
        max_seq_length="12",
    ),
    "other seed and batch": out(
        "{data}/run",
        "holds another run: train_batch_size was 4 and is 2; seed",
        seed="7",
        train_batch_size="2",
    ),
    "other optimizer": out(
        "{data}/run", "can't be gone on with", optimizer="lamb"
    ),
    "other config": out(
        "{data}/run",
        "is not the config of {data}/run: hidden_size is 16 there",
        bert_config_file="{data}/models/config_wide/bert_config.json",
    ),
    "changed data": out(
        "{data}/runs/examples",
        "The run in {data}/runs/examples was trained on other",
    ),
    "flags binary": out(
        "{data}/runs/flags",
        "is damaged: it keeps the flags of a run, and is not UTF-8",
    ),
    "labels another": out(
        "{data}/runs/labels",
        "The model in {data}/runs/labels was trained with other",
    ),
    "labels binary": out(
        "{data}/runs/labels_binary",
        "is not UTF-8 text: invalid start byte at byte 0",
    ),
}
