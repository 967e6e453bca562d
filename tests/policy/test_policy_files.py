"""Policy files: what may stand in them, and what is said of everything else."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from omnigraph import errors
from omnigraph.policy import Request, load, parse_policy
from omnigraph.policy.cases import failures_of, parse_cases
from omnigraph.policy.rules import ACTIONS, GRAPH_ACTIONS, SERVER_ACTIONS

HEAD = "version: 1\ngroups: {team: [act-ann, act-ben], admins: [act-ann]}\nrules:\n"


def rule(allow: str, id_: str = "r") -> str:
    return f"  - id: {id_}\n    allow: {{actors: {{group: team}}, {allow}}}\n"


BROKEN = {
    "version: 2\nrules: []": "p.yaml:1:10: version: version 2 is not known: write `version: 1`",
    "rules: []": "p.yaml:1:1: the key `version` is missing",
    "version: 1": "p.yaml:1:1: the key `rules` is missing",
    "": "p.yaml is empty",
    "version: [1": "p.yaml is not YAML: line 1, column 12: expected ',' or ']'",
    "version: 1\nversion: 1\nrules: []": "p.yaml:2:1: version: this is written twice",
    "version: 1\nruls: []\nrules: []": "ruls: there is no key `ruls` here; did you mean `rules`?",
    "version: 1\ngroups: {'': [a]}\nrules: []": "p.yaml:2:10: groups: a name must not be blank",
    "version: 1\ngroups: {t: []}\nrules: []": "groups.t: a group has at least one actor",
    "version: 1\ngroups: {t: [' ']}\nrules: []": "groups.t[0]: this must not be blank",
    "version: 1\nprotected_branches: ['']\nrules: []": "protected_branches[0]: this must not be",
    "version: 1\nprotected_branches: ['a b']\nrules: []": "protected_branches[0]: ",
    HEAD + rule("actions: [read]", "' '"): "rules[0].id: this must not be blank",
    HEAD + rule("actions: [read]") * 2: "p.yaml:6:9: rules[1].id: there is another rule `r`",
    HEAD + rule("actions: []"): "rules[0].allow.actions: a rule lists at least one action",
    HEAD + rule("actions: [reed]"): "actions[0]: `reed` is not known here; did you mean `read`?",
    HEAD + rule("actions: [quuxxyz]"): "actions[0]: `quuxxyz` is not known here: known are ",
    HEAD + "  - id: r\n    allow: {actors: {group: tem}, actions: [read]}": "did you mean `team`?",
    HEAD + "  - id: r\n    allow: {actors: [team], actions: [read]}": "this must be a mapping",
    HEAD + "  - id: r\n    allow: {actions: [read]}": "allow: the key `actors` is missing",
    HEAD + "  - id: r\n    deny: {}": "there is no key `deny` here",
    HEAD
    + rule("actions: [read], branch_scope: any, target_branch_scope: any"): "a rule has one scope",
    HEAD + rule("actions: [read], branch_scope: some"): "`some` is not known here; known",
    HEAD + rule("actions: [read, branch_merge], branch_scope: any"): "`branch_merge` takes no "
    "`branch_scope`: its scope is `target_branch_scope`",
    HEAD
    + rule("actions: [admin], branch_scope: any"): "`admin` takes no `branch_scope`, or any other",
    HEAD + rule("actions: [graph_list], branch_scope: any"): "`graph_list` takes no `branch_scope`",
    HEAD + rule("actions: [read, graph_list]"): "cannot be in one rule",
    HEAD
    + rule("actions: [read]", "a")
    + rule("actions: [graph_list]", "b"): "put actions on a server into a file of their own",
    HEAD + rule("actions: [read], queries: [q]"): "`queries` goes with `invoke_query` alone",
    HEAD + rule("actions: [invoke_query], queries: []"): "name at least one query",
    HEAD + rule("actions: [change], types: [A]"): "`types` limits what `read` shows",
    HEAD + rule("actions: [read], types: []"): "name at least one type",
    HEAD + rule("actions: [read], types: [A], hide: {B: [x]}"): "B is not among the `types`",
    HEAD + rule("actions: [read], hide: {B: x}"): "hide.B: this must be a list, and is a text",
    HEAD + rule("actions: [read], rows: {B: ''}"): "rows.B: this must not be blank",
}


@pytest.mark.parametrize("source", BROKEN, ids=range(len(BROKEN)))
def test_what_is_wrong_is_said_with_its_place(source: str, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(source)
    with pytest.raises(errors.BadRequest) as raised:
        load(path)
    assert BROKEN[source] in raised.value.message.replace(str(path), "p.yaml")


def test_all_that_is_wrong_is_said_at_once() -> None:
    text = HEAD + rule("actions: [reed], branch_scope: some") + rule("actions: [read]")
    with pytest.raises(errors.BadRequest) as raised:
        parse_policy(text)
    assert [problem["line"] for problem in raised.value.details["problems"]] == [5, 5]
    assert raised.value.message.endswith("2 problems")


def test_a_file_is_for_graphs_or_for_a_server(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text(HEAD + rule("actions: [graph_list]"))
    assert load(path, "server").kind == "server"
    assert load(path).may_list_graphs("act-ann")
    assert not load(path).may_list_graphs("zoe")
    assert not load(path).may_list_graphs(None)
    assert load(path).decide(Request("act-ann", "graph_list")).is_allowed
    assert not load(path).decide(Request("act-ann", "read")).is_allowed
    path.write_text(HEAD + rule("actions: [config_manage]"))
    assert load(path, "server").decide(Request("act-ann", "config_manage")).is_allowed
    assert not load(path).decide(Request("act-ann", "graph_list")).is_allowed
    with pytest.raises(errors.BadRequest, match="are on a server, and a policy of a graph"):
        load(path, "graph")
    with pytest.raises(errors.BadRequest, match="cannot read"):
        load(tmp_path / "missing.yaml")


def test_every_action_is_known() -> None:
    policy = parse_policy(HEAD + rule(f"actions: [{', '.join(GRAPH_ACTIONS)}]"))
    for action in ACTIONS:
        allowed = policy.decide(Request("act-ann", action)).is_allowed
        assert allowed == (action not in SERVER_ACTIONS), action


def test_what_is_said_of_a_decision() -> None:
    policy = parse_policy(
        HEAD
        + rule("actions: [read]", "z")
        + rule("actions: [read, export]", "a")
        + rule('actions: [invoke_query], queries: ["odd \\" name"]', "q")
    )
    decided = policy.decide(Request("act-ben", "read", "main"))
    assert (decided.matched_rule, decided.message) == (
        "a",
        "policy allowed action 'read' for actor 'act-ben'",
    )
    with pytest.raises(errors.PolicyDenied) as denied:
        policy.authorize("act-ben", "branch_merge", "dev", " main ")
    assert denied.value.message == (
        "policy denied action 'branch_merge' on branch 'dev' targeting branch 'main' "
        "for actor 'act-ben'"
    )
    with pytest.raises(errors.PolicyDenied, match="action 'read' for unknown actor 'zoe'"):
        policy.authorize("zoe", "read", "main", None)
    policy.authorize("act-ann", "invoke_query", query='odd " name')
    pickle.loads(pickle.dumps(policy)).authorize_query("act-ann", 'odd " name')  # noqa: S301 - own
    for query in (None, "odd", "*"):
        with pytest.raises(errors.PolicyDenied):
            policy.authorize("act-ann", "invoke_query", query=query)


def test_cases_say_where_a_policy_decides_otherwise() -> None:
    policy = parse_policy(HEAD + rule("actions: [read]"))
    cases = parse_cases(
        """
