"""Says how far a long call is, and ends it at Ctrl-C."""

from __future__ import annotations

import contextvars
import ctypes
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO, TypeVar, Union

from . import c_library

#: False is silence, a function is called as f(phase, fraction, seconds left),
#: True is what `Line` does.
Show = Union[bool, Callable[[str, float, float], object]]

T = TypeVar("T")

#: Nothing is said before.
_QUIET_SECONDS = 2.0
#: Between two lines where there is no terminal.
_LINE_SECONDS = 10.0
#: Estimates above are said before the work begins.
_LONG_SECONDS = 60.0
_BAR = 30
#: Between two looks at a call in another thread.
_LOOK_SECONDS = 0.1


def format_seconds(seconds: float) -> str:
    """Such as "12 s", "31 min" or "3.5 h"."""
    if seconds < 90:
        return f"{max(seconds, 0.0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


class Line:
    """One line on standard error that is written over, or, where that is no
    terminal, a line now and then. As the programs show it."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._start = time.monotonic()
        self._next = _QUIET_SECONDS
        self._width = 0

    def __call__(self, phase: str, fraction: float, seconds_left: float) -> None:
        passed = time.monotonic() - self._start
        if passed < (_QUIET_SECONDS if self._is_terminal else self._next):
            return
        self._next = passed + _LINE_SECONDS
        done = min(max(fraction, 0.0), 1.0)
        share = f"{100 * done:.0f} %" if fraction >= 0 else "running"
        left = f", {format_seconds(seconds_left)} left" if seconds_left >= 0 else ""
        if not self._is_terminal:
            print(f"{phase}: {share}{left}", file=self._stream, flush=True)
            return
        filled = int(_BAR * done)
        text = f"{phase:<14} [{'#' * filled}{'-' * (_BAR - filled)}] {share:>5}{left}"
        print(f"\r{text:<{self._width}}", end="", file=self._stream, flush=True)
        self._width = len(text)

    def warn(self, seconds: float) -> None:
        """Before a long run."""
        if seconds > _LONG_SECONDS:
            print(
                f"the run takes about {format_seconds(seconds)}; a smaller problem ends sooner",
                file=self._stream,
                flush=True,
            )

    def clear(self) -> None:
        """Leaves the terminal as it was."""
        if self._width:
            print(f"\r{'':<{self._width}}\r", end="", file=self._stream, flush=True)
            self._width = 0


class Watch:
    """The callback of one run in the library, which is inside of its `with`. An
    exception of `show`, and Ctrl-C, end the run and are raised by `finish`.

    Ctrl-C is noted by a handler that raises nothing: Python runs handlers as soon
    as it enters the callback, where an exception would be lost in ctypes."""

    def __init__(self, show: Show) -> None:
        self._line = Line() if show is True else None
        self._show = show if callable(show) else self._line
        self._error: BaseException | None = None
        self._is_first = True
        self._handler: Any = None
        self._signal: tuple[int, Any] | None = None
        #: As attnSimulationSetProgress takes it; lives as long as the run.
        self.callback = c_library.ProgressCallback(self._call)

    def __enter__(self) -> Watch:
        # Other threads neither have handlers nor are interrupted.
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)

    def _note(self, number: int, frame: Any) -> None:
        self._signal = (number, frame)

    def _call(
        self, _: Any, phase: c_library.StringRef, fraction: float, seconds_left: float
    ) -> bool:
        if self._signal is not None:
            return False
        try:
            if self._is_first and self._line is not None:
                self._line.warn(seconds_left)
            self._is_first = False
            if self._show is not None:
                self._show(phase.text(), fraction, seconds_left)
        except BaseException as error:
            self._error = error
            return False
        return True

    def finish(self, was_stopped: bool) -> None:
        """After the run: raises what ended it."""
        if self._line is not None:
            self._line.clear()
        if self._error is not None:
            raise self._error
        if self._signal is not None:
            self._handler(*self._signal)
        if was_stopped:
            # By Ctrl-C, whose handler did not raise.
            raise KeyboardInterrupt


def set_callback(simulation: int, watch: Watch) -> None:
    """Lets the runs of a simulation report to `watch`."""
    c_library.load().attnSimulationSetProgress(simulation, watch.callback, ctypes.c_void_p())


def run_interruptible(phase: str, call: Callable[[], T]) -> T:
    """Returns what `call` returns, or raises what it raises. Ctrl-C is raised at once,
    and a terminal shows after a while that the call still runs.

    The library hears no signals, so the call runs in another thread. After Ctrl-C it goes
    on there to its end, which nobody waits for but the interpreter when it exits."""
    # Other threads neither have handlers nor are interrupted.
    if threading.current_thread() is not threading.main_thread():
        return call()
    done = threading.Event()
    results: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            results.append(context.run(call))
        except BaseException as error:
            errors.append(error)
        finally:
            done.set()

    line = Line() if sys.stderr is not None and sys.stderr.isatty() else None
    threading.Thread(target=work, name=f"attn {phase}").start()
    try:
        while not done.wait(_LOOK_SECONDS):
            if line is not None:
                line(phase, -1.0, -1.0)
    finally:
        if line is not None:
            line.clear()
    if errors:
        raise errors[0]
    return results[0]
