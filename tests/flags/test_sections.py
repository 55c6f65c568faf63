"""Values of flags, flags without effect, and `--help`."""

from tests import small_script

import pytest


class TestValues:
    @pytest.mark.parametrize(
        "given", ["--rate=1", "--rate=1e-3", "--epochs=.5", "--kind=curve"]
    )
    def test_values_are_taken(self, tmp_path, given):
        assert small_script.taken(tmp_path, given, "--do_train") == []


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

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            (
                "--do_train --power=2",
                "--power goes with --kind=curve: leave it out. "
                "Received: power=2.0, kind=line",
            ),
            (
                "--show=3 --workers=2",
                "--workers goes without --show: leave it out. "
                "Received: workers=2, show=3",
            ),
        ],
    )
    def test_flag_of_another_choice_is_refused(self, tmp_path, given, expected):
        assert small_script.refused(tmp_path, *given.split()) == expected

    def test_argument_is_named_before_missing_flags(self, tmp_path):
        line = small_script.refused(tmp_path, "train.csv", required=True)
        assert line.endswith("Received: 'train.csv'")


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
