"""What kernels with checks inside report: docs/Instrument.md."""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

#: Variables of a module that attn-instrument makes.
REPORTS, SITES = "attn_reports", "attn_report_sites"
#: Words in front of the records, and of each of them.
_HEADER_WORDS, _RECORD_WORDS = 8, 8

#: What is said of the first time that a check failed.
_TEXTS = {
    "slip": "{who} sees phase {expected} of {barrier} when {seen} phases are complete",
    "hang": "{who} waits for phase {expected} of {barrier}, which has {seen} signals, and gives up",
    "signal in the wrong phase": "signal {expected} of {who} to {barrier} counts in phase {seen}",
    "signal of another slot": "{who} copies to {place} and signals slot {seen} of '{name}'",
    "write to a slot in use": "{who} writes {place}, which is free after phase {expected} of "
    "{barrier}, and has waited for phase {seen}",
    "read of a slot not waited for": "{who} reads {place}, which is written in phase {expected} "
    "of {barrier}, and has waited for phase {seen}",
    "read of a slot given back": "{who} reads {place} after its signal {before} to {barrier}",
}


class Report(NamedTuple):
    """A check that failed, at its first time."""

    #: Name of the check, a key of docs/Instrument.md's table.
    check: str
    #: `file:line:column`, or the op and its partition where there is no file.
    location: str
    kernel: str
    barrier: str
    cta: int
    warp: int
    slot: int
    #: Phase that the op is for, and what the check found instead.
    expected: int
    seen: int
    #: Of the last signal, if it is known.
    other: str | None
    #: How often the check failed.
    count: int
    text: str

    def __str__(self) -> str:
        """As MLIR prints an error and its notes."""
        lines = [f"{self.location}: error: {self.check}: {self.text}"]
        if self.other is not None:
            lines.append(f"{self.other}: note: the last signal")
        if self.count > 1:
            lines.append(f"{self.location}: note: {self.count} times in all")
        return "\n".join(lines)


def read_sites(text: bytes) -> list[dict[str, Any]]:
    """What the records stand for, from the variable's bytes."""
    sites: list[dict[str, Any]] = json.loads(text.split(b"\0", 1)[0])
    return sites


def _locate(site: dict[str, Any]) -> str:
    return site["location"] or f"{site['op']} of partition '{site['partition']}'"


def parse(words: bytes, sites: list[dict[str, Any]]) -> list[Report]:
    """The records that were filled, in the order of the program."""
    reports = []
    for index, site in enumerate(sites):
        record = struct.unpack_from("<4I2iI", words, 4 * (_HEADER_WORDS + index * _RECORD_WORDS))
        count, cta, warp, slot, expected, seen, other = record
        if count == 0:
            continue
        name = site["barrier"]
        text = _TEXTS[site["check"]].format(
            who=f"warp {warp} of CTA {cta}",
            barrier=f"'{name}'[{slot}]",
            place=f"'{site.get('buffer')}'[{slot}]",
            name=name,
            expected=expected,
            seen=seen,
            before=seen - 1,
        )
        last = _locate(sites[other - 1]) if 0 < other <= len(sites) else None
        reports.append(
            Report(
                site["check"],
                _locate(site),
                site["kernel"],
                name,
                cta,
                warp,
                slot,
                expected,
                seen,
                last,
                count,
                text,
            )
        )
    return reports
