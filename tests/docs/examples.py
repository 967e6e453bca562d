"""The code blocks of a documentation page, and which of them belong together.

Owns how a fence is read. A block says by its info string what it is: `pg` and
`gq` are sound and canonical; `{ .gq .error }` is refused, `{ .gq .loose }` is
sound but not canonical yet, `{ .pg .next }` is the next version of a schema. A
`title="film.pg"` says which file the block is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>.*?)[ \t]*$")
_TITLE = re.compile(r' ?title="([^"]+)"')
_ATTRIBUTES = re.compile(r"\{((?: \.[a-z]+)+) \}")

LANGUAGES = ("pg", "gq")
ROLES = {"pg": ("", "error", "loose", "next"), "gq": ("", "error", "loose")}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block; ``line`` is that of its fence."""

    page: str
    line: int
    info: str
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """The language and what else the fence says."""
        attributes = _ATTRIBUTES.fullmatch(self.info)
        if attributes is None:
            return tuple(_TITLE.sub("", self.info).split())
        return tuple(word.removeprefix(".") for word in attributes[1].split())

    @property
    def language(self) -> str:
        """The first word of the fence."""
        return self.words[0] if self.words else ""

    @property
    def role(self) -> str:
        """What the fence says besides the language; nothing for a sound, canonical example."""
        return " ".join(self.words[1:])

    @property
    def title(self) -> str | None:
        """The file that the block is, if it says so."""
        found = _TITLE.search(self.info)
        return None if found is None else found[1]

    @property
    def place(self) -> str:
        """Where it stands, as a test names it."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True)
class Example:
    """A block of one of our languages, with the schema it is about and the block after it."""

    block: Block
    schema: Block | None
    following: Block | None


def blocks_of(text: str, page: str) -> list[Block]:
    """Every fenced block of a page."""
    found: list[Block] = []
    opening: re.Match[str] | None = None
    start = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        fence = _FENCE.match(line)
        if opening is None:
            if fence is not None:
                opening, start, lines = fence, number, []
        elif fence is not None and not fence["info"] and fence["ticks"] == opening["ticks"]:
            body = "".join(f"{inside}\n" for inside in lines)
            found.append(Block(page, start, opening["info"], body))
            opening = None
        else:
            lines.append(line.removeprefix(opening["indent"]))
    if opening is not None:
        raise ValueError(f"{page}:{start}: this block is never closed")
    return found


def examples_of(blocks: list[Block]) -> list[Example]:
    """The examples of a page; a sound schema counts until the next one."""
    found: list[Example] = []
    schema: Block | None = None
    for block, following in zip(blocks, [*blocks, None][1:], strict=True):
        if block.language in LANGUAGES:
            found.append(Example(block, schema, following))
        if block.language == "pg" and not block.role:
            schema = block
    return found


def pages_of(root: Path) -> list[Path]:
    """The pages whose examples count: the README and everything below `docs/`."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def load_examples(root: Path) -> list[Example]:
    """The examples of every page of the project."""
    return [
        example
        for path in pages_of(root)
        for example in examples_of(
            blocks_of(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
        )
    ]


def transcripts(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    found: list[tuple[str, str]] = []
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), ""))
        elif found:
            command, output = found.pop()
            found.append((command, output + line))
    return found
