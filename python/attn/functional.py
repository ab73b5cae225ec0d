"""`attn.attention`: compiles, loads and launches in one call."""

from ._functional import Modification
from ._signatures import attention, prepare

__all__ = ["Modification", "attention", "prepare"]
