"""Values of flags, flags without effect, and `--help`."""

import dataclasses

from bert_tf import options
from bert_tf.errors import InputError
from tests import script_flags, scripts, small_script

import pytest
from absl import flags


@dataclasses.dataclass(frozen=True)
class Curve(options.Options):
    """Options of every kind; `seed` is another field."""

    kind: str = options.option("line", "Which.", choices=("line", "curve"))
    steps: int | None = options.option(None, "How many.", min=1)
    rate: float = options.option(0.5, "How fast.", above=0, max=1)
    power: float = options.option(1.0, "How bent.", only_with="kind=curve")
    is_smooth: bool = options.option(True, "Whether it is smooth.")
    name: str = options.option(
        "a", "Its name.", harmless=True, only_with="!rate"
    )
    seed: int = 7


class TestValues:
    @pytest.mark.parametrize(
        "given", ["--rate=1", "--rate=1e-3", "--epochs=.5", "--kind=curve"]
    )
    def test_values_are_taken(self, tmp_path, given):
        assert small_script.taken(tmp_path, given, "--do_train") == []

    def test_numbers_or_a_word_have_one_spelling(self):
        with script_flags.own_flags():
            from bert_tf.flags import flag_sections

            section = flag_sections.Section("Answers")
            limit = section.number_or("limit", "0.0", "auto", "The limit.")
            for text, expected in (("0", "0.0"), ("-1e0", "-1.0")):
                flags.FLAGS(["script.py", f"--limit={text}"])
                assert limit.value == expected
            flags.FLAGS(["script.py", "--limit=auto"])
            assert limit.value == "auto"

    def test_parts_on_several_lines_are_one_line(self):
        with script_flags.own_flags():
            from bert_tf.flags import flag_sections

            section = flag_sections.Section("Search")
            space = section.spaced("space", "a=1", "Its space.")
            flags.FLAGS(["script.py", "--space= a=1,2\n  b=3 "])
            assert space.value == "a=1,2 b=3"


class TestUsed:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (
                "--rate=0.1 --steps=3",
                ["Not used, as they go with --do_train: --rate, --steps."],
            ),
            # Default values, as in a flags.txt.
            ("--rate=0.5 --kind=line", []),
            ("--do_train --rate=0.1 --kind=curve --power=2", []),
        ],
    )
    def test_flags_that_are_not_used_are_logged(
        self, tmp_path, given, expected
    ):
        logged = small_script.taken(tmp_path, *given.split())
        assert logged == [f"WARNING: {text}" for text in expected]

    def test_flag_of_another_choice_is_refused(self, tmp_path):
        assert small_script.refused(tmp_path, "--do_train", "--power=2") == (
            "--power goes with --kind=curve: leave it out. "
            "Received: power=2.0, kind=line"
        )

    def test_argument_is_named_before_missing_flags(self, tmp_path):
        line = small_script.refused(tmp_path, "train.csv", required=True)
        assert line.endswith("Received: 'train.csv'")


@pytest.fixture(scope="module", name="read")
def _read():
    """Returns a function that parses a command line of run_classifier.py."""
    with scripts.starting("run_classifier") as (start, _):

        def read(*words):
            for flag in flags.FLAGS._flags().values():
                flag.unparse()
            start([*words, "--output_dir=out"])
            return flags.FLAGS.vocab_file

        yield read


