"""Bodies of pipelines: loads of several steps, and each of them.

Decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.wire.body import Body
from omnigraph.wire.results import LoadBody

if TYPE_CHECKING:
    from omnigraph.write.change.results import PipelineResult


class PipelineStepBody(Body, frozen=True):
    """What a step of a pipeline did, and its checks, all of which have found nothing."""

    name: str | None
    checks: tuple[str, ...]
    load: LoadBody


class PipelineBody(LoadBody, frozen=True, kw_only=True):
    """What a pipeline did: the counts of all steps, and each of them."""

    steps: list[PipelineStepBody]

    @classmethod
    def of_steps(cls, result: PipelineResult, uri: str, pipeline: str) -> PipelineBody:
        """The result of a pipeline that ran on a graph."""
        whole = LoadBody.of(result, uri=uri, pipeline=pipeline)
        told = {name: getattr(whole, name) for name in whole.__struct_fields__}
        steps = [
            PipelineStepBody(one.name, one.checks, LoadBody.of(one.load)) for one in result.steps
        ]
        return cls(**told, steps=steps)
