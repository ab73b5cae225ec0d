"""Batches of sequences whose keys lie in pages: checks, kernels and launches."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import arrays, runtime
from ..calls import attention_outputs
from ..errors import ArgumentError
from ..kernel import Kernel, get_chip
from ..launch import cuda_driver, device_tensors, host_arrays, planned_steps
from ..options import argument_names, kernel_sizes
from ..record import DYNAMIC, Binder, TensorView, Workspace
from ..tensors import batch_lists, tensor_views
from ..tensors.argument_checks import (
    check_columns,
    check_device,
    check_devices,
    check_heads,
    check_lse,
    check_out,
    check_sinks,
)
from ..tensors.tensor_views import expect
from . import added_keys, decode_problem, numpy_inputs
from .decode_problem import PAIRED, ROW_TENSORS, DecodeProblem, count_output_columns
from .pool_rows import NARROW_TYPES, check_rows, find_scale_group, get_row_strides
from .query_rows import (
    WIDE_TYPES,
    check_out_type,
    check_rope_of_queries,
    find_outputs,
    read_init,
)
from .settings import Settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Shapes of tensors, and problems, that are kept.
_KEPT_LAUNCHES = 64
_KEPT_RUNNERS = 1024


def _check_batch(views: Mapping[str, TensorView]) -> None:
    if "cu_seqlens_q" in views:
        return tensor_views.check_counts("cu_seqlens_q", views["cu_seqlens_q"], views["kv_lengths"])
    batch, given = views["q"].shape[0], views["kv_lengths"].shape[0]
    expect("kv_lengths", "a length for each sequence of q,", batch, given)


def _check_values(
    tensors: Mapping[str, Any], views: Mapping[str, TensorView], settings: Settings
) -> None:
    pages, _, page_size, _ = views["k"].shape
    if settings.max_seqlen_q is not None:
        counts, rows = tensors["cu_seqlens_q"], views["q"].shape[2]
        if batch_lists.looks_at(counts):
            batch_lists.check_counts("cu_seqlens_q", counts, rows, settings.max_seqlen_q)
    batch = (tensors["kv_lengths"], tensors["page_table"])
    batch_lists.check_batch(*batch, page_size, pages, settings.selected)
    added_keys.check_values(tensors, views)


def _check_pools(
    q: TensorView,
    k: TensorView,
    v: TensorView | None,
    rope: TensorView | None,
    dim: int,
    sequences: int,
) -> None:
    pools = {"k_cache": k} if v is None else {"k_cache": k, "v_cache": v}
    for name, pool in pools.items():
        if pool.dtype not in NARROW_TYPES:
            expect(name, "elements as q,", q.dtype, pool.dtype)
        check_device(name, pool, q.device)
        check_columns(name, pool)
    columns = k.shape[3]
    if rope is not None:
        check_rows("k_rope", rope, k, q.dtype)
        if rope.shape[3] < 1:
            raise ArgumentError('tensor "k_rope": expected rotated columns, got none')
        columns += rope.shape[3]
    expect("k_cache", "head dimension as q,", dim, columns)
    if v is not None:
        expect("v_cache", "elements as k_cache,", k.dtype, v.dtype)
    if v is not None and v.shape[:3] != k.shape[:3]:
        raise ArgumentError(
            'tensor "v_cache": expected pages, heads and keys of a page as k_cache, '
            f"{list(k.shape[:3])}, got {list(v.shape[:3])}"
        )
    if q.dtype not in WIDE_TYPES:
        raise ArgumentError(f'tensor "q": expected one of {", ".join(WIDE_TYPES)}, got {q.dtype}')
    kernel_sizes.check_pool('tensor "k_cache"', k.shape[0], k.shape[2], sequences)
    for name, pool in pools.items():
        kernel_sizes.check_dim(f'tensor "{name}"', pool.shape[3], pool.dtype)


def turn_scale(name: str, scale: TensorView, batch: int, kv_heads: int) -> TensorView:
    """What units of a pool stand for, (batch, key heads): of one number, of one for
    each key head, or of one for each of both."""
    expect(name, "elements of", "f32", scale.dtype)
    shape, strides = scale.shape, scale.strides
    if shape in ((), (1,)):
        strides = (0, 0)
    elif shape == (kv_heads,):
        strides = (0, *strides)
    elif shape != (batch, kv_heads):
        raise ArgumentError(
            f'tensor "{name}": expected one number, {kv_heads} of key heads or '
            f"{batch} x {kv_heads} of sequences and key heads, got {list(shape)}"
        )
    return scale._replace(shape=(batch, kv_heads), strides=strides)


def turn_scales(views: dict[str, TensorView]) -> None:
    """k_scale and v_scale as the kernel's descales."""
    scales = [name for name in ("k_scale", "v_scale") if name in views]
    if not scales:
        return
    if len(scales) == 1:
        raise ArgumentError(f'tensor "{scales[0]}": expected k_scale and v_scale or none, got one')
    q, k = views["q"], views["k"]
    # Packed queries are of one batch; a plan has a table of its own.
    sequences = views.get("page_table", q).shape[0]
    if k.dtype not in NARROW_TYPES:
        raise ArgumentError(f'tensor "k_scale": expected none beside pools of {k.dtype}')
    for name in scales:
        scale = views.pop(name)
        check_device(name, scale, q.device)
        views[f"{name[0]}_descale"] = turn_scale(name, scale, sequences, k.shape[1])


