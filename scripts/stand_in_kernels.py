"""Kernels of Triton's whose launches scripts/stand-in-costs.py measures."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

TILE = 128


@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(o + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def copy(x, o, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i))


@triton.jit
def multiply_tiles(a, b, c, n, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(0, n, DEPTH):
        left = tl.load(a + rows[:, None] * n + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * n + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


def multiply(a: Any, b: Any, c: Any) -> None:
    """Multiplies square matrices of f16 whose extent is a multiple of TILE."""
    n = a.shape[0]
    multiply_tiles[(n // TILE, n // TILE)](a, b, c, n, TILE=TILE, DEPTH=64, num_warps=4)
