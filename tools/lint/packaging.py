"""Rules about setup.cfg: packages, extras and pinned versions."""

import ast
import configparser
import re
from collections.abc import Iterator

from tools.lint.problems import File, Problem, Repository

# Not installed by the tests; setup.cfg has the reason.
_NOT_PINNED = {"beam"}
# For one file format only, or for a service or devices that few have.
_NOT_IN_ALL = {"jax", "mlflow", "parquet", "wandb"}


class _Setup:
    """The lists of setup.cfg."""

    def __init__(self, repository: Repository):
        self.file = File(repository.root, "setup.cfg")
        self._values = configparser.ConfigParser()
        self._values.read_string(self.file.text)

    def names(self, section: str, option: str) -> list[str]:
        """Returns the lines of a list, without comments."""
        lines = self._values[section][option].splitlines()
        lines = [line.partition("#")[0].strip() for line in lines]
        return [line for line in lines if line]

    @property
    def extras(self) -> dict[str, list[str]]:
        section = "options.extras_require"
        return {x: self.names(section, x) for x in self._values[section]}

    def problem(self, text: str, message: str) -> Problem:
        """Returns a problem at the first line that begins with a text."""
        found = self.file.find(rf"^ *{re.escape(text)}")
        return self.file.problem(next(found, (1, None))[0], message)


def every_package_is_listed(repository: Repository) -> Iterator[Problem]:
    """A folder that is not listed is missing from the wheel."""
    setup = _Setup(repository)
    listed = setup.names("options", "packages")
    there = {
        file.path.removesuffix("/__init__.py").replace("/", ".")
        for file in repository.package
        if file.path.endswith("/__init__.py")
    }
    there |= {"bert_tf.configs", "bert_tf.scripts"}
    for name in sorted(there - set(listed)):
        yield setup.problem(
            "packages =", f"`packages` lacks {name}. Add a line for it."
        )
    for name in sorted(set(listed) - there):
        yield setup.problem(
            name, f"there is no package {name}. Remove it from `packages`."
        )
    if listed != sorted(listed):
        yield setup.problem("packages =", "`packages` is not sorted. Sort it.")


def every_dependency_is_pinned(repository: Repository) -> Iterator[Problem]:
    """`make venv` and `make tpu-venv` install the same versions everywhere."""
    setup = _Setup(repository)
    required = setup.names("options", "install_requires")
    lines = list(required)
    for name, extra in setup.extras.items():
        if name not in _NOT_PINNED:
            lines += extra
    yield from _unpinned(setup, repository, "constraints.txt", lines)
    on_tpus = [x for x in required if not re.match(r"tensorflow\b(?!-)", x)]
    yield from _unpinned(setup, repository, "constraints-tpu.txt", on_tpus)


def _unpinned(
    setup: _Setup, repository: Repository, path: str, lines: list[str]
) -> Iterator[Problem]:
    """Yields a problem for each requirement without a version in a file."""
    pins = File(repository.root, path).text.splitlines()
    pinned = {line.partition("==")[0].lower() for line in pins}
    for line in sorted(set(lines)):
        name = re.split(r"[<>=!\[]", line)[0]
        if name.lower() not in pinned | {"bert-tf"}:
            yield setup.problem(
                line,
                f"{name} has no version in {path}. Add {name}==... "
                "and the versions of what it installs.",
            )


def _checks(repository: Repository) -> Iterator[tuple[File, int, str, str]]:
    """Yields file, line, package and extra of each call of `extras.check`."""
    for file in [*repository.scripts, *repository.package]:
        for node in file.nodes:
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "extras.check"
            ):
                package, extra = map(ast.literal_eval, node.args[:2])
                yield file, node.lineno, package.replace("_", "-"), extra


def all_brings_every_extra(repository: Repository) -> Iterator[Problem]:
    """`pip install .[all]` installs the packages that errors name."""
    setup = _Setup(repository)
    named = {extra for *_, extra in _checks(repository)}
    expected = f"bert-tf[{','.join(sorted(named - _NOT_IN_ALL))}]"
    if setup.extras["all"] != [expected]:
        yield setup.problem(
            "all =",
            f"the extra `all` must be {expected}, the extras that errors name. "
            f"Received: {setup.extras['all']}",
        )


def errors_name_extras_there_are(repository: Repository) -> Iterator[Problem]:
    """The extra that an error names has the missing package."""
    extras = _Setup(repository).extras
    for file, line, package, extra in _checks(repository):
        # Without versions, such as >=1.2.
        names = {
            re.split("[<>=!~]", x)[0].replace("_", "-")
            for x in extras.get(extra, ())
        }
        # The package of tensorflow_serving is tensorflow-serving-api.
        if not names & {package, f"{package}-api", f"{package}-skinny"}:
            yield file.problem(
                line,
                f"names the extra {extra}, which does not have {package}. Add "
                "it to the extra in setup.cfg, or name another.",
            )


RULES = (
    every_package_is_listed,
    every_dependency_is_pinned,
    all_brings_every_extra,
    errors_name_extras_there_are,
)
