"""attn: a compiler for attention kernels.

    import attn

    kernel = attn.compile(q="1x4x256x64xf16", causal=True, chip="sm_80")
    result = kernel.simulate()
    assert result.passed

Importing the package loads no compiler; `attn.runtime` launches bundles on
machines that have none.
"""

from .errors import (
    ArgumentError,
    AttnError,
    BundleError,
    CompileError,
    Diagnostic,
    DriverError,
    LaunchError,
    LibraryError,
    RecordError,
    SimulationError,
)
from .functional import attention
from .kernel import RUNGS, Kernel, Simulation, Target, compile, compiler_version, targets

__all__ = [
    "RUNGS",
    "ArgumentError",
    "AttnError",
    "BundleError",
    "CompileError",
    "Diagnostic",
    "DriverError",
    "Kernel",
    "LaunchError",
    "LibraryError",
    "RecordError",
    "Simulation",
    "SimulationError",
    "Target",
    "attention",
    "compile",
    "compiler_version",
    "targets",
]
