"""`omnigraph policy`: what it prints, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

POLICY = """\
version: 1
groups: {team: [act-ann, act-ben], admins: [act-ann]}
protected_branches: [main]
rules:
  - id: team-read
    allow: {actors: {group: team}, actions: [read, export], branch_scope: any}
  - id: admins-merge
    allow: {actors: {group: admins}, actions: [branch_merge], target_branch_scope: protected}
"""
CASES = """\
version: 1
cases:
  - {id: reads, actor: act-ben, action: read, branch: main, expect: allow}
  - {id: merges, actor: act-ben, action: branch_merge, target_branch: main, expect: deny}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "team.yaml"
    path.write_text(POLICY)
    return path


def said_by(run: Run, *words: object) -> tuple[int, str]:
    ran = run("policy", *map(str, words))
    return ran.code, ran.out or ran.err


def test_validate(run: Run, policy: Path) -> None:
    assert said_by(run, "validate", "--policy", policy) == (
        0,
        "policy valid: bundle 'team' [2 actors]\n",
    )
    code, said = said_by(run, "validate", "--policy", policy, "--json")
    assert code == 0
    assert json.loads(said) == {"bundle": "team", "kind": "graph", "actors": 2, "rules": 2}
    policy.write_text(POLICY.replace("branch_scope: any", "branch_scop: any"))
    code, said = said_by(run, "validate", "--policy", policy)
    assert code == 1
    assert "team.yaml:6:61: rules[0].allow.branch_scop: there is no key" in said.replace("\n", "")


def test_tests(run: Run, policy: Path, tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES)
    assert said_by(run, "test", "--policy", policy, "--tests", cases) == (
        0,
        "policy tests passed: 2 cases\n",
    )
    cases.write_text(CASES.replace("deny", "allow"))
    said = "merges: expected Allow but got deny"
    assert said_by(run, "test", "--policy", policy, "--tests", cases) == (1, f"{said}\n")
    code, printed = said_by(run, "test", "--policy", policy, "--tests", cases, "--json")
    assert code == 1
    assert json.loads(printed) == {"ok": False, "cases": 2, "failures": [said]}


def test_explain(run: Run, policy: Path) -> None:
    asked = ("--actor", "act-ann", "--action", "branch-merge", "--branch", "dev")
    code, said = said_by(run, "explain", "--policy", policy, *asked, "--target-branch", "main")
    assert (code, said.splitlines()) == (
        0,
        [
            "decision: allow",
            "actor: act-ann",
            "action: branch_merge",
            "branch: dev",
            "target_branch: main",
            "matched_rule: admins-merge",
            "message: policy allowed action 'branch_merge' for actor 'act-ann'",
        ],
    )
    code, said = said_by(run, "explain", "--policy", policy, *asked, "--json")
    assert code == 0
    assert json.loads(said)["decision"] == "deny"
    assert json.loads(said)["matched_rule"] is None
    code, said = said_by(run, "explain", "--policy", policy, "--actor", "x", "--action", "eat")
    assert code == 2
    assert "the actions are read, export" in said
