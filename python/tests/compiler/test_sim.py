"""attn.sim: any kernel with numpy arrays."""

import attn
import numpy as np
import pytest
from attn.sim import TensorMap, empty

SCALE = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 o, .param .f32 f, .param .u32 n, .param .u16 h)
{
.reg .pred %p;
.reg .b16 %h;
.reg .b32 %r<6>;
.reg .b64 %d<4>;
.reg .f32 %f<3>;
ld.param.u64 %d0, [x];
ld.param.u64 %d1, [o];
ld.param.f32 %f0, [f];
ld.param.u32 %r0, [n];
ld.param.u16 %h, [h];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mad.lo.u32 %r4, %r2, %r3, %r1;
setp.ge.u32 %p, %r4, %r0;
@%p ret;
mul.wide.u32 %d2, %r4, 4;
add.u64 %d3, %d0, %d2;
ld.global.f32 %f1, [%d3];
mul.f32 %f1, %f1, %f0;
cvt.rn.f32.u16 %f2, %h;
add.f32 %f1, %f1, %f2;
add.u64 %d3, %d1, %d2;
st.global.f32 [%d3], %f1;
ret;
}
"""


def run(*args, grid=2, block=64, **more):
    return attn.sim.run(SCALE, grid, args, block=block, **more)


def test_arrays_and_numbers():
    x = np.arange(100, dtype=np.float32).reshape(10, 10)
    result = run(x, empty((10, 10), np.float32), 2.5, 100, 3)
    assert result.passed and not result.findings
    assert result.outputs[2:] == [None] * 3
    np.testing.assert_array_equal(result.outputs[1], x * np.float32(2.5) + 3)
    np.testing.assert_array_equal(result.outputs[0], x)
    assert result.counters["warp_instructions"] > 0
    # Nothing says what is right.
    assert "no error found; no result was compared" in result.text


def test_widths_may_be_given():
    x = np.ones(64, np.float32)
    result = run(x, empty(64, np.float32), np.float32(2), np.uint32(64), np.uint16(1), block=32)
    np.testing.assert_array_equal(result.outputs[1], np.full(64, 3, np.float32))


def test_one_array_may_be_several_arguments():
    x = np.ones(64, np.float32)
    result = run(x, x, 4.0, 64, 0, grid=1)
    np.testing.assert_array_equal(result.outputs[0], np.full(64, 4, np.float32))
    np.testing.assert_array_equal(x, np.ones(64, np.float32))


def test_findings():
    result = run(empty(64, np.float32), empty(64, np.float32), 1.0, 65, 0)
    kinds = {finding["kind"] for finding in result.findings}
    assert not result.passed
    assert kinds == {"uninitialised-read", "out-of-bounds"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((1.0, 64, 0), "has 5 parameters, the launch record gives 3"),
        ((np.ones(4, np.float32), empty(4, np.float32), 1.0, 2**40, 0), "expected an integer of 4"),
        ((np.ones(4, np.float32), empty(4, np.float32), 1.0, 4, 0.5), "expected a float of 4 or 8"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(attn.SimulationError, match=message):
        run(*arguments)


def test_integers_for_floats():
    # 3 is 3.0 where the kernel declares an f32, and not its bits.
    x = np.arange(64, dtype=np.float32)
    result = run(x, empty(64, np.float32), 3, 64, 0)
    np.testing.assert_array_equal(result.outputs[1], x * 3)
    with pytest.raises(attn.SimulationError, match="expected an integer for .u32, got 64.50"):
        run(x, empty(64, np.float32), 3, 64.5, 0)


def test_big_endian():
    x = np.arange(64).astype(">f4")
    scale = np.array(2, ">f4")
    result = run(x, empty(64, ">f4"), scale, np.array(64, ">u4"), np.array(1, ">u2"))
    assert result.outputs[1].dtype == np.dtype(">f4")
    np.testing.assert_array_equal(result.outputs[1], x * 2 + 1)


def test_numbers_out_of_range():
    x = np.ones(64, np.float32)
    arguments = (x, empty(64, np.float32), 1.0, 64, 0)
    for name, value in (("seed", -1), ("seed", 2**64), ("threads", 2**32), ("grid", 2**32)):
        with pytest.raises(ValueError, match=f"{name}: expected an integer from 0 to "):
            run(*arguments, **{name: value})
    assert run(*arguments, seed=2**64 - 1, grid=np.int64(1)).passed
    with pytest.raises(ValueError, match="shape: expected an integer from 0 to"):
        empty((4, -1), np.float32)
    with pytest.raises(TypeError, match="argument 0: expected numbers, got Python objects"):
        run(np.array([None, x], dtype=object))


def test_more_than_the_memory():
    x = np.ones(64, np.float32)
    with pytest.raises(attn.SimulationError, match='of which tensor "arg1" takes .* TiB'):
        run(x, empty(10**12, np.float32), 1.0, 64, 0)


def test_wrong_types():
    with pytest.raises(TypeError, match="argument 0: expected an array"):
        run("x")
    with pytest.raises(TypeError, match="expected one of float16"):
        run(TensorMap(np.ones((4, 4), np.complex64), (4, 4)))
    with pytest.raises(ValueError, match="grid: expected 1 to 3 extents, got 4"):
        run(grid=(1, 1, 1, 1))
    with pytest.raises(
        attn.SimulationError, match="kernel: expected one of scale, other, got none"
    ):
        attn.sim.run(SCALE + SCALE.replace("scale", "other"), 1, [], block=1)
    header = SCALE[: SCALE.index(".visible")]
    with pytest.raises(attn.SimulationError, match="expected a module with a kernel .*, got none"):
        attn.sim.run(header, 1, [], block=1)


def test_paths(tmp_path):
    path = tmp_path / "scale.ptx"
    path.write_text(SCALE)
    x = np.ones(64, np.float32)
    arguments = [x, empty(64, np.float32), 2.0, 64, 0]
    for given in (path, str(path)):
        result = attn.sim.run(given, 2, arguments, block=64)
        np.testing.assert_array_equal(result.outputs[1], np.full(64, 2, np.float32))
    missing = "ptx: expected PTX or the path of a file with PTX, got '.*': "
    for given, reason in (
        (tmp_path / "none.ptx", "No such file"),
        ("kernel.ptx", "No such file"),
        ("", "Is a directory"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(attn.SimulationError, match=missing + reason):
            attn.sim.run(given, 2, arguments, block=64)
    path.write_bytes(b"\xff\xfe\n")
    with pytest.raises(attn.SimulationError, match="got '.*scale.ptx': .*decode"):
        attn.sim.run(path, 2, arguments, block=64)


def test_options():
    x = np.ones(64, np.float32)
    arguments = (x, empty(64, np.float32), 1.0, 64, 0)
    options = {"schedule": "random", "profile": "isa", "sanitize": "false", "reads": "random"}
    assert run(*arguments, options=options, seed=3, threads=1).passed
    assert not run(*arguments, options={"step-limit": "3"}).passed
    with pytest.raises(TypeError, match="options: step-limit: expected a string, got 3"):
        run(*arguments, options={"step-limit": 3})
    with pytest.raises(TypeError, match="options: expected a dictionary, got 'fast'"):
        run(*arguments, options="fast")
    with pytest.raises(TypeError, match="ptx: expected a string, got b'"):
        attn.sim.run(SCALE.encode(), 1, [], block=1)
    with pytest.raises(attn.SimulationError, match='option "profile": expected a known option'):
        run(*arguments, options={"profile": "cpu"})
