"""Rows of a plan table: classes of problems that one plan was the fastest for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

#: What ranges are made of; other fields are exact.
LENGTHS = ("batch", "heads", "kv_heads", "queries", "keys")

Row = dict[str, Any]


def _get_bounds(value: Any) -> tuple[float, float] | None:
    """The numbers that a field's condition holds for; none for "dynamic" and a text."""
    if isinstance(value, list):
        return value[0], value[1]
    if isinstance(value, int):
        return value, value
    if value == "any":
        return float("-inf"), float("inf")
    sign, _, number = str(value).partition(" ")
    if sign in ("<", "<=", ">", ">=") and number.lstrip("-").isdigit():
        at = int(number) + (sign == ">") - (sign == "<")
        return (float("-inf"), at) if sign[0] == "<" else (at, float("inf"))
    return None


def _meets(mine: Any, other: Any) -> bool:
    """True if some value fulfils both conditions of a length."""
    a, b = _get_bounds(mine), _get_bounds(other)
    if a is None or b is None:
        return bool(mine == other)
    return a[0] <= b[1] and b[0] <= a[1]


def _get_rest(row: Row) -> str:
    """What rows have to agree in to be joined or to overlap."""
    rest = {name: value for name, value in row["problem"].items() if name not in LENGTHS}
    return json.dumps([row["chip"], rest], sort_keys=True)


def overlap(a: Row, b: Row) -> bool:
    """True if some problem is in the classes of both rows, which have exact fields but
    for the lengths."""
    return _get_rest(a) == _get_rest(b) and all(
        _meets(a["problem"][name], b["problem"][name]) for name in LENGTHS
    )


def _unite(a: Row, b: Row) -> Row | None:
    """A row for the least ranges with both rows' lengths."""
    problem = dict(a["problem"])
    for name in LENGTHS:
        mine, other = _get_bounds(a["problem"][name]), _get_bounds(b["problem"][name])
        if mine is None or other is None:
            if a["problem"][name] != b["problem"][name]:
                return None
            continue
        low, high = min(mine[0], other[0]), max(mine[1], other[1])
        problem[name] = low if low == high else [low, high]
    slower = max(a, b, key=lambda row: float(row["microseconds"]))
    return {**slower, "problem": problem}


def join(rows: Iterable[Row], measured: Iterable[Row]) -> list[Row]:
    """Joins rows of one plan, chip and board to rows with ranges of lengths. `measured`
    has a row for each problem that was timed, its plan "" where the compiler's own stays:
    a range holds none for which another plan was found."""
    joined: list[Row] = []
    all_measured = list(measured)
    waiting = sorted(rows, key=lambda row: [str(_get_bounds(row["problem"][n])) for n in LENGTHS])
    for index, row in enumerate(waiting):
        for number, old in enumerate(joined):
            if any(old[name] != row[name] for name in ("chip", "plan", "board")):
                continue
            if _get_rest(old) != _get_rest(row) or "rank" in old or "rank" in row:
                continue
            wide = _unite(old, row)
            others = joined[:number] + joined[number + 1 :] + waiting[index + 1 :] + all_measured
            if wide is None or any(
                other["plan"] != row["plan"] and overlap(wide, other) for other in others
            ):
                continue
            joined[number] = wide
            break
        else:
            joined.append(row)
    # Ranges that grew may hold rows of the same plan.
    return [
        row
        for number, row in enumerate(joined)
        if not any(
            overlap(row, other) and other["plan"] == row["plan"] for other in joined[:number]
        )
    ]
