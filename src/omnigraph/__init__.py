"""OmniGraph: a lakehouse graph database.

Owns the public names. Importing it stays cheap: nothing here may pull in
Arrow, Lance, Spark or the command line.
"""

from omnigraph import errors
from omnigraph.errors import OmniGraphError
from omnigraph.version import __version__

__all__ = ["OmniGraphError", "__version__", "errors"]
