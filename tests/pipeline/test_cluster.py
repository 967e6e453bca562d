from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.pipeline.cluster import Cluster
from tests.pipeline.scripts import output_of

pytestmark = pytest.mark.slow


# One driver for both: it and its executors take seconds to start.
def test_executors_run_the_drivers_package_and_work_goes_on_when_one_is_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    text = """
        import sys, time
        from pathlib import Path
        import pyarrow as pa
        from omnigraph.pipeline.spark.session import SparkSettings, spark_session
        from omnigraph.pipeline.spark.session import require_shared_storage

        def parse(batches):
            import omnigraph
            from omnigraph.storage.objects.location import Location

            for batch in batches:
                uris = [Location.parse(f"file:///tmp/{n}").uri for n in batch["id"].to_pylist()]
                there = [omnigraph.__file__.rpartition("/omnigraph/")[0]] * batch.num_rows
                yield pa.RecordBatch.from_pydict({"uri": uris, "there": there})

        directory = Path(sys.argv[2])

        def wait(batches):
            from pyspark import TaskContext

            task = TaskContext.get()
            (directory / f"{task.partitionId()}-{task.attemptNumber()}").touch()
            while not (directory / "go").exists():
                time.sleep(0.05)
            yield from batches

        settings = SparkSettings(sys.argv[1], conf={"spark.executor.memory": "512m"})
        path = list(sys.path)
        with spark_session(settings) as engine:
            require_shared_storage(engine, "/tmp/graph")
            frame = engine.session.range(0, 40, numPartitions=4)
            found = frame.mapInArrow(parse, "uri string, there string").collect()
            print(engine.is_local, len({row.uri for row in found}))
            print(*{row.there.rpartition(".")[2] for row in found})
            print([entry for entry in sys.path if entry.endswith(".zip") and entry not in path])
            frame = engine.session.range(0, 400, numPartitions=4)
            rows = frame.mapInArrow(wait, "id long").collect()
            print(sorted(row.id for row in rows) == list(range(400)))
    """
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(output_of, text, cluster.url, str(tmp_path))
        # One task on each of the two cores.
        while len(list(tmp_path.iterdir())) < 2 and not work.done():
            time.sleep(0.05)
        victim = cluster.executors()[0]
        os.kill(victim, signal.SIGKILL)
        while victim in cluster.executors():
            time.sleep(0.05)
        (tmp_path / "go").touch()
        assert work.result() == ["False 40", "zip", "[]", "True"]
    assert cluster.executors() == []
    assert [path for path in tmp_path.iterdir() if path.name.endswith("-1")]
