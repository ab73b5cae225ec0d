"""What the package raises. Every error is an `AttnError`."""

from __future__ import annotations

import dataclasses
from typing import Any


class AttnError(Exception):
    """Anything that the package reports."""


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler, as it stands in `CompileError.diagnostics`."""

    #: "error", "warning", "remark" or "note".
    severity: str
    message: str
    #: Empty without a location; line and column count from 1.
    file: str = ""
    line: int = 0
    column: int = 0
    notes: tuple[Diagnostic, ...] = ()

    @property
    def location(self) -> str:
        """`file:line:column`, or an empty string."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else ""

    def __str__(self) -> str:
        place = f"{self.location}: " if self.line else ""
        lines = [f"{place}{self.severity}: {self.message}"]
        lines += [str(note) for note in self.notes]
        return "\n".join(lines)


class CompileError(AttnError):
    """The compiler refused a problem. `str()` is its own text; `diagnostics`
    has the messages and their places."""

    def __init__(self, text: str, diagnostics: tuple[Diagnostic, ...] = ()) -> None:
        super().__init__(text.rstrip("\n"))
        self.diagnostics = diagnostics

    @property
    def locations(self) -> list[str]:
        """The places of all errors and of their notes."""
        found = []
        for diagnostic in self.diagnostics:
            if diagnostic.severity == "error":
                found += [each.location for each in (diagnostic, *diagnostic.notes) if each.line]
        return found


class CopyRemark(UserWarning):
    """Operands that were copied, as `pad=True` asked."""


class GradientRemark(UserWarning):
    """Results have no gradient, though an operand requires one. Said once."""


class TraceError(AttnError):
    """A score_mod or mask_mod that cannot be traced. `str()` names the line of
    the function."""

    def __init__(self, message: str, file: str = "", line: int = 0, source: str = "") -> None:
        place = f"{file}:{line}: " if line else ""
        super().__init__(f"{place}{message}" + (f"\n    {source}" if source else ""))
        self.file = file
        self.line = line


class SimulationError(AttnError):
    """A simulated launch that could not start."""


class LibraryError(AttnError):
    """libAttnC.so is missing or has another interface version, or torch is
    missing for its operator."""


class BundleError(AttnError):
    """A bundle that is truncated, damaged, foreign or of another version."""


class RecordError(AttnError):
    """A launch record that this package does not understand."""


class LaunchError(AttnError):
    """A launch that failed. Names the kernel."""


class ArgumentError(LaunchError, ValueError):
    """An argument with a value that nothing can be made of: shapes, strides, element
    types or devices of tensors, numbers out of range, unknown names."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of another type than the call takes."""


class DriverError(LaunchError):
    """The CUDA driver is missing or refused a call. After a failed launch
    `launch_record` has the kernel's launch record."""

    def __init__(self, message: str, launch_record: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.launch_record = launch_record
