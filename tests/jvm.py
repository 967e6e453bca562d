"""What the JVMs of tests are started with.

They are young: the second compiler, which makes old ones fast, takes half of their time.
"""

from __future__ import annotations

OPTIONS = "-XX:TieredStopAtLevel=1"
