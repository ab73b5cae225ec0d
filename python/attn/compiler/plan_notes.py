"""What the planner says about plans that are slower than the chip's own, and about masks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import Diagnostic

#: The remark on a schedule without the chip's own matrix instructions.
_SLOWER = re.compile(r'\[Missed\] slower \| Category:attn\.plan \| Reason="((?:[^"\\]|\\.)*)"')
#: Where a condition of mask_mod went, or why it stays.
_MASK = re.compile(
    r"\[\w+\] (?:mask|key-range|kept) \| Category:attn\.read-masks \| "
    r'(?:Remark|Reason)="((?:[^"\\]|\\.)*)"'
)


def find_notes(remarks: Sequence[Diagnostic]) -> tuple[str, ...]:
    """Which option each problem has that the faster schedules do not take, then what became of
    each condition of mask_mod."""
    slower = [each[1] for each in map(_SLOWER.match, [each.message for each in remarks]) if each]
    masks = [each[1] for each in map(_MASK.match, [each.message for each in remarks]) if each]
    return (*slower, *[f"mask_mod: {text}" for text in masks])
