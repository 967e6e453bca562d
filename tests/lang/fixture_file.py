"""Fixture files: named cases made of named sections of plain text.

    ### a comment between cases
    === the name of a case
    --- a section
    its text
    --- another section

Blank lines at the end of a section belong to nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    """One case and where it stands; every section's text ends with a line break unless empty."""

    file: str
    line: int
    name: str
    sections: dict[str, str]


def load_cases(path: Path) -> list[Case]:
    """The cases of a file, in order."""
    cases: list[Case] = []
    section: list[str] | None = None
    sections: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line.startswith("=== "):
            _close(cases, sections)
            sections, section = {}, None
            cases.append(Case(path.name, number, line.removeprefix("=== ").strip(), {}))
        elif line.startswith("### "):
            section = None
        elif line.startswith("--- "):
            name = line.removeprefix("--- ").strip()
            if not cases or name in sections:
                raise ValueError(f"{path.name}:{number}: section {name!r} is misplaced or repeated")
            section = sections[name] = []
        elif section is not None:
            section.append(line)
        elif line.strip():
            raise ValueError(f"{path.name}:{number}: text outside of a section")
    _close(cases, sections)
    return cases


def _close(cases: list[Case], sections: dict[str, list[str]]) -> None:
    for name, lines in sections.items():
        while lines and not lines[-1].strip():
            lines.pop()
        cases[-1].sections[name] = "".join(f"{line}\n" for line in lines)