def order_output(q: TensorView, dim: int) -> tuple[int, int, int]:
    """Strides of an o whose rows lie in the order of q's: (batch, query, head)
    if heads are the nearer ones, else (batch, head, query)."""
    _, heads, queries, _ = q.shape
    is_major = heads > 1 and queries > 1 and q.strides[1] < q.strides[2]
    inner = (dim, heads * dim) if is_major else (queries * dim, dim)
    return (heads * queries * dim, *inner)


def make_problem(
    tensors: Mapping[str, TensorView], settings: Settings, lse: bool, group: int | None = None
) -> DecodeProblem:
    """The problem of tensors in the kernel's order: q, k, page_table, v but of the
    latent form, and o and sinks where they are given; so many columns of o as `group`
    share a scale, where it is not the scales that say so. Pools of a GPU may have any
    number of pages."""
    q, k, v = tensors["q"], tensors["k"], tensors.get("v")
    table = tensors["page_table"]
    rope, q_rope = tensors.get("k_rope"), tensors.get("q_rope")
    dim = q.shape[3]
    if q_rope is not None:
        check_rope_of_queries(q, q_rope, rope is not None)
        dim += q_rope.shape[3]
    _check_pools(q, k, v, rope, dim, table.shape[0])
    scale_group = find_scale_group(tensors)
    value_dim = settings.value_dim if v is None else v.shape[3]
    if value_dim is None:
        raise ArgumentError('tensor "v_cache": expected a pool of values, got none')
    if v is None and rope is not None:
        expect("k_cache", "the columns of values,", value_dim, k.shape[3])
    if v is None and value_dim > dim:
        raise ArgumentError(
            f"value_dim: expected at most the {dim} columns of a key, got {value_dim}"
        )
    if v is None:
        kernel_sizes.check_dim("value_dim", value_dim, k.dtype)
    if q_rope is not None:
        expect("q", "the columns of values,", value_dim, q.shape[3])
    check_heads('tensor "q"', q.shape[1], k.shape[1])
    if settings.selected and (settings.window is not None or (settings.causal and q.shape[2] > 1)):
        raise ArgumentError(
            "selected: expected no window, and causal=False with several queries, since keys of "
            "a table have no positions"
        )
    o = tensors.get("o")
    out_type = (settings.out_type or q.dtype) if o is None else o.dtype
    descales = [tensors[name] for name in ("k_descale", "v_descale") if name in tensors]
    sinks = tensors.get("sinks")
    if sinks is not None:
        check_sinks(sinks, q.shape[1])
    if o is not None:
        columns = count_output_columns(out_type, value_dim)
        check_out(o, [*q.shape[:3], columns])
    problem = DecodeProblem(
        batch=q.shape[0],
        heads=q.shape[1],
        queries=q.shape[2],
        dim=dim,
        value_dim=value_dim,
        kv_heads=k.shape[1],
        page_size=k.shape[2],
        max_pages=table.shape[1],
        table_stride=table.strides[0] if table.shape[0] > 1 else table.shape[1],
        pages=k.shape[0] if q.device < 0 else DYNAMIC,
        dtype=q.dtype,
        out_type=out_type,
        k_strides=k.strides[:3],
        v_strides=k.strides[:3] if v is None else v.strides[:3],
        q_strides=q.strides[:3],
        o_strides=order_output(q, value_dim) if o is None else o.strides[:3],
        window=decode_problem.to_window(settings.causal, settings.window, q.shape[2]),
        factors=settings.list_factors(),
        sinks=sinks is not None,
        lse=lse,
        kv_splits=decode_problem.count_runs(
            settings.run_keys, settings.kv_splits, table.shape[1] * k.shape[2]
        ),
        latent=v is None,
        run_keys=settings.run_keys,
        expected_keys=settings.expected_keys,
        selected=settings.selected,
        init=read_init(tensors, (*q.shape[:3], value_dim)),
        kv_dtype=None if k.dtype == q.dtype else k.dtype,
        descale_strides=_get_descale_strides(descales),
        scale_group=scale_group,
        row_strides=get_row_strides(tensors),
        q_rope_strides=None if q_rope is None else q_rope.strides[:3],
        out_scale=settings.out_scale,
        partials=settings.partials,
        regions=settings.describe_regions(_get_captures(tensors)),
        added=added_keys.read_added(tensors, settings),
        **find_outputs(tensors, out_type, settings, value_dim, group),
    )
    return problem if settings.max_seqlen_q is None else _pack(problem, settings, table.shape[0], q)


