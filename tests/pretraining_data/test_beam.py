"""Tests of pretraining_data/beam.py: its local runner writes the same bytes."""

import dataclasses
import hashlib
import random
import sys

from bert_tf import vocabularies
from bert_tf.pretraining_data import (
    beam,
    corpus,
    creation_job,
    creation_output,
    local_creation,
    pretraining_sequences,
    stages,
    workers,
)
from bert_tf.records import manifests
from tests import scripts

import pytest

_WORDS = ["ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen"]
_SHARDS = 4


@pytest.fixture(name="apache_beam")
def _apache_beam():
    return pytest.importorskip(
        "apache_beam",
        reason="needs Apache Beam, in an environment of its own: "
        "pip install '.[beam]' in a clone",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Returns a vocabulary, and 400 documents in two files."""
    folder = tmp_path_factory.mktemp("inputs")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_WORDS, "##s", "."]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    rng = random.Random(0)

    def sentence():
        words = rng.choices([*_WORDS, "bees", "cats"], k=rng.randint(1, 12))
        return " ".join(words) + "."

    def document():
        return "\n".join(sentence() for _ in range(rng.randint(1, 9)))

    for name in "ab":
        documents = [document() for _ in range(200)]
        (folder / f"{name}.txt").write_text("\n\n".join(documents))
    return folder


def make_job(folder, work, unit_bytes=10_000, **settings):
    reader = corpus.Reader()
    files = [str(folder / name) for name in ("a.txt", "b.txt")]
    sizes = {"max_seq_length": 32, "max_predictions_per_seq": 5}
    settings = {**sizes, "dupe_factor": 3, **settings}
    return creation_job.Job(
        units=tuple(corpus.plan(files, reader.input_format, unit_bytes)),
        reader=reader,
        vocab_file=str(folder / "vocab.txt"),
        do_lower_case=True,
        settings=pretraining_sequences.Settings(**settings),
        seed=1,
        folder=str(work),
    )


def sums(folder):
    """Returns the SHA-256 of each file of a folder."""
    files = {file.name: file.read_bytes() for file in folder.iterdir()}
    return {name: hashlib.sha256(x).hexdigest() for name, x in files.items()}


def _create(log, *flags):
    return scripts.run(log, "create_pretraining_data", *flags)


@pytest.mark.usefixtures("apache_beam")
class TestLocalRunner:
    @pytest.mark.parametrize(
        "settings",
        [
            pytest.param({}, id="nsp"),
            pytest.param({"slice_tokens": 3000}, id="slices"),
            pytest.param({"unit_bytes": 10**6}, id="no partner"),
            {"objective": "sop", "masking": "whole_word"},
            {"objective": "none", "masking": "span"},
            {"objective": "full_sentences", "masking": "ngram"},
            {"dynamic_masking": True},
            {"pack": True, "short_seq_prob": 0.9},
        ],
    )
    def test_gives_the_bytes_of_a_local_run(
        self, tmp_path, folder, settings, monkeypatch
    ):
        settings = dict(settings)
        if slice_tokens := settings.pop("slice_tokens", None):
            monkeypatch.setattr(stages, "_SLICE_TOKENS", slice_tokens)
        outputs = [
            creation_output.Output((), str(tmp_path / name), _SHARDS)
            for name in ("local", "beam")
        ]
        job = make_job(folder, tmp_path / "work", **settings)
        with workers.Workers(1, []) as pool:
            here = local_creation.run(job, outputs[0], pool)
        local_creation.finish(job, outputs[0], here)
        job = make_job(folder, tmp_path / "none", **settings)
        there = beam.run(job, outputs[1], "DirectRunner", [])
        # Only the shards and the manifest.
        ours = sums(tmp_path / "beam")
        assert len(ours) == len(set(ours.values())) == _SHARDS + 1
        local, distributed = (
            manifests.Manifest.read(output.manifest) for output in outputs
        )
        assert distributed == local
        # The order of entries in the statistics may differ.
        expected = sums(tmp_path / "local")
        del ours["manifest.json"], expected["manifest.json"]
        assert ours == expected
        assert there == dataclasses.replace(
            here, files=[file.replace("local", "beam") for file in here.files]
        )
        assert there.summary("lines") == here.summary("lines")

    @pytest.mark.slow
    def test_of_the_script(self, tmp_path, folder):
        options = (
            "--direct_num_workers=2 --direct_running_mode=multi_processing"
        )
        runs = {
            "local": ["--num_workers=1"],
            "beam": ["--runner=DirectRunner", f"--beam_options={options}"],
        }
        for name, more in runs.items():
            run = _create(
                tmp_path / "log" / name,
                f"--input_file={folder}/?.txt",
                f"--output_dir={tmp_path / name}",
                *("--max_seq_length=32", "--max_predictions_per_seq=5"),
                *(f"--vocab_file={folder}/vocab.txt", "--num_shards=2", *more),
            )
            assert run.wait() == 0, run.stderr
            assert "Wrote " in run.stderr
        expected = sums(tmp_path / "local")
        assert len(expected) == 3
        # The manifest is compared above.
        del expected["manifest.json"]
        assert expected.items() <= sums(tmp_path / "beam").items()

    def test_says_what_is_wrong(self, tmp_path, folder):
        run = _create(
            tmp_path / "log",
            f"--input_file={folder}/a.txt",
            f"--vocab_file={folder}/vocab.txt",
            f"--output_dir={tmp_path / 'out'}",
            *("--num_shards=9000", "--runner=DirectRunner"),
        )
        assert run.wait() == 1
        assert run.lines[-1].startswith("error: The text gives about ")
        assert "too few for so many files" in run.lines[-1]

    def test_does_not_mix_with_a_run_without_it(self, tmp_path, folder):
        output = creation_output.Output(folder=str(tmp_path / "out"))
        job = make_job(folder, output.work_folder)
        job.work.begin(job.fingerprint(output))
        with pytest.raises(ValueError, match="work of a run without a runner"):
            beam.run(job, output, "DirectRunner", [])


def test_a_pickled_kind_that_is_known(tmp_path, folder):
    # cloudpickle copies the functions of a kind, which compare unequal.
    name = "word_pieces"
    known = vocabularies.KINDS[name]
    copy = dataclasses.replace(known, read=lambda *x: known.read(*x))
    job = make_job(folder, tmp_path / "work")
    job = dataclasses.replace(job, kinds=((name, copy),))
    assert job.vocabulary.pieces[5] == _WORDS[0]
    assert vocabularies.KINDS[name] is known


def test_names_the_extra(tmp_path, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    output = creation_output.Output(folder=str(tmp_path / "out"))
    job = make_job(folder, output.work_folder)
    with pytest.raises(ValueError, match=r"pip install '\.\[beam\]'"):
        beam.run(job, output, "DirectRunner", [])
    assert not list(tmp_path.iterdir())
