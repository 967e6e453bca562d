"""What the JVMs of tests are started with.

They are young and small: the second compiler, which makes old ones fast, takes half of their time,
and a collector with threads of its own some of the rest.
"""

from __future__ import annotations

OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
