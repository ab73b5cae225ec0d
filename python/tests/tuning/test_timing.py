"""Timing of candidates with a clock, a graph and kernels that stand in for the
GPU's."""

import contextlib
import gc
import types
import weakref

import pytest
from attn import autotune

torch = pytest.importorskip("torch", reason="torch is not installed")

from attn.tuning import timing  # noqa: E402

SHAPE = [1, 2, 8, 4]
STRIDES = [64, 32, 4, 1]


def tensor(name, access, dtype="f16", shape=SHAPE, strides=STRIDES):
    return {"name": name, "dtype": dtype, "shape": shape, "strides": strides, "access": access}


TENSORS = [
    *[tensor(name, "read") for name in "qkv"],
    tensor("o", "write"),
    tensor("lse", "write", "f32", SHAPE[:3], [16, 8, 1]),
]


class Clock:
    """Milliseconds that kernels have taken."""

    def __init__(self):
        self.now = 0.0


@pytest.fixture
def clock(monkeypatch):
    """Stands in for the GPU."""
    clock = Clock()

    class Event:
        def __init__(self, enable_timing):
            assert enable_timing

        def record(self):
            self.time = clock.now

        def synchronize(self):
            pass

        def elapsed_time(self, end):
            return end.time - self.time

    class Graph:
        def replay(self):
            clock.now += self.cost

    @contextlib.contextmanager
    def graph(captured):
        start = clock.now
        yield
        captured.cost = clock.now - start

    fake = types.SimpleNamespace(
        Event=Event,
        CUDAGraph=Graph,
        graph=graph,
        Stream=lambda: None,
        stream=lambda stream: contextlib.nullcontext(),
        synchronize=lambda: None,
        empty_cache=lambda: None,
        is_available=lambda: False,
    )
    monkeypatch.setattr(timing.torch, "cuda", fake)
    monkeypatch.setattr(timing, "_DEVICE", "cpu")
    monkeypatch.setattr(timing, "_SET_BYTES", 1024)
    return clock


@pytest.fixture
def load(monkeypatch, clock):
    """Kernels by what they do: their milliseconds, and how much is wrong."""

    def load(image):
        if image == b"broken":
            raise timing.AttnError("no image for the device\nmore")
        cost, error = (float(each) for each in image.split())

        def kernel(**tensors):
            clock.now += cost
            value = tensors["q"].float().sum() + error
            tensors["o"].fill_(value)
            tensors["lse"].fill_(value)
            if error < 0:
                tensors["o"][0, 0, 0, 0] = float("nan")

        class Kernel:
            launch_record = {"tensors": TENSORS, "problem": {"varlen": False}}

            def __call__(self, **tensors):
                kernel(**tensors)

        return Kernel()

    monkeypatch.setattr(timing.runtime, "load", load)


def run(*images, planned=0):
    candidates = [autotune.Candidate(f"{i:02}", f"plan {i}", 1.0) for i in range(len(images))]
    problem = autotune.Problem("p", "sm_80", {}, f"plan {planned}", candidates)
    by_name = {each.name: image for each, image in zip(candidates, images, strict=True)}
    timing.Timer(0.001).run(problem, by_name.__getitem__)
    return problem.candidates


def test_times_all_and_stops_with_slow_ones(load):
    first, near, slow = run(b"5 0", b"4 0", b"9 0", planned=0)
    assert [each.error for each in (first, near, slow)] == ["", "", ""]
    assert [each.measured_us for each in (first, near, slow)] == [5000, 4000, 9000]
    # The planned one goes on, however slow; the slow one left after a round.
    assert first.replays > slow.replays and near.replays > slow.replays


def test_a_wrong_kernel_is_named(load):
    good, wrong, other, nan = run(b"5 0", b"4 9", b"6 0", b"3 -1", planned=0)
    assert good.error == other.error == ""
    assert '"o" differs by' in wrong.error and wrong.measured_us is None
    assert '"o" is not finite' in nan.error


def test_nothing_is_taken_where_most_differ_from_the_first(load):
    candidates = run(b"5 9", b"4 0", b"6 0", planned=0)
    assert all(each.error for each in candidates)
    assert candidates[0].error == "most kernels differ from the first one"
    assert all(each.measured_us is None for each in candidates)


def test_what_cannot_be_loaded_is_left_out(load):
    broken, good = run(b"broken", b"4 0", planned=0)
    assert broken.error == "no image for the device"
    assert good.measured_us == 4000


def test_rows_without_keys_compare(clock):
    dtypes = {"lse": "f32"}
    a = {"lse": torch.tensor([1.0, -torch.inf])}
    assert timing.compare(a, a, dtypes) == ""
    b = {"lse": torch.tensor([1.0, 0.0])}
    assert "is not finite where" in timing.compare(b, a, dtypes)


def test_inputs_exceed_the_cache(clock):
    sets = timing.make_sets({"tensors": TENSORS})
    # 3 tensors of 64 elements of 2 bytes.
    assert len(sets) == 3
    assert list(sets[0]) == ["q", "k", "v"]
    assert sets[0]["q"].stride() == tuple(STRIDES)
    assert not torch.equal(sets[0]["q"], sets[1]["q"])


def test_inputs_of_8_bits_are_drawn(clock):
    (first, _, *_) = timing.make_sets({"tensors": [tensor("q", "read", "f8E4M3FN")]})
    assert first["q"].dtype == torch.float8_e4m3fn and first["q"].float().std() > 0.5


@pytest.mark.parametrize(
    "record, message",
    [
        ({"tensors": [], "problem": {"varlen": True}}, "packed sequences"),
        ({"tensors": [tensor("q", "read", shape=[-1, 2, 8, 4])]}, "the launch decides"),
        ({"tensors": [tensor("x", "read", "i8")]}, "elements of type i8"),
    ],
)
def test_refuses_what_it_cannot_fill(clock, record, message):
    with pytest.raises(timing.AttnError, match=message):
        timing.make_sets(record)


def test_no_gpu_is_no_board(clock):
    assert timing.get_board() is None


def test_what_a_graph_writes_lives_as_long_as_it(clock):
    def make_call():
        out = torch.zeros(4)
        owned.append(weakref.ref(out))

        def call(index):
            clock.now += 1
            return {"o": out}

        return call

    owned: list = []
    contestant = timing._Contestant(autotune.Candidate("a", "plan", 1.0))
    contestant.capture(make_call(), 1)
    gc.collect()
    assert owned[0]() is not None