def _get_captures(tensors: Mapping[str, TensorView]) -> dict[str, TensorView]:
    """What regions read, which is where q is."""
    captures = {name: each for name, each in tensors.items() if name.startswith("capture")}
    device = tensors["q"].device
    for name, each in captures.items():
        check_device(name, each, device)
    return captures


def name_captures(tensors: Sequence[Any]) -> dict[str, Any]:
    """What regions read, by the kernel's names."""
    return {f"capture{number}": each for number, each in enumerate(tensors)}


def _pack(
    problem: DecodeProblem, settings: Settings, sequences: int, q: TensorView
) -> DecodeProblem:
    """The problem of packed queries. Powers of two bound the number of kernels; how
    many queries there are in all, only a launch on a GPU says."""
    most = settings.max_seqlen_q or 1
    init = problem.init
    if init is not None:
        dtype, o, lse = init
        init = dtype, (DYNAMIC, *o[1:]), (DYNAMIC, *lse[1:])
    return problem._replace(
        init=init,
        batch=sequences,
        queries=q.shape[2] if q.device < 0 else DYNAMIC,
        max_queries=1 << (most - 1).bit_length(),
        q_strides=(DYNAMIC, *problem.q_strides[1:]),
        o_strides=(DYNAMIC, *problem.o_strides[1:]),
        o_scales_strides=(
            None if problem.o_scales_strides is None else (DYNAMIC, *problem.o_scales_strides[1:])
        ),
        scale_tiles=(
            problem.scale_tiles
            if problem.scale_tiles is None or q.device < 0
            else (DYNAMIC, problem.scale_tiles[1])
        ),
        window=decode_problem.to_window(settings.causal, settings.window, queries=2),
    )


