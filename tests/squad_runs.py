"""Runs run_squad.py on tiny questions made here."""

import json

from bert_tf import heads, modeling
from tests import scripts, trained_weights

import numpy as np

_LINE = "the cat dog bird fish runs sleeps eats red blue green old new big"
_WORDS = _LINE.split()
CONFIG = {
    "vocab_size": 8 + len(_WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 32,
    "type_vocab_size": 2,
}


def run(folder, *arguments, **environment):
    """Runs the script, which must succeed."""
    done = scripts.run(folder / "log", "run_squad", *arguments, **environment)
    assert done.wait() == 0, done.stderr
    return done


def run_here(*arguments, name="__main__"):
    """Runs the script in this process: quicker, for runs that end at once."""
    return scripts.run_here("run_squad", *arguments, name=name)


def write_model(folder):
    """Writes a vocabulary and a config; returns flags of a quick run."""
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", ",", "##s"]
    (folder / "vocab.txt").write_text("\n".join([*marks, *_WORDS]) + "\n")
    (folder / "bert_config.json").write_text(json.dumps(CONFIG))
    return [
        f"--vocab_file={folder}/vocab.txt",
        f"--bert_config_file={folder}/bert_config.json",
        *("--max_seq_length=16", "--max_query_length=4", "--doc_stride=4"),
        *("--train_batch_size=8", "--eval_batch_size=8"),
        "--learning_rate=0.01",
    ]


def store(path, number, impossible=0, answered=True):
    """Writes questions "cat?" whose answer is the word after "cat"."""
    rng = np.random.default_rng(number)
    paragraphs = []
    for i in range(number):
        words = [str(word) for word in rng.choice(_WORDS[2:], 20)]
        if i >= impossible:
            words[rng.integers(18)] = "Cat"
        context = ", ".join(words[:10]) + " \n" + " ".join(words[10:])
        qa = {"id": f"q{i}", "question": "Cat?", "is_impossible": False}
        if i < impossible:
            qa |= {"answers": [], "is_impossible": True}
        else:
            text = words[words.index("Cat") + 1]
            start = context.index(text, context.index("Cat"))
            qa["answers"] = [{"text": text, "answer_start": start}]
        if not answered:
            del qa["answers"]
        paragraphs.append({"context": context, "qas": [qa]})
    content = {"version": "x", "data": [{"paragraphs": paragraphs}]}
    path.write_text(json.dumps(content))


def write_weights(folder):
    config = modeling.BertConfig.from_dict(CONFIG)
    trained_weights.write(folder, heads.BertSpanFinder(modeling.Bert(config)))


def write(folder):
    """Writes questions and a tiny model; returns the folder and its flags."""
    store(folder / "train.json", 30)
    store(folder / "dev.json", 9)
    store(folder / "train2.json", 30, impossible=8)
    store(folder / "dev2.json", 11, impossible=4)
    store(folder / "test2.json", 5, impossible=2, answered=False)
    return folder, write_model(folder)
