"""`omnigraph submit`: another command as an application of Spark.

Owns printing the command of spark-submit, or running it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import write_note, write_text


@click.command("submit", cls=VerbCommand)
@click.argument("arguments", metavar="COMMAND [ARGUMENT]…", nargs=-1, required=True)
@click.option("--master", metavar="URL", help="The cluster; that of spark-defaults if not given.")
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    default="client",
    help="Where the driver runs: here, or on the cluster.",
)
@click.option(
    "--executor-cores",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    help="How many tasks an executor runs at once; its memory follows.",
)
@click.option(
    "--package", metavar="FILE.zip", help="Write this package there, for a driver that lacks it."
)
@click.option("--environment", metavar="FILE.tar.gz", help="An environment that executors run in.")
@click.option("--conf", "conf", metavar="KEY=VALUE", multiple=True, help="A setting of Spark.")
@click.option("--run", is_flag=True, help="Run it; it is only printed if not given.")
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    arguments: tuple[str, ...],
    master: str | None,
    deploy_mode: str,
    executor_cores: int,
    package: str | None,
    environment: str | None,
    conf: tuple[str, ...],
    run: bool,
) -> int | None:
    """Print the spark-submit command that runs another command of ours on a cluster.

    Write `--` before COMMAND, such as
    `omnigraph submit --master spark://host:7077 -- load GRAPH --data DATA --engine spark`.
    """
    from omnigraph.cli import submitted
    from omnigraph.pipeline.spark.engine import write_archive
    from omnigraph.pipeline.spark.submission import Submission, parse_conf, spark_home

    if package is not None:
        write_archive(Path(package))
    submission = Submission(
        arguments,
        master,
        deploy_mode,
        executor_cores,
        package,
        environment,
        parse_conf(conf),
    )
    words = submission.command(submitted.__file__)
    # The one of pyspark does not find itself without it.
    home = spark_home()
    said = f"SPARK_HOME={shlex.quote(home)} {shlex.join(words)}"
    if not run:
        write_text(said)
        return None
    from omnigraph.pipeline.spark.jvm import find_java

    if not scope.quiet:
        write_note(said)
    own = {"JAVA_HOME": str(find_java().home), "SPARK_HOME": home}
    return subprocess.run(words, env={**os.environ, **own}, check=False).returncode  # noqa: S603
