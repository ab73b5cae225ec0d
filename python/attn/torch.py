"""torch's own attention on the kernels of attn.

    with attn.torch.sdpa():
        model(...)                # torch.nn.functional.scaled_dot_product_attention is attn's

    attn.torch.activate()         # the operators behind it, in the whole process

Both leave to torch what no kernel covers.
"""

from __future__ import annotations

from typing import Any

from .errors import LibraryError

try:
    import torch as _torch
except ImportError as error:
    raise LibraryError(
        f"attn.torch needs torch, which attn[torch] brings: {error}"
    ) from error

from .doors import flash_operators, sdpa as _sdpa

__all__ = ["activate", "deactivate", "sdpa"]


def sdpa(*, strict: bool = False) -> Any:
    """Returns a context in which `torch.nn.functional.scaled_dot_product_attention` runs on attn's
    kernels: float16 and bfloat16, any head dimensions up to 1024, masks of bools or of numbers
    that are added, grouped heads, tensors on a GPU or, on the simulator, in host memory.

    What no kernel covers goes to torch: dropout, gradients, other element types. The logger `attn`
    says why at level DEBUG; with `strict` it is an ArgumentError. Also a decorator."""
    return _sdpa.Mode(strict)


def activate() -> None:
    """Lets torch's operators for flash attention run on attn's kernels, for all calls of this
    process: dense and packed tensors on a GPU. It is `activate_flash_attention_impl("attn")` of
    `torch.nn.attention`, and a second call does nothing. What a kernel does not cover goes to
    torch's own operator; gradients are computed by torch's backward operator.

    Raises LibraryError where torch has no registry of implementations (before 2.11), for which
    there is `sdpa()`."""
    flash_operators.activate()


def deactivate() -> None:
    """Gives torch its own operators back. Does nothing where attn's are not active."""
    flash_operators.deactivate()


del _torch
