"""The repository itself: pins that are complete and say nothing about where packages come from.

And its documentation for developers: it names no module that is not there.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from omnigraph.extras import MODULES

ROOT = Path(__file__).parents[1]
REQUIREMENTS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)(?P<marker> ; [^\\]+)?( \\)?$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
PAGES = sorted((ROOT / "docs" / "developer").glob("*.md"))
# A module by its path or the end of it, or a package with a slash behind it.
MODULE = re.compile(r"`((?:\w+/)*\w+\.py|(?:\w+/){2,})`")
# Built from parts, or this file would be the one that names them.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"pypi\." + "(?:org|io)",
            r"pythonhosted\." + "org",
            r"anaconda\." + "org",
            "index" + "-url",
            "find" + "-links",
            r"\[\[?tool\.uv\." + "index",
        ]
    ),
    re.IGNORECASE,
)
# Telling the resolver to leave the address out is the one mention that is right.
ALLOWED = "--no-emit-index" + "-url"


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@cache
def pins(path: Path) -> dict[str, set[str]]:
    """The versions of each package (several when they depend on the Python version)."""
    found: dict[str, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if pin := PIN.match(line):
            found.setdefault(normal(pin["name"]), set()).add(pin["version"])
    return found


def normal(name: str) -> str:
    """The name of a package; its extras are pinned on lines of their own."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def declared() -> list[tuple[str, str]]:
    """Requirement file and requirement, of everything `pyproject.toml` asks for."""
    metadata = project()["project"]
    extras = metadata["optional-dependencies"]
    groups = project()["dependency-groups"]
    product = [*metadata["dependencies"], *(one for name in MODULES for one in extras[name])]
    tools = [*extras["test"], *extras["bench"]]
    wanted = {
        "product": product,
        "dev": [*product, *(one for one in tools if one != "omnigraph[all]"), *groups["build"]],
        "docs": [*product, *extras["docs"]],
        "build": [*groups["build"], *project()["build-system"]["requires"]],
        "pins": groups["pins"],
    }
    return [(file, one) for file, requirements in wanted.items() for one in requirements]


@pytest.mark.parametrize(("file", "text"), declared())
def test_what_is_declared_is_a_range_and_what_is_pinned_lies_in_it(file: str, text: str) -> None:
    range_ = Requirement(text)
    bounds = {one.operator for one in range_.specifier}
    assert bounds <= {">=", "<"}
    assert ">=" in bounds, f"{text} needs a lower bound"
    assert file != "product" or "<" in bounds, f"{text} needs an upper bound"
    pinned = pins(ROOT / "requirements" / f"{file}.txt")[normal(range_.name)]
    assert pinned == set(range_.specifier.filter(pinned))


def test_all_is_every_extra_of_the_product() -> None:
    extras = project()["project"]["optional-dependencies"]
    assert extras.keys() == {*MODULES, "all", "test", "docs", "bench"}
    (every,) = extras["all"]
    assert Requirement(every).extras == MODULES.keys()


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_every_line_is_a_pin_or_its_hash(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert PIN.match(line) or HASH.match(line), line
        if PIN.match(line):
            assert HASH.match(following), f"no hash: {line}"


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.name)
def test_all_files_agree(path: Path) -> None:
    # They are installed into one environment.
    for other in REQUIREMENTS:
        shared = pins(path).keys() & pins(other).keys()
        assert {name: pins(path)[name] for name in shared} == {
            name: pins(other)[name] for name in shared
        }


def test_no_tracked_file_names_a_package_index() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 - git is wherever the user has it
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            text = path.read_bytes().decode("utf-8", errors="replace").replace(ALLOWED, "")
            assert not FORBIDDEN.findall(text), name


def test_the_version_is_read_from_the_package() -> None:
    assert project()["project"]["dynamic"] == ["version"]
    assert project()["tool"]["hatch"]["version"]["path"] == "src/omnigraph/version.py"


def test_spark_gets_the_pandas_it_supports() -> None:
    (version,) = pins(ROOT / "requirements" / "product.txt")["pandas"]
    assert (2, 2) <= tuple(int(part) for part in version.split(".")[:2]) < (3, 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_module_that_the_documentation_names_is_there(page: Path) -> None:
    modules = {f"/{path.relative_to(ROOT).as_posix()}" for path in ROOT.glob("src/**/*.py")}
    places = modules | {f"{module.rpartition('/')[0]}/" for module in modules}
    for name in set(MODULE.findall(page.read_text(encoding="utf-8"))):
        is_ours = any(place.endswith(f"/{name}") for place in places)
        assert is_ours or (ROOT / name).exists(), f"{page.name} names {name}"
