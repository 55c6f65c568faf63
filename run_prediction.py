r"""Runs inference on lines of text, with any trained model.

Lines of a file, with the model in the folder of a run:
    python run_prediction.py --model_dir=/tmp/mrpc_output \
        --input_file=pairs.txt --output_file=answers.jsonl

A pre-trained model of any format predicts masked words:
    echo "Paris is the [MASK] of France." | \
        python run_prediction.py --init_checkpoint=$BERT_BASE_DIR
A SavedModel of export_saved_model.py, with input typed at the terminal:
    python run_prediction.py --saved_model=/models/mrpc/1

A line is a text, or texts separated by tabs: a pair, a question and its
context, or a prompt and its choices. With --input_format=jsonl, a line is an
object with the keys text; text_a and text_b; question and context; or prompt
and choices. Answers are JSON lines in the order of the input.
"""

import os
import sys

from bert_tf.errors import InputError
from bert_tf.flags import command_line, flag_sections, model_flags, shared_flags
from bert_tf.serving import serving_lines
from bert_tf.tasks import table_formats, tables

from absl import flags, logging
from etils import epath

flags.adopt_module_key_flags(model_flags)

# ---- Flags ------------------------------------------------------------------

_MODEL = flag_sections.Section("Model")
_DATA = flag_sections.Section("Data")
_OUTPUT = flag_sections.Section("Output")

_SAVED_MODEL = _MODEL.input_path(
    "saved_model",
    "The folder of an exported model, instead of a checkpoint.",
    holds=flag_sections.MODEL,
)
_ALLOW_UNSAFE_OPS = _MODEL.boolean(
    "allow_unsafe_ops",
    False,
    "Whether the SavedModel may have operations that access files or the host, "
    "such as WriteFile. Only for models whose source you trust.",
    only_with="saved_model",
    rare=True,
)
_INPUT_FILE = _DATA.input_path(
    "input_file",
    "File with one input per line. By default, standard input: lines are "
    "answered as they arrive.",
)
_INPUT_FORMAT = _DATA.choice(
    "input_format",
    None,
    serving_lines.INPUT_FORMATS,
    "By default chosen by the extension: jsonl for .jsonl and .json, "
    "otherwise plain.",
)
_OUTPUT_FILE = _OUTPUT.output_path(
    "output_file",
    "File for the answers. By default, standard output.",
    holds=flag_sections.FILE,
)
_OUTPUT_FORMAT = _OUTPUT.choice(
    "output_format",
    None,
    serving_lines.OUTPUT_FORMATS,
    "jsonl: all outputs. tsv: a row of values. plain: only the answer. By "
    "default chosen by the extension: tsv for .tsv, otherwise jsonl.",
)
_OVERWRITE = _OUTPUT.boolean(
    "overwrite",
    False,
    "Whether to replace an existing output_file.",
    only_with="output_file",
)
_BATCH_SIZE = shared_flags.batch_size(_DATA)
_WINDOW = shared_flags.sort_window(_DATA)

command_line.start(__name__, later=("head",))

from bert_tf import files, phases, terminals
from bert_tf.serving import batches, serving_model
from bert_tf.setup import model_setup
from bert_tf.storage import input_files


def load_model(saved_model):
    """Returns the model to ask."""
    if not saved_model:
        return serving_model.of_export(model_setup.load())
    given = model_flags.MODEL_DIR.value or model_flags.INIT_CHECKPOINT.value
    if given:
        raise InputError(
            "Give one model: --saved_model, --model_dir or --init_checkpoint. "
            f"Received: saved_model={saved_model} and {given}"
        )
    return serving_model.load(saved_model, _ALLOW_UNSAFE_OPS.value)


def check_streams(input_file, output_file):
    """Raises InputError if a stream is needed and closed, or given by "-"."""
    for stream, file, flag, what in (
        ("stdin", input_file, _INPUT_FILE, "input"),
        ("stdout", output_file, _OUTPUT_FILE, "output"),
    ):
        if file == "-":
            raise InputError(
                f"For standard {what} leave --{flag.name} out. "
                f"Received: {flag.name}=-"
            )
        if command_line.was_closed(stream) and not file:
            raise InputError(
                f"Standard {what} is closed, and there is no --{flag.name}. "
                "Give one of them."
            )


def find_format(input_format, path):
    """Returns the format of the input."""
    if input_format or not path:
        return input_format or "plain"
    promised = table_formats.of_name(path)
    if promised == "csv":
        raise InputError(
            "run_prediction.py does not read CSV. Write one text per line, use "
            "run_classifier.py --do_predict --test_file, or give "
            "--input_format=plain to take every line, the header too, as a "
            "text. "
            f"Received: {_INPUT_FILE.name}={path}"
        )
    return "jsonl" if promised == "jsonl" else "plain"


