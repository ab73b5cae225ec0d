"""Results of 4 bits and layouts of their scales."""

import attn
import numpy as np
import pytest
from conftest import make_rng


def draw(*shape):
    return make_rng().integers(0, 127, shape, np.uint8)


def place(row, column, columns):
    """Where a scale lies among tiles of 128 rows and 4 columns."""
    tile = row // 128 * (columns // 4) + column // 4
    return tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + column % 4


@pytest.mark.parametrize("rows,columns", [(1, 1), (128, 4), (129, 5), (300, 8)])
def test_places_in_tiles(rows, columns):
    scales = draw(rows, columns)
    tiled = attn.tile_scales(scales)
    wide = -(-columns // 4) * 4
    assert tiled.shape == (-(-rows // 128) * 128, wide)
    wanted = np.zeros(tiled.size, np.uint8)
    for row in range(rows):
        for column in range(columns):
            wanted[place(row, column, wide)] = scales[row, column]
    np.testing.assert_array_equal(tiled.ravel(), wanted)


def test_unpacks_both_layouts():
    """Rows are the dimensions before the last one."""
    o, scales = draw(2, 3, 70, 40), draw(2, 3, 70, 5)
    wanted = attn.unpack_nvfp4(o, scales, 2.0)
    np.testing.assert_array_equal(attn.unpack_nvfp4(o, attn.tile_scales(scales), 2.0, "128x4"), wanted)


def test_refusals():
    o, scales = draw(70, 40), draw(70, 5)
    with pytest.raises(attn.ArgumentError, match="layout: expected linear or 128x4, got 'rows'"):
        attn.unpack_nvfp4(o, scales, layout="rows")
    with pytest.raises(attn.ArgumentError, match=r"expected \[128, 8\] for 70 rows of 5 scales, padded to"):
        attn.unpack_nvfp4(o, scales, layout="128x4")
    with pytest.raises(attn.ArgumentError, match="one for each 16 columns of o, got"):
        attn.unpack_nvfp4(o[:, :39], scales)
    with pytest.raises(attn.ArgumentError, match="expected elements of one byte and a dimension of columns"):
        attn.tile_scales(np.zeros((4, 4), np.float32))
    for scales in (
        np.zeros((4, 0), np.uint8),
        np.zeros((4, 4), bool),
        np.zeros((4, 4), "S1"),
        np.uint8(1),
        [[1]],
        memoryview(o),
    ):
        with pytest.raises(attn.ArgumentError, match="a dimension of columns, got"):
            attn.tile_scales(scales)
        with pytest.raises(attn.ArgumentError, match='"o_scales": expected elements of one byte'):
            attn.unpack_nvfp4(o, scales)
        with pytest.raises(attn.ArgumentError, match='"o": expected elements of one byte'):
            attn.unpack_nvfp4(scales, o)


def test_no_rows():
    assert attn.unpack_nvfp4(draw(2, 0, 40), draw(2, 0, 5)).shape == (2, 0, 80)


def test_tensors_of_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    o, scales = draw(2, 70, 40), draw(2, 70, 5)
    wanted = attn.unpack_nvfp4(o, scales, 2.0)
    packed, units = torch.from_numpy(o), torch.from_numpy(scales)
    for each in (units, units.view(torch.float8_e4m3fn)):
        tiled = attn.tile_scales(each)
        assert tiled.dtype == each.dtype
        for rest in ((each, 2.0), (tiled, 2.0, "128x4")):
            got = attn.unpack_nvfp4(packed, *rest)
            assert isinstance(got, torch.Tensor) and got.dtype == torch.float32
            np.testing.assert_array_equal(got.numpy(), wanted)
    with pytest.raises(attn.ArgumentError, match="got torch.bool of shape"):
        attn.unpack_nvfp4(packed.bool(), units)
