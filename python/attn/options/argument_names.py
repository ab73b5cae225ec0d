"""Errors with the names of the arguments that the caller gave."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from ..errors import ArgumentError

#: Of the latent form, whose values are columns of the keys.
LATENT_POOLS = {"kv_cache": "k_cache"}
LATENT = {"k_cache": "kv_cache", "v_cache": "kv_cache", "v_scale": "k_scale"}

#: The arguments of calls for the tensors that kernels write, by the kernel's names.
OUTPUTS = {"o": "out", "o_scales": "out_scales"}


@contextlib.contextmanager
def rename(names: Mapping[str, str]) -> Iterator[None]:
    """Gives arguments that an ArgumentError names other names."""
    try:
        yield
    except ArgumentError as error:
        if names:
            # A single letter is a name in quotes only.
            words = (rf"\b{name}\b" if len(name) > 1 else rf'(?<="){name}(?=")' for name in names)
            text = re.sub("|".join(words), lambda found: names[found[0]], str(error))
            error.args = (text, *error.args[1:])
        raise
