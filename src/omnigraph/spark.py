"""For programs of Spark that read graphs: `from omnigraph.spark import register`.

Owns nothing: the source itself is in the pipeline. Importing this imports no Spark.
"""

from __future__ import annotations

from omnigraph.pipeline.source import register

__all__ = ["register"]
