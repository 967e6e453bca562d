"""Bodies as plain data, for comparing."""

from __future__ import annotations

import json
from typing import Any

from omnigraph.wire.body import Body, encode


def plain(body: Body) -> Any:
    """What a reader of the body finds."""
    return json.loads(encode(body))
