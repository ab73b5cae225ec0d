"""Whether a kernel's output is right: rows of some heads in float64."""

from __future__ import annotations

import math

import torch
from gpu_cells import Cell

#: Largest relative error by element type.
TOLERANCES = {"f16": 2e-3, "bf16": 1.6e-2, "f8E4M3FN": 8e-2}
# wgmma adds products of 8-bit values in fewer bits than f32 has, and a row of few keys averages little.
LSE_TOLERANCES = {"f16": 1e-3, "bf16": 1e-3, "f8E4M3FN": 2e-3}
#: Rows of a head that are computed in float64.
ROWS = 256


def make_slopes(cell: Cell) -> torch.Tensor | None:
    """ALiBi's slopes: 2^(-8 h / H)."""
    if cell.score is None:
        return None
    heads = torch.arange(1, cell.heads + 1, dtype=torch.float32, device="cuda")
    return torch.exp2(-8.0 * heads / cell.heads)


def make_offsets(cell: Cell) -> torch.Tensor | None:
    """Cumulative lengths of packed sequences."""
    if not cell.lengths:
        return None
    total = [0]
    for length in cell.lengths:
        total.append(total[-1] + length)
    return torch.tensor(total, dtype=torch.int32, device="cuda")


def make_sinks(cell: Cell) -> torch.Tensor | None:
    """One logit for each head."""
    return torch.randn(cell.heads, device="cuda") if cell.sinks else None


def attend(cell: Cell, q, k, v, rows, head: int, slopes, sinks) -> tuple[torch.Tensor, torch.Tensor]:
    """O and LSE of some rows of one head in float64."""
    # Rows of 8-bit tensors cannot be picked.
    scores = q.double()[rows] @ k.double().T / math.sqrt(cell.d)
    i, j = rows[:, None], torch.arange(k.shape[0], device=q.device)[None, :]
    if slopes is not None:
        scores += slopes[head].double() * (j - i)
    if cell.causal or cell.window is not None:
        seen = j <= i + cell.offset
        if cell.window is not None:
            seen &= j >= i - cell.window
        scores.masked_fill_(~seen, -math.inf)
    lse = torch.logsumexp(scores, -1)
    if sinks is not None:
        lse = torch.logaddexp(lse, sinks[head].double())
    return torch.exp(scores - lse[:, None]) @ v.double(), lse


def pick_rows(count: int) -> torch.Tensor:
    """The first and last rows, and others drawn afresh."""
    if count <= ROWS:
        return torch.arange(count, device="cuda")
    drawn = torch.randint(0, count, (ROWS // 2,), device="cuda")
    ends = torch.arange(ROWS // 4, device="cuda")
    return torch.cat([ends, drawn, count - 1 - ends])


def measure_error(cell: Cell, q, k, v, o, lse, slopes, sinks=None) -> tuple[float, float]:
    """Relative error of O and the largest error of LSE, 0 if that is None, on rows of three
    heads."""
    starts, group = [0], cell.heads // cell.kv_heads
    for length in cell.lengths or (cell.rows,):
        starts.append(starts[-1] + length)
    difference = norm = worst = 0.0
    for b, head in {(0, 0), (cell.batch - 1, cell.heads - 1), (cell.batch // 2, cell.heads // 3)}:
        for start, end in zip(starts, starts[1:]):
            rows = pick_rows(end - start)
            part = slice(start, end)
            keys = part if cell.lengths else slice(0, cell.keys)
            expected, expected_lse = attend(
                cell, q[b, head, part], k[b, head // group, keys], v[b, head // group, keys],
                rows, head, slopes, sinks,
            )  # fmt: skip
            got = o[b, head, part][rows].double()
            difference += float(((got - expected) ** 2).sum())
            norm += float((expected**2).sum())
            if lse is not None:
                error = (lse[b, head, part][rows].double() - expected_lse).abs().max()
                worst = max(worst, float(error))
    return math.sqrt(difference / norm), worst


def check(cell: Cell, q, k, v, o, lse, slopes, sinks=None) -> tuple[float, float]:
    """The errors of measure_error. Raises ValueError for an output that is wrong or that nobody
    wrote."""
    if not bool(torch.isfinite(o).all()) or not bool(torch.isfinite(lse).all()):
        raise ValueError("an element of O or LSE is not finite, or was not written")
    error, worst = measure_error(cell, q, k, v, o, lse, slopes, sinks)
    if not error <= TOLERANCES[cell.dtype] or not worst <= LSE_TOLERANCES[cell.dtype]:
        raise ValueError(f"O differs by {error:.1e}, LSE by {worst:.1e} from float64")
    return error, worst
