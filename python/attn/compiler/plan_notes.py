"""What the planner says about plans that are slower than the chip's own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import Diagnostic

#: The remark on a schedule without the chip's own matrix instructions.
_SLOWER = re.compile(r'\[Missed\] slower \| Category:attn\.plan \| Reason="((?:[^"\\]|\\.)*)"')


def find_notes(remarks: Sequence[Diagnostic]) -> tuple[str, ...]:
    """Which option each problem has that the faster schedules do not take."""
    found = (_SLOWER.match(each.message) for each in remarks)
    return tuple(each[1] for each in found if each is not None)
