"""What belongs to one process."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import ArgumentTypeError


class OfProcess:
    """Objects with memory and code of a device, or locks, which no copy could share."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        name = type(self).__name__
        raise ArgumentTypeError(
            f"{name}: expected to stay in its process, got a request to copy or pickle it; make "
            "another one from the same arguments"
        )
