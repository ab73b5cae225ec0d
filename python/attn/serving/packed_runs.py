"""Packed queries whose keys are cut into runs of a fixed number.

Kernels cut the keys of a batch whose sequences have equally many queries. Packed queries are
copied to one, each sequence's last query to the last row, so that they have the bits of
`attn.decode`: there a query's depend on its own keys alone, and not on how many come with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import arrays
from ..errors import ArgumentError
from ..launch import device_tensors
from ..options import readers
from ..tensors import batch_lists, tensor_views
from ..tensors.argument_checks import check_beside
from ..tensors.tensor_views import expect
from .query_rows import check_out_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from .settings import Settings

#: The bits of a NaN of e4m3 and of e5m2.
_NARROW_NAN = 0xFF
#: Tensors with a row for each query.
_OF_ROWS = ("q", "init_o", "init_lse")


def _check(tensors: dict[str, Any], lengths: Any, captures: list[Any], settings: Settings) -> None:
    """Raises ArgumentError for what a copy would not show, or say in other words."""
    q, counts = tensors["q"], tensors["cu_seqlens_q"]
    if captures or settings.score_mod or settings.mask_mod or settings.out_mod:
        raise ArgumentError("run_keys: expected no function beside it in attn.prefill, got one")
    if not (device_tensors.is_torch(q) or tensor_views.is_numpy(q)):
        raise ArgumentError(
            "run_keys: expected tensors of torch or numpy in attn.prefill, which copies them, got "
            f"{type(q).__name__}"
        )
    if len(q.shape) != 3:
        raise ArgumentError(f'tensor "q": expected rank 3, got {len(q.shape)}')
    named = {"cu_seqlens_q": counts, "kv_lengths": lengths}
    # Tensors of torch may be in host memory, where the simulator takes them.
    views = [
        device_tensors.describe(name, each)
        if device_tensors.is_torch(each)
        else tensor_views.view(name, each)
        for name, each in named.items()
    ]
    tensor_views.check_counts("cu_seqlens_q", *views)
    if batch_lists.looks_at(counts):
        batch_lists.check_counts("cu_seqlens_q", counts, q.shape[0], settings.max_seqlen_q)


def _check_output(name: str, output: Any, shape: list[int], q: Any) -> str:
    """Returns the element type of the caller's output. Raises ArgumentError unless it is a tensor
    of torch of this shape, on q's device."""
    check_beside(name, output, q)
    expect(name, "shape", shape, list(output.shape))
    return device_tensors.describe(name, output).dtype


def _read_outputs(tensors: dict[str, Any], lse: Any, out: Any) -> str | None:
    """Returns the element type of `out`, None where there is none: the kernel rounds to it.
    Raises ArgumentError for outputs that results cannot be copied to."""
    q, values = tensors["q"], tensors["v_cache"]
    has_lse = device_tensors.is_torch(lse)
    if (out is None and has_lse) or (out is not None and lse is True):
        raise tensor_views.make_output_error(out, lse)
    if has_lse:
        dtype = _check_output("lse", lse, list(q.shape[:2]), q)
        expect("lse", "elements of", "f32", dtype)
    if out is None:
        return None
    dtype = _check_output("out", out, [*q.shape[:2], values.shape[-1]], q)
    check_out_type(dtype)
    return dtype


