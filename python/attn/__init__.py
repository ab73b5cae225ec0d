"""attn: a compiler for attention kernels.

    import attn

    kernel = attn.compile(q="1x4x256x64xf16", causal=True, chip="sm_80")
    result = kernel.simulate()
    assert result.passed

Importing the package loads no compiler; `attn.runtime` launches bundles on
machines that have none.
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
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
    from .tensors.fp8 import unpack_fp8
    from .tensors.nvfp4 import tile_scales, unpack_nvfp4
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
    "tile_scales",
    "tune",
    "unpack_fp8",
    "unpack_nvfp4",
]

#: The names of each module, which is imported when one of them is first used: programs that
#: launch bundles, or only ask for a version, wait for none.
_NAMES = {
    "calls.call_signatures": "attention compile prepare",
    "doors.flex_signature": "flex_attention",
    "errors": (
        "ArgumentError ArgumentTypeError AttnError BundleError CompileError "
        "CopyRemark Diagnostic DriverError GradientRemark LaunchError LibraryError "
        "RecordError SimulationError TraceError"
    ),
    "kernel": "RUNGS Kernel Simulation Target compiler_version targets",
    "serving.appending": "append_kv",
    "serving.cascading": "Level",
    "serving.decode_calls": "merge_states",
    "serving.serving_signatures": "DecodePlan cascade decode mla_decode prefill",
    "tensors.fp8": "unpack_fp8",
    "tensors.nvfp4": "tile_scales unpack_nvfp4",
    "tracing.mod_regions": "Mod mask_mod out_mod score_mod",
    "tuning.one_call": "tune",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
#: Modules that need torch, which is not there everywhere.
_NEED_TORCH = ("hf", "torch")
#: Modules that are attributes of the package without being imported.
_MODULES = (
    *_NEED_TORCH,
    "arrays",
    "bundle",
    "calls",
    "compiler",
    "doors",
    "errors",
    "kernel",
    "launch",
) + ("mods", "options", "record", "runtime", "serving", "sim", "tensors", "tracing", "tuning")


def __getattr__(name: str) -> _Any:
    """A name of `__all__`, or a module, imported now. `__version__`: attn's and LLVM's, such as
    "0.1.0 (LLVM 22.1.8)"; without a compiler that of the installed package."""
    import importlib

    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOMES:
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .errors import LibraryError
    from .kernel import compiler_version

    try:
        return compiler_version()
    except LibraryError:
        from importlib import metadata

        try:
            return f"{metadata.version('attn')} (no compiler)"
        except metadata.PackageNotFoundError:
            return "unknown (no compiler)"


def __dir__() -> list[str]:
    # Tools import each of these names, also where there is no torch.
    return sorted({*globals(), *__all__, *_MODULES} - set(_NEED_TORCH))


if _sys.modules.get("torch") is not None:
    # Under torch.compile function and operator have to be there before the first call.
    from .calls.call_arguments import _get_torch_op
    from .calls.call_signatures import attention

    _get_torch_op()
