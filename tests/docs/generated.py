"""Pages that are made from the product: what stands in the repository is what would be made.

Owns the list of them. `python -m tests.docs.generated` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.docs.command_examples import examples_page
from tests.docs.reference.page import reference_page

ROOT = Path(__file__).parents[2]
PAGES: Mapping[str, Callable[[], str]] = {
    "docs/user/cli-examples.md": examples_page,
    "docs/user/python-reference.md": reference_page,
}


def main() -> None:
    """Write every page again."""
    for name, make in PAGES.items():
        (ROOT / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
