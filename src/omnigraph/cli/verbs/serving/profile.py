"""`omnigraph profile`: the named scopes of the person at the keyboard.

Owns what is said of each; what they are is the configuration's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.configured import operator_config
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table
from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.config.operator import OperatorConfig, Profile
    from omnigraph.wire.operator import ProfileBody, ProfileShownBody


@click.group("profile", cls=VerbGroup)
def command() -> None:
    """Look at the configured profiles."""


@command.command("list", cls=VerbCommand)
@json_option
def list_profiles(*, as_json: bool) -> None:
    """List the profiles, and what each of them means."""
    from omnigraph.config.operator import active_profile
    from omnigraph.wire.operator import ProfilesBody

    config, active = operator_config(), active_profile(None)
    found = [_body(profile, active) for _, profile in sorted(config.profiles.items())]
    if as_json:
        write_json(ProfilesBody(found))
        return
    columns = ("profile", "scope", "target", "graph", "active")
    rows = [
        (one.name, one.scope_kind, one.target, one.default_graph, "yes" if one.active else "")
        for one in found
    ]
    write_text(render_table(columns, rows))


def _body(profile: Profile, active: str | None) -> ProfileBody:
    from omnigraph.wire.operator import ProfileBody

    is_valid = profile.problem is None
    kind, target = profile.binding if is_valid else ("invalid", None)
    return ProfileBody(
        profile.name,
        None if target is None else f"{kind}: {target}",
        kind,
        target,
        is_valid,
        profile.problem,
        profile.default_graph,
        profile.name == active,
    )


@command.command("show", cls=VerbCommand)
@click.argument("name", required=False)
@json_option
def show_profile(*, name: str | None, as_json: bool) -> None:
    """Show what a profile means; without a NAME the active one, or the defaults."""
    from omnigraph.config.operator import active_profile

    config = operator_config()
    shown = _shown(config, active_profile(name))
    if as_json:
        write_json(shown)
        return
    lines = {
        "profile": shown.name,
        "scope": shown.scope_kind,
        "target": shown.target,
        "endpoint": shown.endpoint,
        "graph": shown.default_graph,
        "output": shown.output_format,
    }
    write_text("\n".join(f"{key}: {value}" for key, value in lines.items() if value is not None))


def _shown(config: OperatorConfig, name: str | None) -> ProfileShownBody:
    from omnigraph.wire.operator import ProfileShownBody

    defaults = config.defaults
    if name is None:
        kind = "server" if defaults.server else "store" if defaults.store else "none"
        target, graph = defaults.server or defaults.store, defaults.default_graph
    else:
        profile = config.profile(name)
        kind, target = profile.binding
        graph = profile.default_graph
    return ProfileShownBody(
        name or "(defaults)",
        kind,
        target,
        _endpoint(config, kind, target),
        graph,
        defaults.output or "table",
    )


def _endpoint(config: OperatorConfig, kind: str, target: str | None) -> str | None:
    """The address that a target comes down to, where that is known."""
    if target is None:
        return None
    if kind == "cluster":
        return config.clusters.get(target, target)
    if kind == "store":
        return target
    from omnigraph.cli.options.served import address_of

    try:
        return str(address_of(target, config))
    except OmniGraphError:
        return None
