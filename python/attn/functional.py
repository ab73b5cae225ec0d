"""`attn.attention`: compiles, loads and launches in one call."""

from .calls.call_arguments import Modification
from .calls.call_signatures import attention, prepare

__all__ = ["Modification", "attention", "prepare"]
