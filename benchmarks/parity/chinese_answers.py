"""Compares scores of Chinese answers with the official script of MLQA.

    python -m benchmarks.parity.chinese_answers --script=mlqa_evaluation_v1.py \
        cmrc2018_dev.json DRCD_dev.json

The script is from https://github.com/facebookresearch/MLQA, and the files have
SQuAD's format: squad-style-data of https://github.com/ymcui/cmrc2018, and
https://github.com/DRCKnowledgeTeam/DRCD. A prediction is a gold answer, changed
at random: with a full stop or quotation marks, a character less, other parts of
the context. The table has the scores of both for each file. If one question has
another score, the exit code is 1.
"""

import random
import runpy
import sys

from bert_tf.tasks.squad import squad_metrics, squad_questions

from absl import app, flags

_SCRIPT = flags.DEFINE_string("script", None, "Path of MLQA's script.")
flags.mark_flag_as_required("script")

_MAX_CHARACTERS = 20  # characters of another part of the context


def predict(question: squad_questions.Question, rng: random.Random) -> str:
    """Returns a gold answer, changed at random."""
    answer = rng.choice(question.answers)
    text, context = answer.text, question.context
    begin = max(0, answer.start or 0)
    other = rng.randrange(len(context))
    middle = len(text) // 2
    return rng.choice(
        [
            *(text, f"{text}。", f"《{text}》", text[1:], text[:-1]),
            text[:middle] + text[middle + 1 :],
            context[max(0, begin - rng.randrange(6)) : begin + len(text) + 3],
            context[other : other + rng.randrange(1, _MAX_CHARACTERS)],
        ]
    )


def main(arguments: list[str]) -> None:
    """Prints the table, and ends with 1 if a score differs."""
    script = runpy.run_path(str(_SCRIPT.value))
    different = 0
    print("file | questions | exact match | F1 | exact match, F1 of MLQA")
    print("---|---|---|---|---")
    for path in arguments[1:]:
        rng = random.Random(0)
        questions = squad_questions.read(path)
        sums = [0.0] * 4
        for question in questions:
            text = predict(question, rng)
            ours = squad_metrics.evaluate([question], {question.key: text})
            golds = [answer.text for answer in question.answers]
            theirs = [
                100.0 * max(float(score(text, gold, "zh")) for gold in golds)
                for score in (script["exact_match_score"], script["f1_score"])
            ]
            found = [*ours.values(), *theirs]
            different += found[:2] != found[2:]
            sums = [x + y for x, y in zip(sums, found, strict=True)]
        means = [f"{x / len(questions):.6f}" for x in sums]
        print(
            f"{path} | {len(questions)} | {means[0]} | {means[1]} | "
            f"{means[2]}, {means[3]}"
        )
    if different:
        sys.exit(f"{different} questions have another score.")


if __name__ == "__main__":
    app.run(main)