def _get_descale_strides(
    descales: Sequence[TensorView],
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    if not descales:
        return None
    k, v = (each.shape[1:] + (1,) if each.device < 0 else each.strides for each in descales)
    return (k[0], k[1]), (v[0], v[1])


class Runner:
    """A kernel for a problem, which runs on arrays of the host or of a GPU."""

    def __init__(self, problem: DecodeProblem, device: int, planned: bool) -> None:
        self.problem = problem
        chip = get_chip_of(device, problem.kv_dtype is not None)
        compile_for = decode_problem.compile_planned if planned else decode_problem.compile_decode
        self.kernel: Kernel = compile_for(problem, chip)
        self._binder = Binder(self.kernel.launch)
        self._parts: tuple[planned_steps.Part, planned_steps.Part] | None = None
        self._prepared: dict[object, runtime.PreparedLaunch] = {}

    def get_workspaces(self) -> tuple[int, ...]:
        """Bytes of each workspace, which follow from what the problem fixes."""
        shapes = {each["name"]: each for each in self.kernel.launch["tensors"]}

        def lookup(tensor: str, is_stride: bool, index: int) -> int | None:
            return int(shapes[tensor]["strides" if is_stride else "shape"][index])

        return tuple(each.bytes.evaluate(lookup) for each in self.list_workspaces())

    def list_workspaces(self) -> list[Workspace]:
        """What the record says of each."""
        return self._binder.workspaces

    def split(self, batch: Collection[str]) -> tuple[planned_steps.Part, planned_steps.Part] | None:
        """The kernel's first steps, which read only these tensors of a batch, and the others; None
        where there are none of the first."""
        count = planned_steps.count_planned(self.kernel.launch, batch)
        if count and self._parts is None:
            self._parts = planned_steps.split(decode_problem.load(self.kernel), count)
        return self._parts

    def run_numpy(self, inputs: Mapping[str, Any]) -> dict[str, NDArray[np.generic]]:
        """On arrays in host memory: on the GPU where there is one, else on the
        simulator."""
        return self.kernel.run(**inputs)

    def prepare(
        self, views: Mapping[str, TensorView], kernel: runtime.LoadedKernel | None = None
    ) -> runtime.PreparedLaunch:
        """The launch on tensors of a GPU, in the record's order, but for addresses: of a part of
        the kernel, if it is given."""
        key = (tuple([(name, each[:3]) for name, each in views.items()]), views["q"].device)
        prepared = self._prepared.get(key)
        if prepared is None:
            if len(self._prepared) >= _KEPT_LAUNCHES:
                self._prepared.clear()
            kernel = kernel or decode_problem.load(self.kernel)
            prepared = self._prepared[key] = kernel.prepare(views)
        return prepared


_runners: dict[object, Runner] = {}


def get_runner(problem: DecodeProblem, device: int, planned: bool = False) -> Runner:
    """The runner of a problem, compiled by the first call; with `planned` for launches that
    share lengths."""
    key = (problem, device, planned)
    runner = _runners.get(key)
    if runner is None:
        if len(_runners) >= _KEPT_RUNNERS:
            _runners.clear()
        runner = _runners[key] = Runner(problem, device, planned)
    return runner


def get_stream(value: Any, stream: int | None, device: int) -> int:
    """The stream of a call: torch's current one for its tensors."""
    if stream is not None:
        return stream
    return runtime.get_torch_stream(device) if device_tensors.is_torch(value) else 0


def get_chip_of(device: int, is_narrow: bool = False) -> str:
    """The target of a device; without a GPU $ATTN_CHIP, else sm_80, with `is_narrow`
    sm_89, which converts 8-bit floats."""
    if device < 0 and not host_arrays.has_device():
        return os.environ.get("ATTN_CHIP") or ("sm_89" if is_narrow else "sm_80")
    opened = cuda_driver.get_device(max(device, 0))
    return get_chip(opened.major, opened.minor)


def shape_numpy(array: NDArray[np.generic], rank: int) -> NDArray[np.generic]:
    """An o of rank 4, or an lse of rank 3, as the caller has q: with `rank` 3
    without the dimension of queries. A matrix of scales in tiles stays what it is."""
    return array[:, :, 0] if rank == 3 and array.ndim > 2 else array


def make_empty(problem: DecodeProblem, q: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
    """The results of no queries or no sequences, for which there is nothing to launch."""
    import numpy as np

    batch = problem.batch if problem.max_queries is None else 1
    rows = (batch, problem.heads, problem.queries)
    columns = count_output_columns(problem.out_type, problem.value_dim)
    o = np.zeros((*rows, columns), arrays.CARRIERS[problem.out_type][0])
    dtypes = {"o": problem.out_type, "q": problem.dtype}
    made = arrays.restore({"o": o}, {"q": q}, dtypes)
    if problem.out_group is not None:
        linear = (*rows, problem.value_dim // problem.out_group)
        shape = problem.scale_tiles or linear
        made["o_scales"] = np.zeros(shape, arrays.CARRIERS[problem.scales_type][0])
    return made | ({"lse": np.zeros(rows, np.float32)} if problem.lse else {})


def _erase(array: NDArray[np.generic], rows: int) -> NDArray[np.generic]:
    """Makes rows of a new result that no sequence has NaN, the first `rows` being of some."""
    bits = arrays.to_bits(array)
    bits[rows:] = ~bits.dtype.type(0)
    return array


def join_results(o: Any, lse: Any, scales: Any) -> Any:
    """What a call returns: o, or a tuple with what there is beside it."""
    more = [each for each in (lse, scales) if each is not None]
    return (o, *more) if more else o


def decode_numpy(
    tensors: Mapping[str, Any],
    settings: Settings,
    lse: bool,
    asked: attention_outputs.Asked = attention_outputs.PLAIN,
) -> Any:
    """On arrays in host memory; new results, in q's rank, with scales where they are asked
    for. The largest size joins what is in amax, if that is given."""
    with argument_names.rename(name_arguments(settings)):
        views = read_views(tensors, settings)
        batch_lists.check_lengths(views["kv_lengths"], views["page_table"], tensor_views.HOST)
        _check_batch(views)
        if asked.group is not None:
            values = settings.value_dim if "v" not in views else views["v"].shape[3]
            views |= attention_outputs.make_views(views["q"], values or 0, False, asked)
        problem = make_problem(views, settings, lse, asked.group)
        _check_values(tensors, views, settings)
    rank = tensors["q"].ndim
    inputs = numpy_inputs.arrange(tensors, settings) | numpy_inputs.spread_scales(tensors, problem)
    outputs = (
        make_empty(problem, tensors["q"])
        if 0 in (*views["q"].shape, problem.batch)
        else get_runner(problem, tensor_views.HOST).run_numpy(inputs)
    )
    if problem.out_type == PAIRED:
        outputs["o"] = outputs["o"].view("uint8")
    log, scales = outputs.get("lse"), outputs.get("o_scales")
    if "amax" in outputs:
        tensors["amax"][...] = outputs["amax"]
    if settings.max_seqlen_q is not None:
        end = int(tensors["cu_seqlens_q"][-1])
        o, log, scales = (
            each if each is None or each.ndim == 2 else _erase(each[0].swapaxes(0, 1), end)
            for each in (outputs["o"], log, scales)
        )
        return join_results(o, log, scales)
    return join_results(
        *(each if each is None else shape_numpy(each, rank) for each in (outputs["o"], log, scales))
    )


def _check_ranks(ranks: Mapping[str, int]) -> None:
    """Tensors beside q have its rank, LSEs one dimension less."""
    for name, less in (("init_o", 0), ("init_lse", 1), ("q_rope", 0)):
        if name in ranks:
            expect(name, "beside q a rank of", ranks["q"] - less, ranks[name])


def read_views(tensors: Mapping[str, Any], settings: Settings) -> dict[str, TensorView]:
    """Views by the kernel's names, in its order of dimensions."""
    views: dict[str, TensorView] = {}
    ranks: dict[str, int] = {}
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        each = tensor_views.view(
            argument_names.OUTPUTS.get(name, name), tensor, is_captured=name.startswith("capture")
        )
        ranks[name] = len(each.shape)
        is_state = name in ("init_o", "init_lse")
        is_packed = settings.max_seqlen_q is not None
        is_matrix = name == "o_scales" and len(each.shape) == 2
        if is_packed and not is_matrix and (is_state or name in ("q", "o", "lse", "o_scales")):
            each = tensor_views.turn_packed(argument_names.OUTPUTS.get(name, name), each)
        elif name in ("q", "o", "init_o", "q_rope", "o_scales") and not is_matrix:
            each = tensor_views.turn_rows(argument_names.OUTPUTS.get(name, name), each)
        elif name in ("lse", "init_lse"):
            each = tensor_views.turn_lse(name, each)
        elif name == "k_cache" and settings.value_dim is not None:
            each = tensor_views.turn_latent(name, each)
        elif name == "added_k" and settings.value_dim is not None:
            each = tensor_views.turn_latent(name, each)
        elif name in ("k_cache", "v_cache", "added_k", "added_v"):
            each = tensor_views.turn_pool(name, each, settings.layout)
        elif name in ROW_TENSORS:
            is_latent = settings.value_dim is not None
            each = (
                tensor_views.turn_latent(name, each)
                if is_latent
                else tensor_views.turn_pool(name, each, settings.layout)
            )
        views[name[0] if name.endswith("_cache") else name] = each
    _check_ranks(ranks)
    turn_scales(views)
    return views


def get_lse_strides(lse: TensorView) -> tuple[int, int, int] | None:
    """Strides of an LSE, (batch, heads, queries), None if it is dense."""
    _, heads, queries = lse.shape
    dense = (heads * queries, queries, 1)
    pairs = zip(lse.shape, lse.strides, dense, strict=True)
    if all(extent == 1 or step == expected for extent, step, expected in pairs):
        return None
    return lse.strides[0], lse.strides[1], lse.strides[2]


def name_arguments(settings: Settings) -> Mapping[str, str]:
    """What the call has other names for than the kernel."""
    return argument_names.LATENT if settings.value_dim is not None else {}


def launch_decode(
    tensors: Mapping[str, Any], settings: Settings, stream: int | None, group: int | None = None
) -> None:
    """Launches on tensors of a GPU: q, k_cache, v_cache, page_table, kv_lengths and o,
    and lse, sinks, init_o, init_lse, k_scale, v_scale, o_scales and amax where they are there;
    v_cache is None in the latent form. Columns of o that share a scale are `group`, where it is
    not the scales that say so."""
    with argument_names.rename(name_arguments(settings)):
        views = read_views(tensors, settings)
        device = views["q"].device
        batch_lists.check_lengths(views["kv_lengths"], views["page_table"], device)
        _check_batch(views)
        check_devices(views, device)
        lse = views.get("lse")
        if lse is not None:
            check_lse(lse, views["q"].shape[:3])
        if "o_scales" not in views:
            check_out_type(views["o"].dtype)
        problem = make_problem(views, settings, lse is not None, group)
        _check_values(tensors, views, settings)
    if lse is not None and settings.max_seqlen_q is None:
        problem = problem._replace(lse_strides=get_lse_strides(lse))
    if 0 in (*views["q"].shape, *views["kv_lengths"].shape):
        return
    runner = get_runner(problem, device)
    names = decode_problem.load(runner.kernel).names
    ordered = {name: views[name] for name in names}
    addresses = [each.address for each in ordered.values()]
    runner.prepare(ordered)(addresses, get_stream(tensors["q"], stream, device))
