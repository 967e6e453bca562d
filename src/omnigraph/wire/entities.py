"""What became of one entity: the commits that changed it, and those that set its properties.

Owns the names of these bodies.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from omnigraph.wire.body import Body
from omnigraph.wire.changes import ChangeBody
from omnigraph.wire.graphs import CommitBody

if TYPE_CHECKING:
    from omnigraph.history.entity_history import EntityHistory, SetBy


class EntityChangeBody(Body, frozen=True):
    """A commit, and what it did to the entity."""

    commit: CommitBody
    change: ChangeBody


class EntityHistoryBody(Body, frozen=True):
    """The commits that changed an entity, newest first; all of them if it is complete."""

    complete: bool
    changes: list[EntityChangeBody]

    @classmethod
    def of(cls, found: EntityHistory) -> EntityHistoryBody:
        """A history."""
        changes = [
            EntityChangeBody(CommitBody.of(one.commit), ChangeBody.of(one.change))
            for one in found.changes
        ]
        return cls(found.is_complete, changes)


class SetByBody(Body, frozen=True):
    """A property with its value, and the commit that set it; null where that was reclaimed."""

    property: str
    value: Any
    commit: CommitBody | None


class BlameBody(Body, frozen=True):
    """Every property of an entity."""

    properties: list[SetByBody]

    @classmethod
    def of(cls, found: Iterable[SetBy]) -> BlameBody:
        """Who set them."""
        return cls(
            [SetByBody(one.property, one.value, CommitBody.of_any(one.commit)) for one in found]
        )
