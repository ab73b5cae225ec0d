"""What a caller of `attn.decode` and its like says beside the tensors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError
from ..record import TensorView
from ..tracing import mod_regions
from ..tracing.captured_reads import Spec
from ..tracing.mod_regions import Regions
from .settings_table import FACTORS, Fields, read_fields


#: The regions of a problem, in the order in which their tensors come.
MODS = ("score_mod", "mask_mod", "out_mod")


class Settings(Fields):
    """What a caller says beside the tensors, checked."""

    __slots__ = ()

    @staticmethod
    def read(**given: Any) -> Settings:
        """Raises ArgumentError for options that no call takes, or that exclude each other."""
        settings = Settings(*read_fields(**given))
        if settings.run_keys is not None and settings.kv_splits is not None:
            raise ArgumentError("run_keys: expected none beside kv_splits, which is another cut")
        return settings

    def list_factors(self) -> tuple[tuple[str, float], ...]:
        """Factors of the scores by name; that of an output is the op's that writes it."""
        given = ((name, getattr(self, name)) for name in FACTORS if name != "out_scale")
        return tuple((name, value) for name, value in given if value is not None)

    def describe_regions(self, captures: Mapping[str, TensorView]) -> Regions | None:
        """The regions of a problem; `captures` are the tensors that they read."""
        texts = [getattr(self, kind) for kind in MODS]
        if not any(texts):
            return None
        specs = [Spec(each.dtype, each.shape, each.strides) for each in captures.values()]
        parts = []
        for kind, text in zip(MODS, texts, strict=True):
            count = count_captures(text, kind)
            parts.append(tuple(specs[:count]))
            specs = specs[count:]
        score, mask, out = texts
        return Regions(score, mask, parts[0], parts[1], out, parts[2])


def count_captures(text: str, kind: str) -> int:
    """How many tensors the text of a region reads."""
    return len(set(re.findall(rf"%{kind}\d+", text)))


def trace_mods(*functions: Any) -> tuple[dict[str, str], list[Any]]:
    """Functions of MODS, or what was traced of them, as settings, and the tensors they
    read."""
    texts: dict[str, str] = {}
    tensors: list[Any] = []
    for kind, function in zip(MODS, functions, strict=True):
        if function is not None:
            mod = mod_regions.trace(kind, function)
            texts[kind] = mod.text
            tensors += mod.tensors
    return texts, tensors
