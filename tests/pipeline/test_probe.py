"""What a probe sees of an executor, and what is said about it; clusters are in test_submitted."""

from __future__ import annotations

import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

import omnigraph as og
from omnigraph.errors import EngineError
from omnigraph.pipeline.spark import probe as probing
from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.spark.probe import NEEDED, ExecutorLook, look, require_sound_executors
from tests.pipeline.scripts import output_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Holder:
    """Something that stands for a session."""


ENGINE = SparkEngine(cast("SparkSession", Holder()), "spark://elsewhere:7077")


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(og.init(tmp_path / "graph", "node Person { name: String @key }\n").location)


def seen(uri: str) -> ExecutorLook:
    return ExecutorLook(**json.loads(look(uri)))


def said_of(found: ExecutorLook, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(probing, "probe", lambda _engine, _uri: [found])
    with pytest.raises(EngineError) as refused:
        require_sound_executors(ENGINE, "s3://b/g")
    assert "cannot do the work; nothing was begun" in str(refused.value)
    return str(refused.value)


def test_what_is_sound(root: str) -> None:
    found = seen(root)
    assert (found.python, found.executable) == (platform.python_version(), sys.executable)
    assert (found.packages.keys(), found.storage) == (NEEDED.keys(), None)
    assert dict(found.packages) == probing.wanted_packages()


def test_what_is_missing(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    found = seen(root)
    assert (found.packages["obstore"], found.packages["pyarrow"] is None) == (None, False)
    said = said_of(found, monkeypatch)
    assert "not installed: obstore==" in said
    assert "spark.archives" in said


def test_a_graph_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = seen(str(tmp_path / "none"))
    assert found.storage is not None
    said = said_of(found, monkeypatch)
    assert "cannot read the graph (StorageError: " in said
    assert "spark.executorEnv.AWS_" in said


def test_another_version(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = seen(root)
    other = ExecutorLook(
        found.host, found.executable, found.python, {**found.packages, "pylance": "1.0"}
    )
    assert "pylance is 1.0 there and " in said_of(other, monkeypatch)


def test_children_of_this_process_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "probe", None)
    require_sound_executors(SparkEngine(ENGINE.session, "local[2]"), "s3://b/g")


def test_executors_can_import_it_with_nothing_installed() -> None:
    text = """
        import sys
        for name in ("lance", "pyarrow", "numpy", "msgspec", "obstore", "ulid", "pyspark"):
            sys.modules[name] = None
        import json
        from omnigraph.pipeline.spark.probe import look

        print(json.loads(look("s3://b/g"))["packages"]["pylance"])
    """
    assert output_of(text) == ["None"]
