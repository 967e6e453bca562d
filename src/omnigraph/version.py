"""Version numbers: the release, and the storage format this release writes.

Owns both constants. Imports nothing, because the build reads this file.
"""

__version__ = "0.1.0"
INTERNAL_SCHEMA = 9
