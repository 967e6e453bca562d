from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import omnigraph
from omnigraph.pipeline.spark.engine import (
    SparkEngine,
    package_archive,
    ship_package,
    write_archive,
)


def test_the_archive_is_the_package_and_nothing_else(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        names = archive.namelist()
    root = Path(omnigraph.__file__).parent
    kept = [
        path.relative_to(root.parent).as_posix()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert sorted(names) == sorted(kept)
    assert "omnigraph/py.typed" in names


def test_equal_sources_make_equal_archives(tmp_path: Path) -> None:
    write_archive(tmp_path / "one.zip")
    write_archive(tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.slow
def test_the_package_works_from_its_archive(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import omnigraph, omnigraph.storage.objects.location, omnigraph.write.rules.row_rules\n"
        "print(omnigraph.__file__)"
    )
    archive = package_archive()
    ran = subprocess.run(
        [sys.executable, "-c", script, archive],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == f"{archive}/omnigraph/__init__.py"


@pytest.mark.slow
def test_a_local_engine_needs_no_archive(spark_engine: SparkEngine) -> None:
    ship_package(spark_engine)
    listed = spark_engine.session.sparkContext.listFiles
    assert not [name for name in listed if "omnigraph" in name]
