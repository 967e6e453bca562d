"""The wheel as people install it: the core and each extra in a new environment, by plain pip.

Everything is downloaded, hundreds of megabytes of it: only `make soak` does that.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph.extras import MODULES
from tests import profile

ROOT = Path(__file__).parents[1]
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
BESIDE_LANCE = 130 * 2**20
"""What the core may take beside Lance, Arrow and NumPy, which are most of it."""
LARGE = ("lance", "pyarrow", "numpy", "numpy.libs", "pip", "setuptools")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(profile.NAME != "soak", reason="downloads all that there is to install"),
]

MAKE = """
import subprocess
import sys
import omnigraph as og
from omnigraph.extras import MODULES, has_extra

graph = og.init("g", "node Film { title: String @key  blurb: String?  meaning: Vector(64)? "
                "@embed(blurb) } edge Next: Film -> Film { far: I32 }")
films = [{"type": "Film", "data": {"title": title}} for title in ("Rain", "Sun", "Snow")]
nexts = [
    {"edge": "Next", "from": "Rain", "to": "Sun", "data": {"far": 2}},
    {"edge": "Next", "from": "Sun", "to": "Snow", "data": {"far": 3}},
]
graph.load([*films, *nexts], mode="append")
titles = "query titles() { match { $f: Film } return { $f.title as title } order { title } }"
walk = (
    'query walk() { match { $a: Film { title: "Rain" }  $b: Film { title: "Snow" } '
    "$a $w:next{0,} $b each $k, $_ { $k.far > 0 } by $k.far } return { $w.@cost as cost } }"
)
assert [row["title"] for row in graph.query(titles).rows] == ["Rain", "Snow", "Sun"]
assert graph.query(walk).rows == [{"cost": 5.0}]
"""
FOUND = "print(*sorted(extra for extra in MODULES if has_extra(extra)))"
ON_SPARK = """
with open("Film.csv", "w") as file:
    file.write("title\\nHail\\n")
assert graph.load("Film.csv", mode="append", engine="spark").nodes == {"Film": 1}
"""
# What each extra is wanted for; nothing here is beside the point of one.
USES = {
    "spark": ON_SPARK,
    "connect": "import pyspark.sql.connect.session",
    "server": """
program = sys.executable.rpartition("/")[0] + "/omnigraph-server"
server = subprocess.Popen(
    [program, "g", "--bind", "127.0.0.1:0", "--unauthenticated"], stdout=subprocess.PIPE, text=True
)
try:
    address = server.stdout.readline().strip().partition("=")[2]
    assert len(og.open(f"http://{address}", graph="g").query(titles)) == 3
finally:
    server.terminate()
    assert server.wait(60) == 0
""",
    "embed": """
graph.load([{"type": "Film", "data": {"title": "Fog", "blurb": "it is foggy"}}], mode="append")
shown = "query seen() { match { $f: Film { title: 'Fog' } } return { $f.meaning as m } }"
assert len(graph.query(shown.replace("'", '"')).rows[0]["m"]) == 64
""",
    "sql": "assert graph.sql('select count(*) from Film').scalar() == 3",
    "ways": "import scipy.sparse.csgraph\nassert graph.query(walk).rows == [{'cost': 5.0}]",
    "notebook": "import IPython\nassert graph.query(titles).to_pandas().shape == (3, 1)",
}
BRINGS = {"spark": {"notebook"}, "connect": {"spark", "notebook"}}
"""Extras whose modules another one has, too."""


def alone() -> dict[str, str]:
    """The environment of this process without what could lead to other packages."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}


def starts(python: str) -> bool:
    """Whether an interpreter is there and can be used."""
    if shutil.which(python) is None:
        return False
    ran = subprocess.run([python, "-c", "import venv"], check=False, capture_output=True)
    return ran.returncode == 0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    place = tmp_path_factory.mktemp("wheel")
    words = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(place), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True)
    (found,) = place.glob("*.whl")
    return found


def installed(python: str, what: str, place: Path) -> Path:
    """The interpreter of a new environment that has it."""
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    own = place / "bin" / "python"
    subprocess.run([own, "-m", "pip", "install", "--quiet", "--retries", "5", what], check=True)
    return own


def used(python: Path, script: str, cwd: Path) -> str:
    """What a script prints there."""
    ran = subprocess.run(
        [python, "-c", MAKE + script],
        cwd=cwd,
        env=alone(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def size_of(place: Path) -> int:
    """Bytes of a file or a directory."""
    if place.is_file():
        return place.stat().st_size
    return sum(one.stat().st_size for one in place.rglob("*") if one.is_file())


@pytest.mark.parametrize("python", PYTHONS)
def test_the_core(
    python: str, wheel: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if not starts(python):
        pytest.skip(f"there is no {python}")
    own = installed(python, str(wheel), tmp_path / "env")
    assert used(own, FOUND, tmp_path).split() == []
    program = own.with_name("omnigraph")
    asked = "match { $f: Film } return { $f.title } limit 1"
    shown = subprocess.run(
        [program, "query", "g", asked, "--format", "csv"],
        cwd=tmp_path, env=alone(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(shown.stdout.splitlines()) == 2
    (packages,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    sizes = {one.name: size_of(one) for one in packages.iterdir()}
    record_property(f"core on {python}, MiB", sum(sizes.values()) // 2**20)
    assert sum(size for name, size in sizes.items() if name not in LARGE) < BESIDE_LANCE


@pytest.mark.parametrize("extra", MODULES)
def test_an_extra(extra: str, wheel: Path, tmp_path: Path) -> None:
    own = installed(sys.executable, f"{wheel}[{extra}]", tmp_path / "env")
    found = set(used(own, f"{USES[extra]}\n{FOUND}", tmp_path).split())
    assert found == {extra} | BRINGS.get(extra, set())


def test_everything(wheel: Path, tmp_path: Path) -> None:
    own = installed(sys.executable, f"{wheel}[all]", tmp_path / "env")
    assert set(used(own, f"{ON_SPARK}\n{FOUND}", tmp_path).split()) == set(MODULES)
