"""Options of a load: what becomes of rows that are wrong, and of a load that is repeated.

Owns their shape and their defaults, the same for every engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from omnigraph.errors import BadRequest
from omnigraph.write.load.changes import MODES, LoadMode
from omnigraph.write.publish.run_ids import RUN_ID

OnError = Literal["fail", "skip"]


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How to load.

    ``rejects`` is the directory for the list of rows that were left out, ``max_rejects``
    the most that may be. A second load with the ``run_id`` of a first one does nothing.
    """

    mode: LoadMode
    on_error: OnError = "fail"
    rejects: str | None = None
    max_rejects: int | None = None
    run_id: str | None = None
    dry_run: bool = False

    @property
    def notes(self) -> dict[str, Any]:
        """What the commit of the load says about them."""
        run = {} if self.run_id is None else {RUN_ID: self.run_id}
        return {"mode": self.mode, **run}

    @classmethod
    def of(
        cls,
        mode: str,
        *,
        on_error: str = "fail",
        rejects: str | None = None,
        max_rejects: int | None = None,
        run_id: str | None = None,
        dry_run: bool = False,
    ) -> LoadOptions:
        """Options as a caller spells them."""
        if max_rejects is not None and max_rejects < 0:
            raise BadRequest(f"max_rejects counts rows: {max_rejects} is less than none")
        if on_error == "fail" and max_rejects is not None:
            raise BadRequest('max_rejects is for loads that skip rows: add on_error="skip"')
        if run_id is not None and not run_id.strip():
            raise BadRequest("a run id is a name of your own for this load; it is empty")
        return cls(_load_mode(mode), _on_error(on_error), rejects, max_rejects, run_id, dry_run)


def _load_mode(mode: str) -> LoadMode:
    for known in MODES:
        if mode == known:
            return known
    raise BadRequest(f"there is no load mode {mode!r}: choose {', '.join(MODES)}")


def _on_error(wanted: str) -> OnError:
    known: tuple[OnError, ...] = get_args(OnError)
    for one in known:
        if wanted == one:
            return one
    raise BadRequest(f"on_error is one of {', '.join(known)}, not {wanted!r}")
