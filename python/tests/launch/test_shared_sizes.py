"""Sizes that the tensors of a problem share. No compiler needed."""

import attn
import pytest
from attn.launch.shared_sizes import check_sizes
from attn.record import TensorView


def make_views(o_dtype: str, columns: int) -> dict[str, TensorView]:
    shapes = {"q": (2, 4, 3, 64), "k": (2, 2, 5, 64), "v": (2, 2, 5, 48), "o": (2, 4, 3, columns)}
    types = {"o": o_dtype}
    return {
        name: TensorView(types.get(name, "f16"), shape, (1, 1, 1, 1))
        for name, shape in shapes.items()
    }


def test_a_byte_holds_two_results():
    check_sizes("k", make_views("f16", 48))
    check_sizes("k", make_views("i8", 24))
    for dtype, columns, want in (("f16", 24, 48), ("i8", 48, 24)):
        with pytest.raises(attn.ArgumentError, match=f'"o": dimension 3: expected {want} as in'):
            check_sizes("k", make_views(dtype, columns))
