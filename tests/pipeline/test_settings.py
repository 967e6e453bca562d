from __future__ import annotations

import socket

import pytest

from omnigraph.errors import BadRequest
from omnigraph.pipeline.spark.settings import (
    SparkSettings,
    classic_conf,
    connect_address,
    connect_conf,
    is_local,
    shares_this_disk,
)


@pytest.mark.parametrize(
    ("master", "told"),
    [
        ("local", "local[1,3]"),
        ("local[*]", "local[*,3]"),
        ("local[4]", "local[4,3]"),
        ("local[4,1]", "local[4,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://a:7077,b:7077", "spark://a:7077,b:7077"),
        ("yarn", "yarn"),
        ("k8s://https://a:443", "k8s://https://a:443"),
    ],
)
def test_local_masters_retry_tasks_and_others_stay(master: str, told: str) -> None:
    assert classic_conf(SparkSettings(master))["spark.master"] == told


@pytest.mark.parametrize(
    "master",
    [
        *("", "loca[2]", "local[0]", "local[-1]", "local[2]x", "spark://host", "spark://"),
        *("sc://a:1", "mesos://a:1", "yarn-client", "k8s://"),
    ],
)
def test_a_master_that_is_none_is_refused(master: str) -> None:
    with pytest.raises(BadRequest, match="as a master"):
        SparkSettings(master)


@pytest.mark.parametrize("remote", ["", "localhost:15002", "spark://a:1", "sc://", "sc://a:port"])
def test_a_remote_that_is_none_is_refused(remote: str) -> None:
    with pytest.raises(BadRequest, match="sc://host:port"):
        SparkSettings(remote=remote)


def test_a_master_and_a_remote_contradict_each_other() -> None:
    with pytest.raises(BadRequest, match="not both"):
        SparkSettings("local[2]", remote="sc://a")


@pytest.mark.parametrize("key", ["spark.master", "spark.remote", "driver.memory", ""])
def test_a_setting_that_would_do_nothing_is_refused(key: str) -> None:
    with pytest.raises(BadRequest, match=r"spark\."):
        SparkSettings(conf={key: "x"})


def test_conf_overrides_every_default() -> None:
    defaults = classic_conf(SparkSettings())
    theirs = {key: "theirs" for key in defaults if key != "spark.master"}
    assert classic_conf(SparkSettings(conf=theirs)) == theirs | {"spark.master": "local[*,3]"}
    sql = connect_conf(SparkSettings(remote="sc://a"))
    assert sql["spark.sql.session.timeZone"] == "UTC"
    theirs = dict.fromkeys(sql, "theirs")
    assert connect_conf(SparkSettings(remote="sc://a", conf=theirs)) == theirs


def test_only_a_driver_on_loopback_is_bound_to_it() -> None:
    for master in ("local[*]", "spark://localhost:7077", "spark://127.0.0.1:7077"):
        assert classic_conf(SparkSettings(master))["spark.driver.host"] == "127.0.0.1"
    for master in ("yarn", "spark://a:7077", f"spark://{socket.gethostname()}:7077"):
        assert "spark.driver.host" not in classic_conf(SparkSettings(master))


def test_a_cluster_keeps_its_own_ways() -> None:
    conf = classic_conf(SparkSettings("yarn"))
    assert "spark.driver.memory" not in conf
    assert "spark.local.dir" not in conf
    assert "spark.ui.enabled" not in conf
    assert conf["spark.sql.session.timeZone"] == "UTC"
    assert conf["spark.executorEnv.LANCE_LOG"] == "error"


@pytest.mark.parametrize(
    ("master", "local", "shared"),
    [
        ("local[*,3]", True, True),
        ("local", True, True),
        ("local-cluster[2,1,1024]", False, True),
        ("spark://localhost:7077", False, True),
        ("spark://127.0.0.1:7077", False, True),
        (f"spark://{socket.gethostname()}:7077", False, True),
        ("spark://elsewhere.example:7077", False, False),
        ("spark://localhost:7077,elsewhere.example:7077", False, False),
        ("yarn", False, False),
        ("k8s://https://localhost:443", False, False),
        ("sc://localhost", False, False),
    ],
)
def test_where_tasks_run(master: str, local: bool, shared: bool) -> None:
    assert is_local(master) is local
    assert shares_this_disk(master) is shared


def test_what_is_shown_of_a_remote_has_no_token() -> None:
    assert connect_address("sc://host:443/;token=secret;use_ssl=true") == "sc://host:443"
    assert connect_address("sc://host") == "sc://host:15002"