def find_output_format(output_format, path):
    """Returns the format of the output."""
    if output_format or not path:
        return output_format or "jsonl"
    if table_formats.of_name(path) == "csv":
        raise InputError(
            "run_prediction.py does not write CSV. Give a name that ends in "
            f".jsonl or .tsv, or --{_OUTPUT_FORMAT.name}. "
            f"Received: {_OUTPUT_FILE.name}={path}"
        )
    return "tsv" if path.lower().endswith(".tsv") else "jsonl"


# ---- Lines ------------------------------------------------------------------


def parsed(parser, lines, name):
    """Yields what each line asks; empty lines at the end ask nothing."""
    empty = None
    for number, text in lines:
        if not text.strip():
            empty = empty or number
            continue
        if empty is not None:
            parser.parse("", f"{name}, line {empty}")
        yield parser.parse(text, f"{name}, line {number}")


def of_file(parser, path):
    """Yields the inputs of a file; InputError if it has none."""
    count = 0
    for asked in parsed(parser, tables.lines(path), path):
        count += 1
        yield asked
    if not count:
        raise InputError(f"{path} has no lines. Expected {parser.expected}.")


def standard_input():
    """Returns standard input as a separate file, not as sys.stdin.

    The thread that waits for a line holds the file's lock. When Python exits,
    it takes the lock of sys.stdin, and would abort.
    """
    try:
        number = sys.stdin.fileno()
    except OSError:  # A text that stands for it.
        return sys.stdin.buffer
    return open(number, "rb", closefd=False)


def typed(parser):
    """Yields what is typed, until Ctrl-D; says what is wrong with a line."""
    # For its effect on input(): keys that move, lines that come back.
    import readline  # noqa: F401

    print(f"Type {parser.expected}; Ctrl-D ends.", file=sys.stderr)
    prompt = "> "
    if not sys.stdout.isatty():  # Where answers go, and nothing else.
        prompt = ""
    while True:
        if not prompt:
            print("> ", end="", file=sys.stderr, flush=True)
        try:
            text = input(prompt)
        except (EOFError, KeyboardInterrupt):
            print(file=sys.stderr)
            return
        if not text.strip():
            continue
        try:
            yield parser.parse(text, "This line")
        except InputError as error:
            print(error, file=sys.stderr)


# ---- Answers ----------------------------------------------------------------


def answered(predictor, windows, output_format, phase):
    """Yields the lines of the answers; logs how far it is."""
    for window in windows:
        answers = predictor.answer(window, phase.add)
        for query, answer in zip(window, answers, strict=True):
            yield serving_lines.write(query, answer, output_format)
    phase.finish()


def write(lines, path):
    """Writes lines to a file, whole or not at all, or as they come."""
    if path:
        epath.Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write_lines(path, lines)
        logging.info("Wrote %s.", path)
        return
    for line in lines:
        terminals.write(f"{line}\n")


# ---- Main -------------------------------------------------------------------


def main(_):
    """The whole prediction as an outline."""
    command_line.unwind_at_signals()
    path, rows = _INPUT_FILE.value, _WINDOW.value
    check_streams(path, _OUTPUT_FILE.value)
    input_format = find_format(_INPUT_FORMAT.value, path)
    output_format = find_output_format(_OUTPUT_FORMAT.value, _OUTPUT_FILE.value)
    if path:
        input_files.check(path, _INPUT_FILE.name)
    model = load_model(_SAVED_MODEL.value)
    predictor = batches.Predictor(model, _BATCH_SIZE.value)
    parser = serving_lines.Parser(
        model.asks,
        "text_b" in model.inputs,
        input_format,
        model.top_k,
    )
    count = None
    if path and os.path.exists(path) and not os.path.isfile(path):
        # A pipe, which can be read but once.
        windows = batches.as_they_come(of_file(parser, path), rows)
    elif path:
        checked = phases.tracked(of_file(parser, path), "Checking", "lines")
        count = sum(1 for _ in checked)
        windows = batches.windows(of_file(parser, path), rows)
    elif sys.stdin.isatty():
        windows = ([query] for query in typed(parser))
    else:
        name = "standard input"
        asked = parsed(parser, tables.decoded(standard_input(), name), name)
        windows = batches.as_they_come(asked, rows)
    # Answers on the screen show how far it is.
    is_shown = bool(_OUTPUT_FILE.value or (count and not sys.stdout.isatty()))
    phase = phases.Phase("Answering", "lines", count, is_shown)
    lines = answered(predictor, windows, output_format, phase)
    write(lines, _OUTPUT_FILE.value)


if __name__ == "__main__":
    command_line.run(main)
