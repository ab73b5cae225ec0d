"""Numbers of documents that a mask_mod compares: whether they are in order."""

from __future__ import annotations

import re
from typing import Any

from ..errors import ArgumentError
from ..tracing import mod_regions
from . import batch_lists

#: Forms in a region's text: a row or key as index, an element that it is the last index of, and
#: the equality of two numbers.
_INDEX = re.compile(r"(%\d+) = arith\.index_cast %(q_idx|kv_idx) : i32 to index")
_LOAD = re.compile(r"(%\d+) = memref\.load %mask_mod(\d+)\[(?:%\w+, )?(%\d+)\]")
_EQUAL = re.compile(r"arith\.cmpi eq, (%\d+), (%\d+) : i(?:32|64)")


def _find_labels(text: str) -> list[int]:
    """Which captured tensors of a mask_mod have numbers of documents, by whose order kernels
    skip blocks: those that a query and a key have to have the same one of."""
    rows = dict(_INDEX.findall(text))
    loads = {name: (int(number), rows.get(index)) for name, number, index in _LOAD.findall(text)}
    found: dict[int, None] = {}
    for some, other in _EQUAL.findall(text):
        pair = [loads[each] for each in (some, other) if each in loads]
        if {row for _, row in pair} == {"q_idx", "kv_idx"}:
            found.update(dict.fromkeys(number for number, _ in pair))
    return list(found)


def _check_order(name: str, numbers: Any) -> None:
    """Raises ArgumentError for numbers of documents that decrease along a row: kernels skip
    no blocks for these."""
    rows = numbers.tolist()
    for row, each in enumerate(rows if numbers.ndim == 2 else [rows]):
        for place, (last, next_) in enumerate(zip(each, each[1:], strict=False)):
            if next_ < last:
                where = f"[{row}, {place + 1}]" if numbers.ndim == 2 else f"[{place + 1}]"
                raise ArgumentError(
                    f'tensor "{name}": expected numbers that do not decrease, by whose order '
                    f"blocks are skipped, got {next_} after {last} at {where}"
                )


def check_labels(mod: mod_regions.Mod, first: int) -> None:
    """With ATTN_DEBUG_CHECKS raises ArgumentError for numbers of documents that decrease;
    the function's tensors are called from capture`first` on."""
    if mod.kind == "mask_mod" and batch_lists.checks_all():
        for number in _find_labels(mod.text):
            _check_order(f"capture{first + number}", mod.tensors[number])
