"""Reads a page: its samples, its headings and its links.

No Markdown library: fences, headings and links are all that is asked for, and what a
page does with them is plain.
"""

import re
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *([^`]*)$")
HEADING = re.compile(r"^ {0,3}#{1,6} +(.*?)( +#+)?$")
MARK = re.compile(r"^ *<!-- *(not run|first)\b:?(.*?)-->$")
LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: \"[^\"]*\")?\)|^ *\[[^\]]+\]: (\S+)")
# The first line of a sample may say under which name a reader saves it.
FILE = re.compile(r"^(?://|#) ([\w.-]+\.(?:js|mjs|py))$", re.MULTILINE)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


@dataclass
class Block:
    """A fenced block. `line` is that of its first line of text."""

    line: int
    heading: str
    language: str
    text: str = ""
    not_run: str | None = None
    first: str | None = None

    @property
    def file(self) -> str | None:
        """The name under which a reader saves it, if the sample says so."""
        found = FILE.match(self.text)
        return found and found[1]


class Page:
    """A page of the repository. `problems` are what is wrong with its form."""

    def __init__(self, root: Path, name: str):
        self.root, self.name = root, name
        self.blocks: list[Block] = []
        self.links: list[tuple[int, str]] = []
        self.anchors: set[str] = set()
        self.problems: list[str] = []
        self._read((root / name).read_text().splitlines())

    def _read(self, lines: list[str]) -> None:
        heading, marks, fence = "", {}, None
        for number, line in enumerate(lines, 1):
            if fence:
                indent, closing, block = fence
                if re.fullmatch(rf" *{closing[0]}{{{len(closing)},}} *", line):
                    fence = None
                else:
                    block.text += line.removeprefix(indent) + "\n"
            elif found := FENCE.match(line):
                indent, closing, information = found.groups()
                language = information.split()[0] if information else ""
                block = Block(number + 1, heading, language, **marks)
                self.blocks.append(block)
                fence, marks = (indent, closing, block), {}
            elif found := MARK.match(line):
                what, text = found[1].replace(" ", "_"), found[2].strip()
                if not text:
                    self.problems.append(f"{self.name}:{number}: '{found[1]}' needs a reason or a command")
                marks[what] = text
            elif line.strip():
                if marks:
                    self.problems.append(f"{self.name}:{number}: the mark above this line has no block")
                    marks = {}
                heading = self._read_text(number, line, heading)
        if fence:
            self.problems.append(f"{self.name}:{fence[2].line - 1}: the block has no end")

    def _read_text(self, number: int, line: str, heading: str) -> str:
        """Reads a line that is in no block, and says below which heading the next one is."""
        if found := HEADING.match(line):
            heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[1])
            self._add_anchor(heading)
        for found in LINK.finditer(CODE.sub("", line)):
            self.links.append((number, found[1] or found[2]))
        return heading

    def _add_anchor(self, heading: str) -> None:
        """As the sites that show Markdown make them."""
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        anchor, again = slug, 0
        while anchor in self.anchors:
            again += 1
            anchor = f"{slug}-{again}"
        self.anchors.add(anchor)


def broken_links(pages: dict[str, Page]) -> tuple[int, list[str]]:
    """How many links between the repository's files there are, and what is wrong with them."""
    count, problems = 0, []
    for page in pages.values():
        for line, target in page.links:
            if re.match(r"[a-z]+:", target):
                continue
            count += 1
            path, _, anchor = target.partition("#")
            file = (page.root / page.name).parent / path if path else page.root / page.name
            if not file.exists():
                problems.append(f"{page.name}:{line}: there is no {target}")
                continue
            name = str(file.resolve().relative_to(page.root.resolve()))
            if anchor and anchor not in pages.get(name, page).anchors:
                problems.append(f"{page.name}:{line}: {name} has no heading for #{anchor}")
    return count, problems
