"""attn: a compiler for attention kernels.

    import attn

    kernel = attn.compile(q="1x4x256x64xf16", causal=True, chip="sm_80")
    result = kernel.simulate()
    assert result.passed

Importing the package loads no compiler; `attn.runtime` launches bundles on
machines that have none.
"""

import sys as _sys
from typing import Any as _Any

from . import sim
from .calls.call_signatures import attention, compile, prepare
from .doors.flex_signature import flex_attention
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    AttnError,
    BundleError,
    CompileError,
    CopyRemark,
    Diagnostic,
    DriverError,
    GradientRemark,
    LaunchError,
    LibraryError,
    RecordError,
    SimulationError,
    TraceError,
)
from .kernel import RUNGS, Kernel, Simulation, Target, compiler_version, targets
from .serving.appending import append_kv
from .serving.cascading import Level
from .serving.decode_calls import merge_states
from .serving.serving_signatures import DecodePlan, cascade, decode, mla_decode, prefill
from .tensors.nvfp4 import unpack_nvfp4
from .tracing.mod_regions import Mod, mask_mod, out_mod, score_mod
from .tuning.one_call import tune

__all__ = [
    "RUNGS",
    "ArgumentError",
    "ArgumentTypeError",
    "AttnError",
    "BundleError",
    "CompileError",
    "CopyRemark",
    "DecodePlan",
    "Diagnostic",
    "DriverError",
    "GradientRemark",
    "Kernel",
    "LaunchError",
    "Level",
    "LibraryError",
    "Mod",
    "RecordError",
    "Simulation",
    "SimulationError",
    "Target",
    "TraceError",
    "append_kv",
    "attention",
    "cascade",
    "compile",
    "compiler_version",
    "decode",
    "flex_attention",
    "mask_mod",
    "merge_states",
    "mla_decode",
    "out_mod",
    "prefill",
    "prepare",
    "score_mod",
    "sim",
    "targets",
    "tune",
    "unpack_nvfp4",
]

#: Modules that need torch, which are imported when they are used.
_LAZY = ("hf", "torch")


def __getattr__(name: str) -> _Any:
    """`__version__`: attn's and LLVM's, such as "0.1.0 (LLVM 22.1.8)"; without a
    compiler that of the installed package. `attn.torch` and `attn.hf` are imported."""
    if name in _LAZY:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return compiler_version()
    except LibraryError:
        from importlib import metadata

        try:
            return f"{metadata.version('attn')} (no compiler)"
        except metadata.PackageNotFoundError:
            return "unknown (no compiler)"


if _sys.modules.get("torch") is not None:
    # Under torch.compile the operator has to be there before the first call.
    from .calls.call_arguments import _get_torch_op

    _get_torch_op()
