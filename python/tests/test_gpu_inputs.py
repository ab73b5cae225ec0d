"""What gpu_grid.py relies on: rounding, distances, inputs and the reference."""

import math

import pytest

numpy = pytest.importorskip("numpy")

import gpu_grid  # noqa: E402
import gpu_inputs  # noqa: E402

PROBLEM = {"scale": 0.5, "mask": {"kind": "none"}}


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_encode_rounds_to_nearest_even(dtype):
    digits = {"f16": 10, "bf16": 7, "f32": 23}[dtype]
    step = 2.0**-digits
    values = numpy.array([1 + step / 2, 1 + 3 * step / 2, 1 + 0.75 * step, -0.0])
    decoded = gpu_inputs.decode(gpu_inputs.encode(values, dtype), dtype)
    assert decoded.tolist() == [1.0, 1 + 2 * step, 1 + step, 0.0]
    assert math.copysign(1, decoded[3]) == -1


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32"])
def test_order_counts_numbers_between(dtype):
    bits = gpu_inputs.encode(numpy.array([0.0, -0.0, 1.0]), dtype)
    after = gpu_inputs.order(bits + numpy.array(1, bits.dtype), dtype)
    assert (numpy.abs(after - gpu_inputs.order(bits, dtype)) == 1).all()
    assert gpu_inputs.order(bits, dtype)[0] == gpu_inputs.order(bits, dtype)[1]


@pytest.mark.parametrize(
    ("dtype", "least", "most"), [("f8E4M3FN", 2.0**-9, 448.0), ("f8E5M2", 2.0**-16, 57344.0)]
)
def test_narrow_types(dtype, least, most):
    table = gpu_inputs.list_narrow(dtype)
    assert table[0] == 0 and table[1] == least and table[-1] == most
    assert (numpy.diff(table) > 0).all()
    bits = numpy.arange(len(table), dtype=numpy.uint8)
    for sign in (0, 128):
        again = gpu_inputs.encode(gpu_inputs.decode(bits | sign, dtype), dtype)
        assert (again == bits | sign).all()
    middle = (table[1:] + table[:-1]) / 2
    assert (gpu_inputs.encode(middle, dtype) % 2 == 0).all()
    assert gpu_inputs.encode(numpy.array([1e9, -1e9]), dtype).tolist() == [
        len(table) - 1, len(table) - 1 + 128,
    ]  # fmt: skip


def test_inputs_do_not_change():
    bits = gpu_inputs.draw_normal("case/q", (1000,), "f16")
    assert bits[:4].tolist() == gpu_inputs.draw_normal("case/q", (4,), "f16").tolist()
    values = gpu_inputs.decode(bits, "f16")
    assert abs(values.mean()) < 0.1 and abs(values.std() - 1) < 0.1
    assert bits[:4].tolist() == [47119, 49370, 12826, 8221]


def test_quarters_are_exact():
    values = gpu_inputs.decode(gpu_inputs.draw_quarters("case/q", (500,), "bf16"), "bf16")
    assert set((values * 4).tolist()) == set(range(-4, 4))


def test_attend_averages_values_of_equal_keys():
    q, k = numpy.ones((2, 4)), numpy.ones((3, 4))
    v = numpy.arange(6.0).reshape(3, 2)
    o, lse = gpu_inputs.attend(q, k, v, PROBLEM)
    assert numpy.allclose(o, v.mean(axis=0)) and numpy.allclose(lse, 2 + math.log(3))
    masked = {**PROBLEM, "mask": {"kind": "causal", "align": "top_left"}}
    o, _ = gpu_inputs.attend(q, k, v, masked)
    assert numpy.allclose(o, [v[0], v[:2].mean(axis=0)])


def test_rows_without_keys_are_zero():
    problem = {**PROBLEM, "mask": {"kind": "causal", "align": "bottom_right"}}
    one = numpy.ones((1, 4))
    o, lse = gpu_inputs.attend(numpy.ones((2, 4)), one, one, problem)
    assert o[0].tolist() == [0.0] * 4 and lse[0] == -math.inf
    o, lse = gpu_inputs.attend(numpy.ones((2, 4)), one, one, problem, sinks=0.25)
    assert o[0].tolist() == [0.0] * 4 and lse[0] == 0.25


def test_compare_counts_in_units_of_the_row():
    simulated = gpu_inputs.encode(numpy.array([[1.0, 2.0**-10]]), "f16")
    got = gpu_inputs.encode(numpy.array([[1.0, 2.0**-9]]), "f16")
    difference = gpu_grid.compare_bits(got, simulated, "f16")
    assert difference["equal"] == 1 and difference["elements"] == 2
    assert difference["ulp"] == 1024 and difference["row_ulp"] == 1.0
