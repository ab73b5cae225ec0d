"""Kernels of a problem to choose from by timing."""

from __future__ import annotations

import dataclasses
import json
from typing import Any


@dataclasses.dataclass
class Candidate:
    """One kernel of a problem."""

    name: str
    plan: str
    estimate_us: float
    #: Median of all calls that were timed; None when none was.
    measured_us: float | None = None
    replays: int = 0
    #: Why it cannot be taken; empty when it can.
    error: str = ""


@dataclasses.dataclass
class Problem:
    """Kernels for one problem on one chip."""

    #: The folder's, such as "f16-d128-n4096".
    name: str
    chip: str
    #: What a table knows the problem by.
    problem: dict[str, Any]
    #: The plan that the compiler would take.
    planned: str
    candidates: list[Candidate]
    #: Name of the GPU that timed it; empty before.
    board: str = ""

    def key(self) -> str:
        """The same for the same problem on the same chip."""
        return json.dumps([self.chip, self.problem], sort_keys=True)

    def ranked(self) -> list[Candidate]:
        """Those that can be taken, fastest first: measured ones before others."""
        able = [each for each in self.candidates if not each.error]
        return sorted(
            able,
            key=lambda c: (c.measured_us is None, c.measured_us or c.estimate_us),
        )

    def find(self, plan: str) -> Candidate | None:
        return next((each for each in self.candidates if each.plan == plan), None)
