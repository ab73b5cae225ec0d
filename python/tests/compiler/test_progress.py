"""How far a simulation is, and its end at Ctrl-C."""

import io
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import attn
import pytest
from attn.compiler import long_calls

LONG = {"q": (1, 4, 1024, 64), "dtype": "float16", "cache": False}
SPIN = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry spin() {
  .reg .pred %p;
  .reg .u32 %i;
  mov.u32 %i, 0;
loop:
  add.u32 %i, %i, 1;
  setp.ne.u32 %p, %i, 0;
  @%p bra loop;
  ret;
}
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test sets."""
    now = [100.0]
    monkeypatch.setattr(long_calls.time, "monotonic", lambda: now[0])
    return now


def test_line_on_a_terminal(clock):
    stream = Terminal()
    line = long_calls.Line(stream)
    line("simulation", 0.1, 9.0)
    clock[0] += 1.9
    line("simulation", 0.2, 8.0)
    line.clear()
    assert stream.getvalue() == ""
    clock[0] += 0.2
    line("simulation", 0.5, 5.0)
    line("inputs", -1.0, -1.0)
    line.clear()
    bar, rest = "#" * 15 + "-" * 15, "-" * 30
    first = f"\rsimulation     [{bar}]  50 %, 5 s left"
    second = f"\rinputs         [{rest}] running"
    assert stream.getvalue() == (
        f"{first}{second}{' ' * (len(first) - len(second))}\r{' ' * (len(second) - 1)}\r"
    )


def test_lines_in_a_file(clock):
    stream = io.StringIO()
    line = long_calls.Line(stream)
    for fraction in range(25):
        line("simulation", fraction / 25, 25.0 - fraction)
        clock[0] += 1
    line.clear()
    assert stream.getvalue() == "".join(
        f"simulation: {4 * second} %, {25 - second} s left\n" for second in (2, 12, 22)
    )


@pytest.mark.parametrize(
    "seconds, text",
    [(-1, "0 s"), (59.6, "60 s"), (90, "2 min"), (1860, "31 min"), (6000, "1.7 h")],
)
def test_seconds(seconds, text):
    assert long_calls.format_seconds(seconds) == text


def test_warns_before_long_runs(monkeypatch, capsys):
    watch = long_calls.Watch(True)
    assert watch._call(None, attn.compiler.c_library.ref("inputs"), 0.0, 1860.0)
    assert watch._call(None, attn.compiler.c_library.ref("inputs"), 0.1, 1800.0)
    assert capsys.readouterr().err == (
        "the run takes about 31 min; a smaller problem ends sooner\n"
    )
    assert long_calls.Watch(False)._call(None, attn.compiler.c_library.ref("inputs"), 0.0, 1860.0)
    assert capsys.readouterr().err == ""


def test_function_is_called():
    calls = []
    result = attn.compile(q="1x1x32x64xf16").simulate(progress=lambda *each: calls.append(each))
    assert result.passed and calls
    phases = {phase for phase, _, _ in calls}
    assert "simulation" in phases and all(isinstance(phase, str) for phase in phases)
    assert all(-1 <= fraction <= 1 for _, fraction, _ in calls)


class Stop(Exception):
    pass


def stop_at(count):
    calls = []

    def show(*_):
        calls.append(1)
        if len(calls) == count:
            raise Stop

    return show


@pytest.mark.parametrize("count", [1, 3])
def test_function_ends_a_run(count):
    kernel = attn.compile(**LONG)
    with pytest.raises(Stop):
        kernel.simulate(progress=stop_at(count))
    with pytest.raises(Stop):
        attn.sim.run(SPIN, 1, [], block=32, progress=stop_at(count))


def test_stopped_on_the_way_is_an_interruption():
    watch = long_calls.Watch(False)
    watch.finish(was_stopped=False)
    with pytest.raises(KeyboardInterrupt):
        watch.finish(was_stopped=True)


def test_own_handler_is_called_after_the_run():
    """One that raises nothing too, and it is in its place again."""
    seen = []

    def handler(number, frame):
        seen.append(number)

    def show(*_):
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            attn.compile(**LONG).simulate(progress=show)
        assert seen == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("shape", "call"),
    [
        ((1, 1, 64, 64), "attn.sim.run(SPIN, 1, [], block=32)"),
        ((8, 32, 4096, 64), "kernel.simulate(threads=1)"),
        ((8, 32, 4096, 64), "kernel.simulate(threads=1, verify=False)"),
        ((1, 8, 4096, 64), "kernel.simulate(threads=1, corners=True, progress=False)"),
    ],
)
def test_ctrl_c(shape, call):
    """As KeyboardInterrupt, whatever a run that takes very long is at."""
    script = f"""
import attn, signal, sys
SPIN = {SPIN!r}
kernel = attn.compile(q={shape}, dtype="float16")
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("ready", flush=True)
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    variables = dict(os.environ)
    if "ATTN_INSTALLED" not in variables:
        variables["PYTHONPATH"] = str(pathlib.Path(attn.__file__).parents[1])
    worker = subprocess.Popen(
        [sys.executable, "-c", script],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert worker.stdout.readline() == "ready\n"
        # As a rule the run has begun by then; else the end is the same.
        time.sleep(0.7)
        worker.send_signal(signal.SIGINT)
        output, errors = worker.communicate(timeout=600)
    finally:
        worker.kill()
    assert output == "interrupted\n" and worker.returncode == 0, errors


def test_short_runs_say_nothing(capfd):
    assert attn.compile(q="1x1x32x64xf16").simulate().passed
    assert capfd.readouterr().err == ""


def test_call_in_a_thread():
    """It gives what the call gives, its error too."""
    assert long_calls.run_interruptible("compilation", lambda: 7) == 7
    with pytest.raises(Stop):
        long_calls.run_interruptible("compilation", raise_stop)


def raise_stop():
    raise Stop


def test_ctrl_c_does_not_wait_for_a_compilation():
    """It is raised while the library is at work."""
    may_end, has_ended = threading.Event(), threading.Event()

    def compile_long():
        os.kill(os.getpid(), signal.SIGINT)
        may_end.wait()
        has_ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            long_calls.run_interruptible("compilation", compile_long)
        assert not has_ended.is_set()
    finally:
        may_end.set()
        signal.signal(signal.SIGINT, before)
    assert has_ended.wait(timeout=600)


def test_terminal_shows_a_long_compilation(clock, monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(long_calls.sys, "stderr", stream)

    def compile_long():
        clock[0] += 2.1
        while "compilation" not in stream.getvalue():
            time.sleep(0.01)

    long_calls.run_interruptible("compilation", compile_long)
    assert f"\rcompilation    [{'-' * 30}] running" in stream.getvalue()
