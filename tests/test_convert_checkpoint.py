"""Tests of the script, from its command line."""

import pathlib

from bert_tf import checkpoints, modeling
from bert_tf.interop import formats, names
from tests import interop_samples as samples
from tests import scripts

import pytest

_CONFIG = modeling.BertConfig(**samples.SMALL)


def convert(folder, *flags):
    """Runs the script and returns what it says."""
    done = scripts.run(folder / "log", "convert_checkpoint", *flags)
    assert done.wait() == 0, done.stderr
    return "\n".join(done.lines)


def copy(source, folder, pattern):
    folder.mkdir()
    for path in pathlib.Path(source).glob(pattern):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.fixture(scope="module")
def fine_tuned(tmp_path_factory):
    """A classifier as training leaves it, with two moments per weight."""
    folder = tmp_path_factory.mktemp("fine_tuned")
    model = samples.random_model("classification", _CONFIG)
    samples.write_tf1(folder, model)
    tensors = {v.path: v.value for v in model.variables}
    for name, value in list(tensors.items()):
        tensors |= {f"{name}/adam_m": value, f"{name}/adam_v": value}
    checkpoints.write(str(folder / "bert_model.ckpt"), tensors)
    return folder


def test_to_each_format_and_back(tmp_path, fine_tuned):
    said = convert(
        tmp_path,
        f"--input_checkpoint={fine_tuned}",
        "--output_format=hf",
        f"--output_path={tmp_path}/hf",
        "--labels=no,yes,so",
    )
    assert f"{fine_tuned}/bert_model.ckpt: tf1, classification, L=3" in said
    assert f"Wrote 57 weights to {tmp_path}/hf, 0.1 MB." in said
    assert "WARNING" not in said
    said = convert(
        tmp_path,
        f"--input_checkpoint={tmp_path}/hf",
        "--output_format=keras_hub",
        f"--output_path={tmp_path}/preset",
    )
    assert f"{tmp_path}/hf: hf, classification" in said
    assert "WARNING: KerasHub's own tokenizer makes" in " ".join(said.split())
    convert(
        tmp_path,
        f"--input_checkpoint={tmp_path}/preset",
        "--output_format=tf1",
        f"--output_path={tmp_path}/again",
    )
    samples.assert_equal(str(fine_tuned), str(tmp_path / "again"))
    again = formats.open_checkpoint(f"{tmp_path}/again")
    assert again.vocab == (fine_tuned / "vocab.txt").read_text()
    labels = formats.open_checkpoint(f"{tmp_path}/hf").labels
    assert labels == ("no", "yes", "so")


def test_strip_optimizer(tmp_path, fine_tuned):
    sizes = []
    for number, flags in enumerate(([], ["--strip_optimizer"])):
        path = tmp_path / str(number)
        convert(
            tmp_path,
            f"--input_checkpoint={fine_tuned}/bert_model.ckpt",
            "--output_format=tf1",
            f"--output_path={path}",
            *flags,
        )
        data = path / "bert_model.ckpt.data-00000-of-00001"
        sizes.append(data.stat().st_size)
    assert sizes[0] == 3 * sizes[1]
    samples.assert_equal(str(fine_tuned), str(path))


def test_files_of_a_bare_checkpoint(tmp_path, fine_tuned):
    bare = copy(fine_tuned, tmp_path / "bare", "bert_model.ckpt.*")
    convert(
        tmp_path,
        f"--input_checkpoint={bare}",
        f"--bert_config_file={fine_tuned}/bert_config.json",
        f"--vocab_file={fine_tuned}/vocab.txt",
        "--head=encoder",
        "--output_format=hf",
        f"--output_path={tmp_path}/hf",
    )
    source = formats.open_checkpoint(f"{tmp_path}/hf")
    assert source.shapes == names.shapes(_CONFIG, "encoder")
    # As the vocabulary looks.
    assert source.do_lower_case is True
    assert source.vocab == (fine_tuned / "vocab.txt").read_text()


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--input_checkpoint={tmp}"], "holds no checkpoint. Looked for: "),
        (
            ["--input_checkpoint=bert-base-uncased"],
            "There is no folder bert-base-uncased here. A Hugging Face model",
        ),
        (["--output_path={model}"], "Received: output_path={model}"),
        (["--labels=a,b"], "has 3 classes. Received: labels=a,b"),
        (["--head=encoder", "--labels=a"], "has no classes"),
        (["--head=span"], "has no span head"),
        (["--vocab_file={tmp}/short.txt"], "has 1 pieces, and the checkpoint"),
        (["--vocab_file={tmp}/none.txt"], "none.txt"),
        (
            ["--input_checkpoint={tmp}/short"],
            "does not belong to this BERT config: it has 1 pieces, the "
            "config says vocab_size=40",
        ),
        (
            [
                "--input_checkpoint={tmp}/bare",
                "--new_vocab_file={model}/vocab.txt",
                "--do_lower_case=true",
            ],
            "must be known to give it another vocabulary: give --vocab_file",
        ),
        (["--new_vocab_file={tmp}/cased.txt"], "{tmp}/cased.txt is cased"),
        (["--new_vocab_file={tmp}/twice.txt"], "{tmp}/twice.txt, line 3: this"),
    ],
)
def test_mistakes_end_in_one_line(tmp_path, fine_tuned, flags, problem):
    (tmp_path / "short.txt").write_text("[UNK]\n")
    (tmp_path / "cased.txt").write_text("[UNK]\nThe\nCat\nDog\n")
    (tmp_path / "twice.txt").write_text("[UNK]\nthe\nthe\n")
    copy(fine_tuned, tmp_path / "bare", "bert_*")
    short = copy(fine_tuned, tmp_path / "short", "bert_*")
    (short / "vocab.txt").write_text("[UNK]\n")
    done = scripts.run(
        tmp_path / "log",
        "convert_checkpoint",
        f"--input_checkpoint={fine_tuned}",
        "--output_format=hf",
        f"--output_path={tmp_path}/new",
        *(flag.format(tmp=tmp_path, model=fine_tuned) for flag in flags),
    )
    assert done.wait() == 1
    assert done.lines[-1].startswith("error: ")
    expected = problem.format(tmp=tmp_path, model=fine_tuned)
    assert expected in done.lines[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()
