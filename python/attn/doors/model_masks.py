"""The masks of transformers' models, as one object for all layers of a step."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask

from ..errors import AttnError
from ..tracing.mod_regions import Mod, trace
from . import host_masks


class Mask(BlockMask):
    """In the place of a mask's tensor: options of `attn.attention` and a function.

    A BlockMask for transformers, which hands such on as they are; it has no blocks."""

    def __init__(
        self, shape: tuple[int, int, int, int], aligned: Any, function: Any, make: Any
    ) -> None:
        self._shape = shape
        #: Causality and window.
        self.aligned: host_masks.Aligned = aligned
        self._function = function
        self._make = make
        #: The places of sequences that the mask was last asked for within, and that mask.
        self._packed: tuple[torch.Tensor, torch.Tensor | None, Mask] | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:  # type: ignore[override]
        """(batch, 1, queries, keys)."""
        return self._shape

    def __repr__(self) -> str:
        kind = "a function" if self._function else "options"
        return f"<attn.hf mask {self._shape}: {self.aligned}, {kind}>"

    def to(self, *args: Any, **kwargs: Any) -> Mask:  # type: ignore[override]
        """The mask itself: what it reads is where the model is."""
        return self

    def contiguous(self, *args: Any, **kwargs: Any) -> Mask:
        """The mask itself, as a generation asks for its tensors to be copied."""
        return self

    clone = detach = contiguous

    @functools.cached_property
    def mod(self) -> Mod | None:
        """What the options do not say, traced once."""
        return None if self._function is None else trace("mask_mod", self._function)

    def within(self, starts: torch.Tensor, key_starts: torch.Tensor | None = None) -> Mask:
        """Returns the mask within sequences that lie one after the other: `starts`, i32
        (sequences + 1), says where each begins and the last one ends; all layers of a step get
        the same one. Raises AttnError for `key_starts`, the same of the keys, that differ: their
        comparison waits for the device, once."""
        if self._packed is not None:
            known, known_keys, made = self._packed
            if known is starts and known_keys is key_starts:
                return made
        if key_starts is not None and key_starts is not starts:
            if key_starts.shape != starts.shape or not bool((key_starts == starts).all()):
                raise AttnError(
                    "cu_seq_lens_k: expected the same as cu_seq_lens_q beside a mask that is a "
                    "function, got others; give the layers a tensor as attention_mask, and no "
                    "cu_seq_lens_q and cu_seq_lens_k"
                )
        rows = torch.arange(self._shape[3], device=starts.device)
        numbers = torch.searchsorted(starts[1:].contiguous(), rows, right=True).to(torch.int32)
        same = host_masks.make_same(numbers)
        function = same if self._function is None else host_masks.join([self._function, same])
        found = Mask(self._shape, self.aligned, function, self._make)
        self._packed = starts, key_starts, found
        return found

    def make_tensor(self) -> torch.Tensor | None:
        """The mask as bools, for torch's own attention."""
        made: torch.Tensor | None = self._make()
        return made


def _read_padding(mask: Any, kv_length: int, kv_offset: int, last: Any) -> Any:
    """Returns the keys that are seen, bools (batch, keys), those behind the end of `mask` not among
    them; None where nothing is hidden that a query, the last one of which stands at key `last`,
    would see: None where queries see keys behind them. Steps whose window has left the hidden keys
    behind read them too: the kernel of the steps before does."""
    if mask is None:
        return None
    missing = kv_offset + kv_length - mask.shape[1]
    if mask.all() and (missing <= 0 or (last is not None and int(last) < mask.shape[1])):
        return None
    if missing > 0:
        mask = torch.nn.functional.pad(mask, (0, missing))
    return mask[:, kv_offset : kv_offset + kv_length].to(torch.bool).contiguous()


def _make_offsets(q_offset: Any, kv_offset: Any, device: Any) -> torch.Tensor:
    """Returns where queries and keys begin, i32 (2) on the device."""
    if isinstance(q_offset, int) and isinstance(kv_offset, int):
        return torch.tensor([q_offset, kv_offset], dtype=torch.int32, device=device)
    places = [torch.as_tensor(each, device=device).reshape(()) for each in (q_offset, kv_offset)]
    return torch.stack(places).to(torch.int32)


def make_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: Any = 0,
    mask_function: Callable[..., Any] | None = None,
    attention_mask: Any = None,
    device: Any = "cpu",
    allow_is_causal_skip: bool = True,
    **others: Any,
) -> Mask:
    """The mask of a step, as transformers' masking_utils ask for it. `allow_is_causal_skip` is
    False for a cache that has all of its places from the start."""
    from transformers import masking_utils

    function = mask_function or masking_utils.causal_mask_function
    parts = host_masks.split(function)
    # A tensor in host memory is as good as a number; one on a device would be waited for.
    if isinstance(q_offset, torch.Tensor) and q_offset.device.type == "cpu" and q_length > 1:
        q_offset = int(q_offset)
    is_known = isinstance(q_offset, int) and isinstance(kv_offset, int)
    # All steps of a static cache are a kernel's, which reads the place of the query: options would
    # say those of a full one only.
    has_options = is_known and (q_length > 1 or allow_is_causal_skip)
    aligned = (
        host_masks.align(parts, q_length, kv_length, q_offset - kv_offset) if has_options else None
    )
    functions = list(parts.rest) if aligned is not None else host_masks.make_parts(parts)
    offsets = None
    if functions and not (is_known and q_offset == kv_offset == 0):
        offsets = _make_offsets(q_offset, kv_offset, device)
    last = q_offset + q_length - 1 if parts.causal else None
    padding = _read_padding(attention_mask, kv_length, int(kv_offset), last)
    seen = host_masks.join(functions, offsets, padding)

    def make_tensor() -> Any:
        return masking_utils.sdpa_mask(
            batch_size, q_length, kv_length, q_offset, kv_offset, function, attention_mask,
            allow_is_causal_skip=False, device=device,
        )  # fmt: skip

    shape = (batch_size, 1, q_length, kv_length)
    mask = Mask(shape, aligned or host_masks.Aligned(), seen, make_tensor)
    # Here, where no compiler of torch reads along. What cannot be traced is the layers' to tell.
    with contextlib.suppress(AttnError):
        mask.mod  # noqa: B018
    return mask
