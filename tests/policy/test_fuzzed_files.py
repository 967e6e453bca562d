"""Policy files and their tests that somebody broke: rules, or one error of ours with its places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.policy import Request, parse_policy
from omnigraph.policy.cases import failures_of, parse_cases
from tests import fuzzing

POLICY = b"""\
version: 1
groups: {team: [ann, ben], admins: [ann]}
protected_branches: [main]
rules:
  - id: team-read
    allow:
      actors: { group: team }
      actions: [read, export]
      branch_scope: any
      hide: { Person: [salary] }
      rows: { Person: 'team = $actor' }
  - id: merge
    allow: { actors: { group: admins }, actions: [branch_merge], target_branch_scope: protected }
  - id: ask
    allow: { actors: { group: team }, actions: [invoke_query], queries: [one] }
"""
CASES = b"""\
version: 1
cases:
  - { id: a, actor: ann, action: read, branch: main, expect: allow }
  - { id: b, actor: zoe, action: branch_merge, branch: dev, target_branch: main, expect: deny }
"""


@given(fuzzing.broken(POLICY), st.sampled_from(["ann", "zoe", 'o"d', "\ud800"]))
def test_policies(data: bytes, actor: str) -> None:
    text = data.decode("utf-8", "surrogateescape")
    with fuzzing.only_our_errors("bad_request"):
        policy = parse_policy(text)
        policy.decide(Request(actor, "read", "main"))
        policy.limits(actor, "main")


@given(fuzzing.broken(CASES))
def test_cases(data: bytes) -> None:
    policy = parse_policy(POLICY.decode())
    with fuzzing.only_our_errors("bad_request"):
        failures_of(policy, parse_cases(data.decode("utf-8", "surrogateescape")))
