"""`omnigraph verify`: whether everything that a graph has published is there and right.

Owns the rendering only; what is damaged is the engine's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text

if TYPE_CHECKING:
    from omnigraph.maintain.verify.report import BranchVerdict, Finding, VerifyReport


@click.command("verify", cls=VerbCommand)
@uri_argument
@click.option("--deep", is_flag=True, help="Read every data file against its checksum.")
@click.option("--branch", metavar="B", help="Look at this branch alone.")
@json_option
@click.pass_obj
def command(
    scope: CommandScope, *, uri: str | None, deep: bool, branch: str | None, as_json: bool
) -> int:
    """Check that everything a graph has published is there and right.

    Looks at the manifest, the files of every commit that is kept, the rows and the indexes of
    every branch. Nothing is written. Exits with 1 if something is damaged.
    """
    from omnigraph.graph import verify

    target = target_of(scope, uri)
    report = verify(target.uri, deep=deep, branch=branch)
    if as_json:
        from omnigraph.wire.reports import VerifyBody

        write_json(VerifyBody.of(report, target.uri))
    else:
        write_text(_text(report))
    return 0 if report.is_sound else 1


def _text(report: VerifyReport) -> str:
    lines = [line for finding in report.findings for line in _finding(finding)]
    lines += [_branch(branch) for branch in report.branches]
    looked = report.looked
    lines.append(
        f"looked at {looked.commits} commits, {looked.table_versions} versions of tables, "
        f"{looked.files} files, {looked.rows} rows, {looked.index_values} values of indexes"
    )
    if report.deep:
        lines.append(
            f"compared {looked.checksums} files with their checksums; {looked.unverified} have none"
        )
    count = len(report.damage)
    problems = f"{count} problem{'' if count == 1 else 's'}"
    lines.append("sound" if report.is_sound else f"damaged: {problems}")
    return "\n".join(lines)


def _finding(finding: Finding) -> list[str]:
    lines = [f"{finding.severity} {finding.kind}: {finding.message}"]
    if finding.path is not None:
        lines.append(f"  at: {finding.path}")
    if finding.commits:
        more = finding.commit_count - len(finding.commits)
        lines.append(f"  commits: {_listed(finding.commits, more)}")
    if finding.entity_count:
        more = finding.entity_count - len(finding.entities)
        lines.append(f"  entities: {_listed(finding.entities, more)}")
    return lines


def _listed(names: tuple[str, ...], more: int) -> str:
    if not names:
        return str(more)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _branch(branch: BranchVerdict) -> str:
    if branch.is_whole:
        return f"branch {branch.branch}: whole, {branch.commits} commits"
    if branch.newest_whole_commit_id is None:
        return f"branch {branch.branch}: damaged, no commit of it is known to be whole"
    return f"branch {branch.branch}: damaged, whole at commit {branch.newest_whole_commit_id}"
