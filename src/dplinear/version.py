"""The version of this library, which certificates and pages carry.

In a room of its own: `dplinear` itself re-exports every room, and no room may import them all.
"""

__version__ = "0.1.0.dev3"
