"""Builds a wheel for a package index, from the last commit: `make wheel`.

An index shows the README, in which links relative to the repository would be
dead. So this README has the repository's address in each link.

    python -m tools.wheel https://github.com/owner/name
"""

import configparser
import pathlib
import re
import subprocess
import sys
import tempfile

_ROOT = pathlib.Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^]]*)\]\((?!https?://|#)")


def absolute(text: str, address: str) -> str:
    """Returns Markdown with absolute links in the place of relative ones.

    Args:
        text: Markdown of a file in the root of the repository.
        address: The address of the repository, on GitHub or GitLab.
    """

    def link(match: re.Match[str]) -> str:
        kind = "raw" if match["picture"] else "blob"
        before = f"{match['picture']}[{match['text']}]"
        return f"{before}({address}/{kind}/HEAD/"

    return _LINK.sub(link, text)


def main(address: str) -> None:
    """Writes the wheel into dist/."""
    address = address.removesuffix("/").removesuffix(".git")
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        tree = subprocess.check_output(["git", "archive", "HEAD"], cwd=_ROOT)
        subprocess.run(["tar", "-x"], cwd=copy, check=True, input=tree)
        readme = copy / "README.md"
        readme.write_text(absolute(readme.read_text("utf-8"), address), "utf-8")
        settings = configparser.ConfigParser(interpolation=None)
        settings.read(copy / "setup.cfg", "utf-8")
        settings["metadata"]["project_urls"] = (
            f"\nSource = {address}"
            f"\nDocumentation = {address}/blob/HEAD/docs/index.md"
            f"\nChangelog = {address}/blob/HEAD/CHANGELOG.md"
        )
        with open(copy / "setup.cfg", "w", encoding="utf-8") as file:
            settings.write(file)
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*pip, "-w", _ROOT / "dist", copy], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
