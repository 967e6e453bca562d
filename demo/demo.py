"""The demonstration behind `make demo`.

Owns what a newcomer sees first. Must use the public names only.
"""

from __future__ import annotations

import omnigraph

print(f"omnigraph {omnigraph.__version__}")
