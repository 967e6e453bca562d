"""`omnigraph policy`: check a policy file, run its tests, and ask it what somebody may do.

Owns the rendering, and where a bundle comes from: a file, or a cluster. The rules live in
`omnigraph.policy`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.configured import layers_of
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.wire.policies import DecisionBody, PolicyBody, PolicyTestsBody

if TYPE_CHECKING:
    from omnigraph.policy.compiled import CompiledPolicy

_FILE = click.Path(path_type=Path)
_policy_option = click.option(
    "--policy", "file", type=_FILE, help="The policy, a YAML file; else that of --cluster."
)


@click.group("policy", cls=VerbGroup)
def command() -> None:
    """Check a policy, test it, and ask it what somebody may do."""


@command.command("validate", cls=VerbCommand)
@_policy_option
@json_option
@click.pass_obj
def validate(scope: CommandScope, *, file: Path | None, as_json: bool) -> None:
    """Check a policy file, and say how many actors it names.

    Every mistake is told with its line and column. Exits with 1 if there is one.
    """
    policy = _bundle(scope, file).file
    body = PolicyBody(policy.name, policy.kind, len(policy.actors), len(policy.rules))
    if as_json:
        write_json(body)
    else:
        write_text(f"policy valid: bundle '{body.bundle}' [{body.actors} actors]")


@command.command("test", cls=VerbCommand)
@_policy_option
@click.option("--tests", type=_FILE, required=True, help="What has to be decided, a YAML file.")
@json_option
@click.pass_obj
def test(scope: CommandScope, *, file: Path | None, tests: Path, as_json: bool) -> int:
    """Compare what a policy decides with what a file of tests expects.

    Exits with 1 if it decides otherwise anywhere.
    """
    from omnigraph.policy.cases import failures_of, read_cases

    cases = read_cases(tests)
    failures = failures_of(_bundle(scope, file), cases)
    if as_json:
        write_json(PolicyTestsBody(not failures, len(cases), tuple(failures)))
    elif failures:
        write_text("\n".join(failures))
    else:
        write_text(f"policy tests passed: {len(cases)} cases")
    return 1 if failures else 0


@command.command("explain", cls=VerbCommand)
@_policy_option
@click.option("--actor", "who", metavar="ACTOR", required=True, help="Who wants to do it.")
@click.option(
    "--action", metavar="ACTION", required=True, help="What, such as read or schema-apply."
)
@click.option("--branch", metavar="B", help="The branch that is read or changed, or forked.")
@click.option("--target-branch", metavar="B", help="The branch that is made or written by it.")
@click.option("--query", metavar="NAME", help="The stored query that is to be invoked.")
@json_option
@click.pass_obj
def explain(
    scope: CommandScope,
    *,
    file: Path | None,
    who: str,
    action: str,
    branch: str | None,
    target_branch: str | None,
    query: str | None,
    as_json: bool,
) -> None:
    """Show whether a policy allows something, and by which rule.

    A denial is an answer, and no failure.
    """
    from omnigraph.policy.compiled import Request
    from omnigraph.policy.rules import ACTIONS

    name = action.replace("-", "_")
    if name not in ACTIONS:
        known = ", ".join(one.replace("_", "-") for one in ACTIONS)
        raise click.UsageError(f"there is no action {action}: the actions are {known}")
    decided = _bundle(scope, file).decide(Request(who, name, branch, target_branch, query))
    body = DecisionBody(
        "allow" if decided.is_allowed else "deny",
        who,
        name,
        branch,
        target_branch,
        decided.matched_rule,
        decided.message,
    )
    if as_json:
        write_json(body)
        return
    lines = {
        "decision": body.decision,
        "actor": body.actor,
        "action": body.action,
        "branch": body.branch,
        "target_branch": body.target_branch,
        "matched_rule": body.matched_rule,
        "message": body.message,
    }
    write_text("\n".join(f"{name}: {value or '-'}" for name, value in lines.items()))


def _bundle(scope: CommandScope, file: Path | None) -> CompiledPolicy:
    """The policy that a command is about: a file, or what was applied to a cluster."""
    if file is not None:
        from omnigraph.policy.parse import load

        return load(file)
    from omnigraph.cli.options.cluster import bundle_of, configured_cluster

    if configured_cluster(scope) is None:
        return _of_project(scope)
    return bundle_of(scope).policy()


def _of_project(scope: CommandScope) -> CompiledPolicy:
    """The policy of a graph of the project; that of the older dialect is of the one it serves."""
    from omnigraph.policy.parse import load

    layers = layers_of(scope)
    place, project = layers.place, layers.project
    if project is None or place is None or place.kind != "graph":
        raise click.UsageError(
            "which policy? give --policy FILE, --cluster DIR|URI, or --graph NAME in a project"
        )
    path = project.policy_of(project.graph(place.target))
    if path is None:
        raise click.UsageError(f"the graph '{place.target}' of {project.path.name} has no policy")
    return load(path, "graph")