class TestAliases:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["--spm_model_file=a.model", "--vocab_file=a.vocab"], "a.model"),
            (["--spm_model_file", "a.model", "--vocab_file", "a"], "a.model"),
            (["--spm_model_file=", "--vocab_file=a.txt"], "a.txt"),
            (["--vocab_file=a.txt", "--spm_model_file="], "a.txt"),
            (["--flagfile=both"], "a.model"),
            (["--flagfile=both", "--vocab_file=b.model"], "b.model"),
            (["--flagfile", "both", "-vocab_file", "b.model"], "b.model"),
            (["--flagfile=model", "--flagfile=vocab"], "a.vocab"),
            (["--vocab_file=b.model", "--flagfile=model"], "a.model"),
        ],
    )
    def test_the_model_of_albert_counts_unless_it_is_overridden(
        self, read, words, expected, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        model, vocab = "--spm_model_file=a.model\n", "--vocab_file=a.vocab\n"
        (tmp_path / "model").write_text(model)
        (tmp_path / "vocab").write_text(vocab)
        (tmp_path / "both").write_text("--flagfile=model\n" + vocab)
        assert read(*words) == expected

    def test_the_name_that_does_not_count_is_logged(self, read, caplog):
        read("--spm_model_file=a.model", "--vocab_file=a.vocab")
        assert (
            "Not used, because --spm_model_file=a.model is another name of it: "
            "--vocab_file=a.vocab."
        ) in caplog.messages

    def test_contradiction(self, read, capfd):
        read("--albert_config_file=a.json", "--bert_config_file=a.json")
        assert flags.FLAGS.bert_config_file == "a.json"
        with pytest.raises(SystemExit):
            read("--albert_config_file=a.json", "--bert_config_file=b.json")
        assert capfd.readouterr().err.endswith(
            "error: --albert_config_file is another name of "
            "--bert_config_file: leave one out. Received: "
            "albert_config_file=a.json, bert_config_file=b.json\n"
        )


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Returns the output of --help."""
    folder = tmp_path_factory.mktemp("help")
    code, output, errors = small_script.run(folder, "--help", required=True)
    assert (code, errors) == (0, "")
    return output


class TestHelp:
    def test_example_keeps_its_lines(self, page):
        assert page.startswith(
            "script.py: Does what a test asks.\n\n"
            "    python script.py --output_dir=/tmp/run \\\n"
            "        --do_train\n"
        )

    def test_sections_in_order_and_required_ones_first(self, page):
        titles = [
            line
            for line in page.splitlines()
            if line.endswith(":") and not line.startswith(" ")
        ]
        assert titles == [
            *("Required:", "What to do:", "Data:", "Output:", "Training:"),
        ]
        required = page[page.index("Required:") : page.index("What to do:")]
        assert "  --name=TEXT\n      Its name.\n" in required
        assert page.count("--name=") == 1

    def test_values_and_defaults(self, page):
        for text in (
            "  --do_train=true|false\n      Whether to train. (default: false)",
            "  --kind=line|curve\n      Which. (default: line)",
            "  --rate=NUMBER\n      How fast. (default: 0.5)",
            "  --limit=NUMBER|auto\n",
            "  --input_file=PATHS\n      What is read.\n",
        ):
            assert text in page

    def test_rare_flags_are_in_the_full_page_only(self, page, tmp_path):
        assert "--steps" not in page
        assert "--helpfull shows 1 more flags." in page
        code, full, _ = small_script.run(tmp_path, "--helpfull")
        assert code == 0
        assert "  --steps=N\n      How many.\n" in full

    def test_lines_fit_the_screen(self, page):
        assert max(map(len, page.splitlines())) <= 80


class TestOptions:
    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ([], Curve()),
            (
                ["--kind=curve", "--power=2", "--rate=1", "--nois_smooth"],
                Curve("curve", None, 1.0, 2.0, False),
            ),
            (["--steps=3", "--name=b"], Curve(steps=3, name="b")),
        ],
    )
    def test_flags_become_the_object(self, given, expected):
        with script_flags.own_flags():
            from bert_tf.flags import flag_sections

            section = flag_sections.Section("Curve")
            section.define(Curve, "kind", "steps", "power", "is_smooth", "name")
            section.define(Curve, "rate", default=None)
            assert "seed" not in flags.FLAGS
            flags.FLAGS(["script.py", *given])
            assert flag_sections.read(Curve) == expected
            other = dataclasses.replace(expected, seed=9)
            assert flag_sections.read(Curve, seed=9) == other

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"kind": "x"}, "`kind` must be one of line, curve. .*kind='x'"),
            ({"steps": 0}, "`steps` must be at least 1. .*steps=0"),
            ({"rate": 0}, "`rate` must be above 0 and at most 1. .*rate=0"),
            ({"power": float("nan")}, "`power` must be finite. .*power=nan"),
            (
                {"power": 2.0},
                "goes with kind=curve. Received: power=2.0, kind=line",
            ),
        ],
    )
    def test_python_gets_the_bounds_of_the_flags(self, given, message):
        with pytest.raises(InputError, match=message):
            Curve(**given)
