import pathlib
import sys

from tests.bad_inputs import cases, damaged, matrix, surroundings, trained

import pytest

SCRIPT, CASES, RIGHT = cases.read("predicting")


def build(folder: pathlib.Path) -> None:
    """Writes the inputs."""
    trained.write(folder)
    damaged.write_models(folder)
    trained.write_saved(folder)
    text = "the cat sat .\tit ran\na dog ran\tit sees rome !\n"
    files: dict[str, object] = {
        "lines.txt": text,
        **{f"{x}.txt": data for x, data in damaged.NO_TEXTS.items()},
        "blank.txt": b"\n \n\t\n",
        "latin_1.txt": "the cat\ncafé\n".encode("latin-1"),
        "utf_16.txt": text.encode("utf-16"),
        "lines.txt.gz": damaged.GZIP,
        "three.txt": text.encode() + b"the\tcat\tsat\n",
        "second.txt": b"\tthe cat\n",
        "cut.jsonl": b'{"text_a": "the", "text_b": "cat"}\n{"text_a": "th',
        "key.jsonl": b'{"sentence1": "the", "sentence2": "cat"}\n',
        "near.jsonl": b'{"text_a": "the", "text_B": "cat"}\n',
        "more.jsonl": b'{"text": "the", "label": "no", "text_id": 7}\n',
        "odd.txt": "\ufeffthe cat\r\n\u2028 a\x00 dog\t\nrome",
        "late.txt": text.encode() * 300 + b"\xff\n",
        "notes.txt": b"mine",
        "many.txt": text.encode() * 40,
        "lines.csv": b"text\nthe cat\n",
        "hard.txt": damaged.Same("lines.txt"),
        "link.txt": damaged.Link("lines.txt"),
    }
    damaged.write_files(folder, files)


data = matrix.inputs(build)
test_bad_input = matrix.refused(SCRIPT, CASES)
test_what_rightly_works = matrix.right(SCRIPT, RIGHT)


def test_another_process_writes_it(data, tmp_path):
    surroundings.check_other_writer(SCRIPT, "answers.jsonl", data, tmp_path)


@pytest.mark.parametrize(
    ("flags", "closed", "line"),
    [
        ([], "<&-", "Standard input is closed, and there is no --input_file."),
        pytest.param(
            ["--input_file={data}/lines.txt"],
            ">&-",
            "Standard output is closed, and there is no --output_file.",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_stream_is_closed(flags, closed, line, data, tmp_path):
    """As by a shell's `<&-` or `>&-`: without an output nothing is answered.

    The script starts in the C locale, with a path that is not ASCII.
    """
    flags = [flag.format(data=data) for flag in flags]
    (tmp_path / "名前").symlink_to(data / "run")
    flags.append(f"--model_dir={tmp_path}/名前")
    run = matrix.in_a_shell(SCRIPT, flags, {"LC_ALL": "C"}, closed)
    assert run.returncode == 1
    assert not run.stdout
    (said,) = run.stderr.splitlines()
    assert said == f"error: {line} Give one of them."


def test_lines_before_a_bad_one_are_no_result(data, tmp_path, monkeypatch):
    """For input that is read once, with answers written to a file."""
    case = matrix.Case(
        {"input_file": None},
        "standard input, line 3: 3 columns with tabs",
        checked=False,
    )
    with open(data / "three.txt") as file:
        monkeypatch.setattr(sys, "stdin", file)
        matrix.check(SCRIPT, case, data, tmp_path)


def test_too_small_a_disk(data, tmp_path):
    flags = {"input_file": "{data}/many.txt"}
    surroundings.check_full_disk(SCRIPT, flags, "x.jsonl", data, tmp_path)
