"""The half of looking that looks back: schemas of the past, differences, one entity's history.

Owns those public methods, each written once. Thin: the packages below know how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.graph.access import Surface, action, state_at
from omnigraph.history.changes import Filters, Names
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.schema_contract import accepted_schema
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.limited.view import whole_of

if TYPE_CHECKING:
    from omnigraph.evolve.log import SchemaCommit
    from omnigraph.history.diff import Diff
    from omnigraph.history.entity_history import EntityHistory, SetBy
    from omnigraph.lang.schema.migration.plan import MigrationPlan


class LookingBack(Surface):
    """What a session shows of a graph's past."""

    @action("read", branch=state_at("ref"), hides=True)
    def schema_at(self, ref: str | Snapshot) -> str:
        """The source of the schema that a branch has, or that a commit was made with.

        >>> graph.schema_at("draft") == graph.schema
        True
        """
        return self._shown(ref).schema.source

    @action("read", branch="branch")
    def schema_log(self, branch: str = MAIN) -> list[SchemaCommit]:
        """The commits that changed the schema of a branch, newest first, with their steps.

        Those that merges brought along from other branches are among them.

        >>> graph.schema_log()
        [commit ... on main: the first schema]
        """
        from omnigraph.evolve.log import schema_log

        return schema_log(self._access.handle.manifest.ancestors(normalise_branch(branch)))

    @action("read", branch=state_at("a"), hides=True)
    @action("read", branch=state_at("b"), hides=True)
    def schema_diff(self, a: str | Snapshot, b: str | Snapshot) -> MigrationPlan:
        """What leads from the schema of ``a`` to that of ``b``: branches, commits or snapshots.

        >>> wanted = graph.schema + "node Genre { name: String @key }"
        >>> done = graph.apply_schema(wanted, branch="draft")
        >>> graph.schema_diff("main", "draft")
        1 step: 1 safe
        safe
          node:Genre is added (metadata only)
        """
        from omnigraph.lang.schema.migration.planner import plan_migration

        old, new = (accepted_schema(self._shown(one).schema).ir for one in (a, b))
        return plan_migration(old, new)

    @action("read", branch=state_at("a"), hides=True)
    @action("read", branch=state_at("b"), hides=True)
    def diff(
        self,
        a: str | Snapshot,
        b: str | Snapshot,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Diff:
        """What is different in ``b``: branches, commits or snapshots, in any combination.

        ``kinds`` are `node` and `edge`, ``ops`` are `insert`, `update` and `delete`; without
        any, everything counts. Rows are read when the differences are looked at.

        >>> for change in graph.diff("main", "draft"):
        ...     print(change.op, change.id, change.was("year"), change.now("year"))
        update John Wick 2014 2015
        """
        from omnigraph.history.diff import diff

        before, after = self._shown(a), self._shown(b)
        return diff(before, after, Filters(kinds, types, ops))

    @action("read", branch="branch", hides=True)
    def history(
        self,
        type: str,  # noqa: A002 - the word of the API
        id: str,  # noqa: A002 - the word of the API
        *,
        branch: str = MAIN,
        limit: int | None = None,
    ) -> EntityHistory:
        """The commits that changed one entity, newest first, with what each did to it.

        Merges are followed to where it was really changed. Of a node and an edge type of one name
        the node is meant; write `edge:Name` for the other.

        >>> for one in graph.history("Film", "John Wick", branch="draft").changes:
        ...     print(one.commit.actor, one.change.op, one.change.changed)
        ann update ('year',)
        None insert ()
        """
        from omnigraph.history.entity_history import EntityLine

        access = self._access
        return EntityLine(access.handle, branch, type, id, access.limited).history(limit)

    @action("read", branch="branch", hides=True)
    def blame(
        self,
        type: str,  # noqa: A002 - the word of the API
        id: str,  # noqa: A002 - the word of the API
        *,
        branch: str = MAIN,
    ) -> list[SetBy]:
        """Every property of one entity as it is now, with the commit that set it last.

        >>> for by in graph.blame("Film", "John Wick", branch="draft"):
        ...     print(by.property, by.value, by.commit.actor)
        title John Wick None
        year 2015 ann
        """
        from omnigraph.history.entity_history import EntityLine

        access = self._access
        return EntityLine(access.handle, branch, type, id, access.limited).blame()

    def _shown(self, named: str | Snapshot) -> Snapshot:
        """What a branch, a commit or a snapshot shows to the one who acts."""
        from omnigraph.history.diff import named_state

        state = named_state(self._access.handle, named)
        return self._access.limited(whole_of(state), state.branch)