class _Rows:
    """Where each packed query lies in a batch of `width` queries a sequence. Of a sequence with
    more than `most` queries, which only contents of a device's memory say, no query lies there
    that is behind the first `most` or before the last `width`."""

    def __init__(self, counts: Any, rows: int, most: int) -> None:
        self._is_torch = device_tensors.is_torch(counts)
        if self._is_torch:
            import torch as library

            row = library.arange(rows, dtype=counts.dtype, device=counts.device)
        else:
            import numpy as library  # type: ignore[no-redef]

            row = library.arange(rows, dtype=counts.dtype)
        self.sequences = counts.shape[0] - 1
        # Powers of two bound the number of kernels.
        self.width = 1 << (most - 1).bit_length()
        #: The place behind all others is that of queries of no sequence.
        self.spare = self.sequences * self.width
        found = library.searchsorted(counts[1:], row, side="right")
        sequence = library.clip(found, 0, max(self.sequences - 1, 0))
        # Without sequences no query is between bounds.
        first, end = counts[sequence], counts[library.clip(sequence + 1, 0, self.sequences)]
        is_there = (row >= first) & (row < end) & (row - first < most) & (end - row <= self.width)
        #: True for queries that a sequence has within its bound.
        self.is_there = is_there
        place = sequence * self.width + self.width - (end - row)
        self.place = library.where(is_there, place, self.spare)

    def spread(self, packed: Any) -> Any:
        """(rows, heads, ...) as (batch, heads, width, ...), with zeros where there is no query."""
        shape = (self.spare + 1, *packed.shape[1:])
        if self._is_torch:
            wide = packed.new_zeros(shape)
        else:
            import numpy as np

            wide = np.zeros(shape, packed.dtype)
        wide[self.place] = packed
        wide = wide[: self.spare].reshape((self.sequences, self.width, *packed.shape[1:]))
        return wide.swapaxes(1, 2)

    def _make_rows(self, heads: Any) -> Any:
        """Rows for results of no sequence."""
        shape = (self.place.shape[0], *heads.shape[2:])
        if self._is_torch:
            return heads.new_zeros(shape)
        import numpy as np

        return np.zeros(shape, heads.dtype)

    def gather(self, wide: Any, out: Any) -> Any:
        """The rows of a result, in `out` where that is given; rows that no sequence has stay as
        they were there, and are NaN in a new one."""
        if self._is_torch and wide.is_floating_point() and wide.element_size() == 1:
            import torch

            # Elements of 8 bits have neither indices nor choices in all of torch's versions.
            bits = self.gather(
                wide.view(torch.uint8), None if out is None else out.view(torch.uint8)
            )
            return bits.view(wide.dtype) if out is None else out
        heads = wide.swapaxes(1, 2)
        if self.spare == 0:
            rows = self._make_rows(heads)
        else:
            # A sequence without a place reads any row, which nobody looks at.
            flat = heads.reshape((self.spare, *heads.shape[2:]))
            rows = flat[self.place % self.spare]
        if not self._is_torch:
            # Elements of bf16 and of 8 bits may be integers to numpy.
            bits = arrays.to_bits(rows)
            bits[~self.is_there] = ~bits.dtype.type(0)
            return rows
        kept = self.is_there.reshape((-1, *[1] * (rows.dim() - 1)))
        if out is None:
            nan = float("nan") if rows.is_floating_point() else _NARROW_NAN
            return rows.masked_fill(~kept, nan)
        import torch

        out.copy_(torch.where(kept, rows, out))
        return out


def attend(
    call: Callable[..., Any],
    tensors: dict[str, Any],
    lengths: Any,
    captures: list[Any],
    settings: Settings,
    outputs: tuple[Any, Any, int | None],
) -> Any:
    """Returns the results of `attn.prefill` for sequences of `lengths` keys; `call` takes the
    batch that the queries are copied to, and the element type of `out` where that is given.
    Raises ArgumentError for what it cannot copy."""
    lse, out, stream = outputs
    _check(tensors, lengths, captures, settings)
    out_type = _read_outputs(tensors, lse, out)
    rows = _Rows(tensors["cu_seqlens_q"], tensors["q"].shape[0], settings.max_seqlen_q or 1)
    batch = {name: each for name, each in tensors.items() if name != "cu_seqlens_q"}
    for name in _OF_ROWS:
        if batch.get(name) is not None:
            batch[name] = rows.spread(batch[name])
    has_lse = device_tensors.is_torch(lse)
    wants_lse = has_lse or readers.to_bool("lse", lse)
    got = call(
        batch, captures, settings._replace(max_seqlen_q=None), out_type, wants_lse, None, stream
    )
    o, log = got if wants_lse else (got, None)
    packed = rows.gather(o, out)
    return (packed, rows.gather(log, lse if has_lse else None)) if wants_lse else packed
