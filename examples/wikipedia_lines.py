r"""Turns WikiExtractor text into one sentence per line, for pre-training.

    python examples/wikipedia_lines.py \
        --input=/data/wiki/AA/* --output=/data/wiki.txt --max_mb=60

The input is what WikiExtractor writes: `<doc ...>`, the title, one paragraph
per line, `</doc>`. The output has a blank line after each article; titles are
left out.

A sentence ends at `.`, `!` or `?`, closing quotes and brackets included, if
white space and then a capital letter, a digit or an opening quote follow, and
if the word before a full stop is neither an initial (`J.`, `U.S.`, `e.g.`) nor
one of the abbreviations below. That is simple and cuts a few sentences wrongly,
which next-sentence prediction does not mind.
"""

import argparse
import glob
import os
import re
import sys
from collections.abc import Iterable, Iterator

_NO_END = re.compile(
    r"""(?:[^\W\d_]\.)*[^\W\d_]
    |mr|mrs|ms|dr|prof|st|jr|sr|rev|gen|col|capt|lt|sgt|gov|sen|rep|hon|vs|cf
    |etc|al|inc|ltd|co|corp|nos?|vol|pp|fig|ca|approx
    |jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec""",
    re.VERBOSE | re.IGNORECASE,
)
_BOUNDARY = re.compile(
    r"""(\S*?)          # the word before
        ([.!?]+["')\]”’»]*)
        \s+
        (?=["'(\[“‘«]*[A-Z0-9À-ÖØ-Þ])""",
    re.VERBOSE,
)


def sentences(paragraph: str) -> Iterator[str]:
    """Splits a paragraph by the rule above."""
    start = 0
    for match in _BOUNDARY.finditer(paragraph):
        word = match[1].lstrip("\"'([“‘«")
        if match[2][0] == "." and _NO_END.fullmatch(word):
            continue
        yield paragraph[start : match.end(2)]
        start = match.end()
    if paragraph[start:]:
        yield paragraph[start:]


def articles(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    """Yields where each article starts, in bytes, and its paragraphs."""
    position = start = 0
    paragraphs: list[str] = []
    title_follows = False
    for line in lines:
        text = line.strip()
        if text.startswith("<doc "):
            start, paragraphs, title_follows = position, [], True
        elif text == "</doc>":
            yield start, paragraphs
        elif title_follows:
            title_follows = False
        elif text:
            paragraphs.append(text)
        position += len(line.encode())


def main() -> None:
    """Reads the flags and writes the output file."""
    parser = argparse.ArgumentParser(
        description="WikiExtractor text to one sentence per line."
    )
    parser.add_argument("--input", required=True, help="Files; a glob.")
    parser.add_argument("--output", required=True, help="The file to write.")
    parser.add_argument(
        "--skip_mb",
        type=float,
        default=0,
        help="Leave out articles that start in so much of the input.",
    )
    parser.add_argument(
        "--max_mb",
        type=float,
        default=float("inf"),
        help="Take the articles that start in so much of the input after it.",
    )
    args = parser.parse_args()
    files = sorted(glob.glob(args.input))
    if not files:
        sys.exit(f"error: no file matches. Received: --input={args.input}")
    first, last = args.skip_mb * 1e6, (args.skip_mb + args.max_mb) * 1e6
    position = written = 0
    with open(args.output + ".tmp", "w", encoding="utf-8") as output:
        for file in files:
            with open(file, encoding="utf-8", newline="\n") as stream:
                for start, paragraphs in articles(stream):
                    if position + start >= last:
                        break
                    if position + start < first or not paragraphs:
                        continue
                    for paragraph in paragraphs:
                        for sentence in sentences(paragraph):
                            output.write(sentence + "\n")
                    output.write("\n")
                    written += 1
            position += os.path.getsize(file)
    if not written:
        os.remove(output.name)
        sys.exit(f"error: no article found in {', '.join(files[:3])}")
    os.replace(output.name, args.output)
    size = os.path.getsize(args.output) / 1e6
    print(f"{args.output}: {written:,} articles, {size:.1f} MB")


if __name__ == "__main__":
    main()