version: 1
cases:
  - {id: reads, actor: act-ann, action: read, branch: main, expect: allow}
  - {id: writes, actor: act-ann, action: change, branch: main, expect: allow}
  - {id: stranger, actor: zoe, action: read, expect: allow}
  - {id: read-denied, actor: act-ben, action: read, expect: deny}
"""
    )
    assert failures_of(policy, cases) == [
        "writes: expected Allow but got deny",
        "stranger: expected Allow but got deny",
        "read-denied: expected Deny but got allow",
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("version: 1", "the key `cases` is missing"),
        ("version: 1\ncases: [{id: a}]", "the key `actor` is missing"),
        ("version: 1\ncases: [{id: a, actor: ' ', action: read, expect: deny}]", "must not be"),
        (
            "version: 1\ncases: [{id: a, actor: b, action: read, expect: no}]",
            "known here: `allow`",
        ),
        ("version: 1\ncases: [{id: a, actor: b, action: red, expect: deny}]", "mean `read`?"),
        ("version: 1\ncases: [{id: a, actor: b, action: read, expect: deny, on: x}]", "`on`"),
        (
            "version: 1\ncases:\n" + "  - {id: a, actor: b, action: read, expect: deny}\n" * 2,
            "there is another case `a`",
        ),
    ],
)
def test_a_tests_file_is_checked(source: str, said: str) -> None:
    with pytest.raises(errors.BadRequest) as raised:
        parse_cases(source)
    assert said in raised.value.message
