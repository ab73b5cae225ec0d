"""Tensors with something for each row of pools: scales, and rotated columns of keys."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ArgumentError
from ..record import TensorView
from ..tensors.argument_checks import check_columns, check_device
from ..tensors.tensor_views import expect
from .decode_problem import ROW_TENSORS, DecodeProblem, make_pool_strides

#: Element types of 8 bits.
NARROW_TYPES = ("f8E4M3FN", "f8E5M2")
#: Columns of a latent row that share a scale.
LATENT_GROUP = 128


def check_rows(name: str, rows: TensorView, k: TensorView, dtype: str) -> None:
    """Such a tensor is where the keys are, with a unit stride along its columns."""
    expect(name, "elements of", dtype, rows.dtype)
    wanted, got = list(k.shape[:3]), list(rows.shape[:3])
    expect(name, "pages, heads and keys of a page as k_cache,", wanted, got)
    check_columns(name, rows)
    check_device(name, rows, k.device, "k_cache")


def find_scale_group(tensors: Mapping[str, TensorView]) -> int | None:
    """Columns of a row that share a scale; None without scales of rows."""
    scales = [name for name in ("k_scales", "v_scales") if name in tensors]
    if not scales:
        return None
    wanted = ["k_scales", "v_scales"] if "v" in tensors else ["k_scales"]
    if scales != wanted:
        raise ArgumentError(
            f'tensor "{scales[0]}": expected {" and ".join(wanted)}, or none, got '
            f"{' and '.join(scales)}"
        )
    k = tensors["k"]
    if k.dtype not in NARROW_TYPES:
        raise ArgumentError(f'tensor "k_scales": expected none beside pools of {k.dtype}')
    groups = []
    for name in scales:
        check_rows(name, tensors[name], k, "f32")
        columns, count = tensors[name[0]].shape[3], tensors[name].shape[3]
        if count < 1 or columns % count:
            raise ArgumentError(
                f'tensor "{name}": expected a number of columns that divides {columns}, got {count}'
            )
        groups.append(columns // count)
    if groups[0] != groups[-1]:
        raise ArgumentError(
            f'tensor "v_scales": expected a scale for each {groups[0]} columns as k_scales, got '
            f"one for each {groups[-1]}"
        )
    return groups[0]


def get_row_strides(
    tensors: Mapping[str, TensorView],
) -> tuple[tuple[int, int, int] | None, ...]:
    """Strides of pages, heads and keys of ROW_TENSORS, None for one that is not there."""
    return tuple(
        (each.strides[0], each.strides[1], each.strides[2]) if each is not None else None
        for each in map(tensors.get, ROW_TENSORS)
    )


def _count_rotated(sizes: Mapping[str, int], beside: str) -> int:
    """Rotated columns of a latent plan, which has some beside what is named."""
    rope = sizes["dim"] - sizes["value_dim"]
    if rope < 1:
        raise ArgumentError(
            f"value_dim: expected fewer than the {sizes['dim']} columns of a key beside {beside}, "
            f"got {sizes['value_dim']}"
        )
    return rope


def make_row_views(
    tensors: Mapping[str, TensorView],
    layout: str,
    sizes: Mapping[str, int],
    row_bytes: int | None,
) -> dict[str, TensorView]:
    """What the launches of a plan will have beside its pools, and the pool of latent keys
    without its rotated columns."""
    q, k = tensors["q"], tensors["k"]
    heads, page, value_dim = sizes["kv_heads"], sizes["page_size"], sizes["value_dim"]
    if k.dtype not in NARROW_TYPES:
        raise ArgumentError(f"scales: expected a kv_dtype of 8 bits with rows, got {k.dtype}")
    columns = {"k_scales": ("f32", 1), "v_scales": ("f32", 1)}
    if "v" not in tensors:
        columns = {
            "k": (k.dtype, value_dim),
            "k_scales": ("f32", value_dim // LATENT_GROUP),
            "k_rope": (q.dtype, _count_rotated(sizes, "scales of rows")),
        }
    views = {}
    for name, (dtype, width) in columns.items():
        strides = make_pool_strides(layout, heads, page, width, None)
        if row_bytes is not None:
            step = row_bytes // (4 if dtype == "f32" else 1 if name == "k" else 2)
            strides = (page * step, step, step)
        shape = (k.shape[0], heads, page, width)
        views[name] = TensorView(dtype, shape, (*strides, 1), 0, k.device)
    return views


def check_planned_rows(views: Mapping[str, TensorView], problem: DecodeProblem) -> None:
    """What `run` was given is what the plan was made for."""
    for name, strides in zip(ROW_TENSORS, problem.row_strides, strict=True):
        if (strides is not None) != (name in views):
            wanted = "none" if strides is None else "a tensor"
            raise ArgumentError(f'tensor "{name}": expected {wanted}, as the plan was made')
        if strides is None:
            continue
        each = views[name]
        check_rows(name, each, views["k"], problem.dtype if name == "k_rope" else "f32")
        columns = problem.dim - problem.value_dim
        if name != "k_rope":
            width = problem.key_columns if name == "k_scales" else problem.value_dim
            columns = width // (problem.scale_group or width)
        if each.shape[3] != columns:
            raise ArgumentError(
                f'tensor "{name}": expected {columns} columns, for which the plan was made, got '
                f"{each.shape[3]}"
            )
        if each.device >= 0 and each.strides[:3] != strides:
            raise ArgumentError(
                f'tensor "{name}": expected strides {[*strides, 1]} of (page, head, key, column), '
                f"for which the plan was made, got {list(each.strides)}"
            )


def make_apart_views(
    tensors: Mapping[str, TensorView],
    sizes: Mapping[str, int],
    page_stride: int | None,
    row_bytes: int | None,
) -> dict[str, TensorView]:
    """What the launches of a plan will have in the place of q and of a latent pool whose
    rotated columns are apart; with `row_bytes` the rows of both pools are so far apart."""
    q, k = tensors["q"], tensors["k"]
    if "v" in tensors or "k_rope" in tensors:
        raise ArgumentError("rope_apart: expected a latent plan of 16-bit pools")
    page, value_dim = sizes["page_size"], sizes["value_dim"]
    rope = _count_rotated(sizes, "rope_apart")
    batch, heads, queries, _ = q.shape

    def of_rows(width: int) -> TensorView:
        strides = (heads * queries * width, queries * width, width, 1)
        return q._replace(shape=(batch, heads, queries, width), strides=strides)

    def of_pool(width: int, page_stride: int | None) -> TensorView:
        strides = make_pool_strides("nhd", 1, page, width, page_stride)
        if row_bytes is not None:
            strides = (page * row_bytes // 2, row_bytes // 2, row_bytes // 2)
        return k._replace(shape=(k.shape[0], 1, page, width), strides=(*strides, 1))

    return {
        "q": of_rows(value_dim),
        "q_rope": of_rows(rope),
        "k": of_pool(value_dim, page_stride),
        "k_rope": of_pool(rope, None),
    }


def check_planned_state(views: Mapping[str, TensorView], problem: DecodeProblem) -> None:
    """Rotated columns of queries and a state to go on from are what the plan was made for."""
    rows = (problem.batch, problem.heads, problem.queries)
    expected: dict[str, tuple[str, tuple[int, ...]]] = {}
    if problem.q_rope_strides is not None:
        expected["q_rope"] = (problem.dtype, (*rows, problem.dim - problem.value_dim))
    if problem.init is not None:
        expected["init_o"] = (problem.init[0], (*rows, problem.value_dim))
        expected["init_lse"] = ("f32", rows)
    for name, (dtype, shape) in expected.items():
        each = views[name]
        expect(name, "elements of", dtype, each.dtype)
        expect(name, "the shape that the plan was made for,", list(shape), list(each.shape))
        check_device(name, each, views["q"].device)
