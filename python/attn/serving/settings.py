"""What a caller of `attn.decode` and its like says beside the tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import ArgumentError
from ..options import readers
from ..record import TensorView
from ..tracing import mod_regions
from ..tracing.captured_reads import Spec
from ..tracing.mod_regions import Regions
from . import decode_problem


def check_partials(partials: Any) -> str:
    """The element type of the results of runs, which the launch merges."""
    if readers.to_text("partials", partials) not in ("auto", "f32", "f16", "bf16"):
        raise ArgumentError(f"partials: expected auto, f32, f16 or bf16, got {partials!r}")
    return str(partials)


class Settings(NamedTuple):
    """What a caller says beside the tensors, checked."""

    layout: str
    causal: bool
    window: tuple[int, int] | None
    softcap: float | None
    scale: float | None
    kv_splits: int | None
    #: Of the latent form, the first columns of the keys that are the values.
    value_dim: int | None = None
    #: Of packed queries, the most of a sequence.
    max_seqlen_q: int | None = None
    #: Texts of the regions; what they read is among the tensors of a call.
    score_mod: str = ""
    mask_mod: str = ""
    #: Element type of an o that is made; None is that of q.
    out_type: str | None = None
    #: Keys of a run where these are the same for all batches.
    run_keys: int | None = None
    #: Ids that the pool does not have hide their keys.
    selected: bool = False
    #: What an o of 8 bits is multiplied by before it is rounded.
    out_scale: float | None = None
    #: Element type of the results of runs, which the launch merges.
    partials: str = "auto"

    @staticmethod
    def read(
        *,
        layout: Any = "nhd",
        causal: Any = True,
        window: Any = None,
        softcap: Any = None,
        scale: Any = None,
        kv_splits: Any = None,
        value_dim: Any = None,
        max_seqlen_q: Any = None,
        score_mod: str = "",
        mask_mod: str = "",
        out_type: str | None = None,
        run_keys: Any = None,
        selected: Any = False,
        out_scale: Any = None,
        partials: Any = "auto",
    ) -> Settings:
        splits = readers.to_splits("kv_splits", kv_splits)
        if run_keys is not None and splits is not None:
            raise ArgumentError("run_keys: expected none beside kv_splits, which is another cut")
        bounds = None
        if window is not None:
            bounds = decode_problem.to_bounds(window)
        return Settings(
            decode_problem.check_layout(layout),
            readers.to_bool("causal", causal),
            bounds,
            readers.to_cap("softcap", softcap),
            None if scale is None else readers.to_float("scale", scale),
            splits,
            None if value_dim is None else readers.to_integer("value_dim", value_dim, 1, 2**31 - 1),
            None
            if max_seqlen_q is None
            else readers.to_integer("max_seqlen_q", max_seqlen_q, 1, 2**29),
            score_mod,
            mask_mod,
            out_type,
            None if run_keys is None else readers.to_integer("run_keys", run_keys, 1, 2**31 - 1),
            readers.to_bool("selected", selected),
            None if out_scale is None else readers.to_float("out_scale", out_scale),
            check_partials(partials),
        )

    def describe_regions(self, captures: Mapping[str, TensorView]) -> Regions | None:
        """The regions of a problem; `captures` are the tensors that they read."""
        if not self.score_mod and not self.mask_mod:
            return None
        specs = [Spec(each.dtype, each.shape, each.strides) for each in captures.values()]
        of_score = count_captures(self.score_mod, "score_mod")
        parts = tuple(specs[:of_score]), tuple(specs[of_score:])
        return Regions(self.score_mod, self.mask_mod, *parts)


def count_captures(text: str, kind: str) -> int:
    """How many tensors the text of a region reads."""
    return len(set(re.findall(rf"%{kind}\d+", text)))


def trace_mods(score_mod: Any, mask_mod: Any) -> tuple[dict[str, str], list[Any]]:
    """Functions, or what was traced of them, as settings, and the tensors they read."""
    texts: dict[str, str] = {}
    tensors: list[Any] = []
    for kind, function in (("score_mod", score_mod), ("mask_mod", mask_mod)):
        if function is not None:
            mod = mod_regions.trace(kind, function)
            texts[kind] = mod.text
            tensors += mod.tensors
    return texts, tensors
