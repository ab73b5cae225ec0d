"""What `attn.decode`, `attn.mla_decode`, `attn.prefill`, `attn.DecodePlan` and `attn.merge_states`
compile: problems of servers as MLIR text, whose strides are the tensors' own."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .. import runtime
from ..calls.attention_outputs import PAIRED
from ..kernel import Kernel, compile_problem
from ..record import DYNAMIC
from ..tracing.captured_reads import Spec
from ..tracing.mod_regions import Regions
from .added_keys import AddedKeys

#: Names of element types, as `Spec` has them.
_DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}

#: Tensors with something for each row of the pools, beside these.
ROW_TENSORS = ("k_scales", "v_scales", "k_rope")


class DecodeProblem(NamedTuple):
    """Everything that makes a kernel for a batch of sequences with paged keys."""

    batch: int
    heads: int
    queries: int
    dim: int
    value_dim: int
    kv_heads: int
    page_size: int
    #: Entries of the table for each sequence.
    max_pages: int
    #: Elements from a row of the table to the next one.
    table_stride: int
    #: Pages of the pools; DYNAMIC leaves them to the launch.
    pages: int
    dtype: str
    out_type: str
    #: Elements from a page, a head and a key to the next one.
    k_strides: tuple[int, int, int]
    v_strides: tuple[int, int, int]
    #: Elements from a sequence, a head and a query to the next one.
    q_strides: tuple[int, int, int]
    o_strides: tuple[int, int, int]
    #: Keys to the left and right of a query's own that it sees, the last query
    #: being at the last key; None sees all.
    window: tuple[int, int] | None
    #: Factors of the scores: attributes of the op by name, as far as they are there.
    factors: tuple[tuple[str, float], ...]
    sinks: bool
    lse: bool
    kv_splits: int | None
    #: The values are the first `value_dim` columns of the keys.
    latent: bool = False
    #: Element type of the pools; None is that of q.
    kv_dtype: str | None = None
    #: Elements from a sequence and a key head to the next one of k_descale and
    #: v_descale, where units of 8-bit pools stand for other numbers than 1.
    descale_strides: tuple[tuple[int, int], tuple[int, int]] | None = None
    #: Columns of a row of 8-bit pools that share a scale; None without such scales.
    scale_group: int | None = None
    #: Elements from a page, a head and a key to the next one of ROW_TENSORS, None for
    #: one that is not there.
    row_strides: tuple[tuple[int, int, int] | None, ...] = (None, None, None)
    #: Queries of `batch` sequences lie one behind the other, `queries` rows in all,
    #: at most so many of each; None where each sequence has `queries`.
    max_queries: int | None = None
    #: Elements from a sequence, a head and a query to the next one of the LSE; without
    #: them its rows are dense in the order of the problem.
    lse_strides: tuple[int, int, int] | None = None
    #: score_mod and mask_mod.
    regions: Regions | None = None
    #: Keys of each of the runs; None where the kernel says where they end.
    run_keys: int | None = None
    #: Keys that sequences are expected to have, which costs are those of.
    expected_keys: tuple[int, ...] | None = None
    #: Ids that the pool does not have hide their keys.
    selected: bool = False
    #: Of a state to go on from, the element type of its o, and elements from a sequence,
    #: a head and a query to the next one of its o and LSE.
    init: tuple[str, tuple[int, int, int], tuple[int, int, int]] | None = None
    #: Elements from a sequence, a head and a query to the next one of q_rope, the rotated
    #: columns of q where q has only the others.
    q_rope_strides: tuple[int, int, int] | None = None
    #: What an o of 8 bits is multiplied by before it is rounded.
    out_scale: float | None = None
    #: Columns of an o of 8 bits that share a scale, which the kernel writes, the element type of
    #: these scales, and strides of their tensor but for its columns, or its shape in tiles.
    out_group: int | None = None
    scales_type: str = "f32"
    o_scales_strides: tuple[int, int, int] | None = None
    scale_tiles: tuple[int, int] | None = None
    #: Element type of the results of runs, which the launch merges.
    partials: str = "auto"
    #: Keys beside those of the table.
    added: AddedKeys | None = None
    #: The largest size of the results goes somewhere.
    amax: bool = False

    @property
    def key_columns(self) -> int:
        """Columns of the pool of keys: rotated ones may have a pool of their own."""
        return self.dim if self.row_strides[-1] is None else self.value_dim

    @property
    def query_columns(self) -> int:
        """Columns of q: rotated ones may be a tensor of their own."""
        return self.dim if self.q_rope_strides is None else self.value_dim

    @property
    def pool_dtype(self) -> str:
        return self.dtype if self.kv_dtype is None else self.kv_dtype


def count_output_columns(out_type: str, value_dim: int) -> int:
    """Columns of an o for so many of the values."""
    return value_dim // 2 if out_type == PAIRED else value_dim


def _declare(
    name: str, dtype: str, shape: Sequence[int], strides: Sequence[int]
) -> tuple[str, str]:
    spec = Spec(_DTYPES.get(dtype, dtype), tuple(shape), tuple(strides))
    return f"%{name}", spec.memref()


def _join(pairs: Sequence[tuple[str, str]]) -> str:
    return f"{', '.join(name for name, _ in pairs)} : {', '.join(kind for _, kind in pairs)}"


def _write_number(value: float) -> str:
    """A number as MLIR reads it, whose mantissa has a point."""
    mantissa, letter, exponent = repr(float(value)).partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + letter + exponent


def _write_attributes(problem: DecodeProblem) -> str:
    attributes = [f"page_size = {problem.page_size} : i64"]
    if problem.added is not None:
        attributes.append(f"added_page_size = {problem.added.page_size} : i64")
    if problem.max_queries is not None:
        attributes.append(f"max_seqlen_q = {problem.max_queries} : i64")
    if problem.selected:
        attributes.append("selected")
    if problem.run_keys is not None:
        attributes.append(f"run_keys = {problem.run_keys} : i64")
    if problem.expected_keys is not None:
        numbers = ", ".join(map(str, problem.expected_keys))
        attributes.append(f"expected_keys = array<i64: {numbers}>")
    if problem.scale_group is not None:
        attributes.append(f"scale_group = {problem.scale_group} : i64")
    if problem.latent:
        attributes.append(f"rope_dim = {problem.dim - problem.value_dim} : i64")
    if problem.window is not None:
        left, right = problem.window
        kind = "causal" if problem.window == (-1, 0) else f"window, left = {left}, right = {right}"
        attributes.append(f"mask = #attn.mask<kind = {kind}, align = bottom_right>")
    if problem.out_group is not None and problem.kv_splits is None:
        attributes.append(f"out_group = {problem.out_group} : i64")
    if problem.out_scale is not None and problem.kv_splits is None:
        attributes.append(f"out_scale = {_write_number(problem.out_scale)} : f32")
    attributes += [f"{name} = {_write_number(value)} : f32" for name, value in problem.factors]
    return ", ".join(attributes)


def _write_latent_values(p: DecodeProblem, keys: str, values: str) -> str:
    """The values as columns of the keys."""
    pages, front = str(p.pages), ""
    if p.pages == DYNAMIC:
        front = f"  %zero = arith.constant 0 : index\n  %pages = memref.dim %k, %zero : {keys}\n"
        pages = "%pages"
    sizes = f"[{pages}, {p.kv_heads}, {p.page_size}, {p.value_dim}]"
    return (
        f"{front}  %v = memref.subview %k[0, 0, 0, 0] {sizes} [1, 1, 1, 1] : {keys} to {values}\n"
    )


def _declare_rows(p: DecodeProblem) -> tuple[list[tuple[str, str]], str]:
    """What belongs to rows of the pools, and the clauses that name it."""
    names = {}
    for name, strides in zip(ROW_TENSORS, p.row_strides, strict=True):
        if strides is None:
            continue
        columns = p.dim - p.value_dim
        if name != "k_rope":
            width = p.key_columns if name == "k_scales" else p.value_dim
            columns = width // (p.scale_group or width)
        shape = (p.pages, p.kv_heads, p.page_size, columns)
        dtype = p.dtype if name == "k_rope" else "f32"
        names[name] = _declare(name, dtype, shape, (*strides, 1))
    scales = [names[name] for name in ("k_scales", "v_scales") if name in names]
    clauses = f" scales({_join(scales)})" if scales else ""
    if "k_rope" in names:
        rope = [names["k_rope"]]
        if p.q_rope_strides is not None:
            shape = (p.batch, p.heads, p.queries, p.dim - p.value_dim)
            names["q_rope"] = _declare("q_rope", p.dtype, shape, (*p.q_rope_strides, 1))
            rope.append(names["q_rope"])
        clauses += f" rope({_join(rope)})"
    return list(names.values()), clauses


def _declare_added(p: DecodeProblem) -> list[tuple[str, str]]:
    """The tensors of added keys, in the order of their clause."""
    if p.added is None:
        return []
    each = p.added
    rows = (each.pages, p.kv_heads, each.page_size)
    found = [_declare("added_k", p.pool_dtype, (*rows, p.dim), (*each.k_strides, 1))]
    if each.v_strides is not None:
        values = _declare("added_v", p.pool_dtype, (*rows, p.value_dim), (*each.v_strides, 1))
        found.append(values)
    table = (p.batch, each.max_pages), (each.table_stride, 1)
    found.append(_declare("added_table", "int32", *table))
    return [*found, _declare("added_lengths", "int32", (p.batch,), (1,))]


def _declare_scales(p: DecodeProblem, rows: tuple[int, int, int]) -> list[tuple[str, str]]:
    """The tensor of scales of an o of `rows`, if it has some."""
    if p.out_group is None:
        return []
    if p.scale_tiles is not None:
        return [_declare("o_scales", p.scales_type, p.scale_tiles, (p.scale_tiles[1], 1))]
    shape = (*rows, p.value_dim // p.out_group)
    return [_declare("o_scales", p.scales_type, shape, (*(p.o_scales_strides or ()), 1))]


def write_decode(problem: DecodeProblem) -> str:
    """The problem as MLIR. With `kv_splits` the results of that many runs go to
    memory of the launch, which merges them: in a second kernel, or where the plan says so
    in the same one."""
    p = problem
    is_packed = p.max_queries is not None
    rows = (1 if is_packed else p.batch, p.heads, p.queries)
    log_strides = p.lse_strides or (p.heads * p.queries, p.queries, 1)
    if is_packed:
        log_strides = (DYNAMIC, 1, p.heads)

    def declare_pool(name: str, dim: int, strides: tuple[int, int, int]) -> tuple[str, str]:
        shape = (p.pages, p.kv_heads, p.page_size, dim)
        return _declare(name, p.pool_dtype, shape, (*strides, 1))

    operands = [
        _declare("q", p.dtype, (*rows, p.query_columns), (*p.q_strides, 1)),
        declare_pool("k", p.key_columns, p.k_strides),
    ]
    arguments = [*operands]
    values = declare_pool("v", p.value_dim, p.v_strides)
    operands.append(values)
    if not p.latent:
        arguments.append(values)
    columns = count_output_columns(p.out_type, p.value_dim)
    results = [_declare("o", p.out_type, (*rows, columns), (*p.o_strides, 1))]
    if p.lse:
        results.append(_declare("lse", "f32", rows, log_strides))
    table = _declare("page_table", "int32", (p.batch, p.max_pages), (p.table_stride, 1))
    lengths = _declare("kv_lengths", "int32", (p.batch,), (1,))
    more = f"pages({_join([table])}) kv_lengths({_join([lengths])})"
    arguments += [*results, table, lengths]
    if is_packed:
        counts = _declare("cu_seqlens_q", "int32", (p.batch + 1,), (1,))
        arguments.append(counts)
        more = f"cu_seqlens({_join([counts])}) {more}"
    if p.sinks:
        sinks = _declare("sinks", "f32", (p.heads,), (1,))
        arguments.append(sinks)
        more = f"sinks({_join([sinks])}) {more}"
    if p.init is not None:
        init_dtype, init_strides, init_log_strides = p.init
        state = [
            _declare("init_o", init_dtype, (*rows, p.value_dim), (*init_strides, 1)),
            _declare("init_lse", "f32", rows, init_log_strides),
        ]
        arguments += state
        more += f" init({_join(state)})"
    if p.descale_strides is not None:
        descales = [
            _declare(f"{name}_descale", "f32", (p.batch, p.kv_heads), strides)
            for name, strides in zip("kv", p.descale_strides, strict=True)
        ]
        arguments += descales
        more += f" descales({_join(descales)})"
    beside, clauses = _declare_rows(p)
    arguments += beside
    more += clauses
    if added := _declare_added(p):
        arguments += added
        more += f" added({_join(added)})"
    scales = _declare_scales(p, rows)
    arguments += scales
    if scales and p.kv_splits is None:
        more += f" out_scales({_join(scales)})"
    amax = [_declare("amax", "f32", (1,), (1,))] if p.amax else []
    arguments += amax
    if amax and p.kv_splits is None:
        more += f" amax({_join(amax)})"
    attributes = _write_attributes(p)
    front = _write_latent_values(p, arguments[1][1], values[1]) if p.latent else ""
    behind = ""
    outputs = results
    if p.kv_splits is not None:
        attributes += f", kv_splits = {p.kv_splits} : i64"
        shape = (p.kv_splits, *rows)
        kinds = [Spec("float32", each, ()).row_major() for each in ((*shape, p.value_dim), shape)]
        outputs = [
            (f"%partial_{name}", spec.memref().partition(", strided")[0] + ">")
            for name, spec in zip(("o", "lse"), kinds, strict=True)
        ]
        front += "".join(f"  {name} = memref.alloc() : {kind}\n" for name, kind in outputs)
        factors = [] if p.out_scale is None else [f"out_scale = {_write_number(p.out_scale)} : f32"]
        factors += [f"out_group = {p.out_group} : i64"] if scales else []
        factors += ["amax"] if amax else []
        factor = f" {{{', '.join(factors)}}}" if factors else ""
        merged = _join([*results, *scales, *amax])
        behind = f"  attn.combine ins({_join(outputs)}) outs({merged}){factor}\n"
    declared = ", ".join(f"{name}: {kind}" for name, kind in arguments)
    text = (
        f"func.func @decode({declared}) {{\n{front}"
        f"  attn.attention ins({_join(operands)}) outs({_join(outputs)}) {more} {{{attributes}}}\n"
        f"{behind}  return\n}}\n"
    )
    return text if p.regions is None else p.regions.splice(text)


def write_merge(value_dim: int, out_type: str, shape: Sequence[int] | None) -> str:
    """Partial results of a shape (states, batch, heads, queries), or of any, merged."""
    extents = ["?"] * 4 if shape is None else [str(extent) for extent in shape]

    def declare(name: str, extents: Sequence[str], element: str) -> tuple[str, str]:
        return f"%{name}", f"memref<{'x'.join(extents)}x{element}>"

    dim = str(value_dim)
    inputs = [
        declare("partial_o", [*extents, dim], "f32"),
        declare("partial_lse", extents, "f32"),
    ]
    results = [
        declare("o", [*extents[1:], dim], out_type),
        declare("lse", extents[1:], "f32"),
    ]
    declared = ", ".join(f"{name}: {kind}" for name, kind in (*inputs, *results))
    return (
        f"func.func @merge({declared}) {{\n"
        f"  attn.combine ins({_join(inputs)}) outs({_join(results)})\n  return\n}}\n"
    )


def _compile(
    text: str,
    chip: str,
    split_keys: bool,
    plan: Mapping[str, object] | None = None,
    schedule: str | None = None,
    partials: str = "auto",
) -> Kernel:
    return compile_problem(
        text,
        {},
        (None, None, None),
        chip=chip,
        plan=plan,
        schedule=schedule,
        epilogue=None,
        plan_table=None,
        shipped_plans=True,
        split_keys=split_keys,
        partials=partials,
        debug_lines=False,
        cache=True,
    )


@functools.lru_cache(maxsize=1024)
def compile_decode(problem: DecodeProblem, chip: str) -> Kernel:
    """The kernel of a problem, whose number of runs is the planner's choice
    unless the problem says it: 1 leaves the keys in one run, but for runs of so many
    keys, which are partial results whatever their number is."""
    if problem.kv_splits == 1 and problem.run_keys is None:
        return _compile(write_decode(problem._replace(kv_splits=None)), chip, False)
    return _compile(write_decode(problem), chip, True, partials=problem.partials)


def count_equal_runs(plan: str) -> int:
    """How many equal runs all sequences have together under a plan, 0 where each has its own."""
    found = re.match(r"#attn\.mla<.*\bdealt_runs = (\d+)", plan)
    return int(found[1]) if found else 0


@functools.lru_cache(maxsize=1024)
def compile_planned(problem: DecodeProblem, chip: str) -> Kernel:
    """The same for launches that share lengths: where runs of keys are dealt to sequences,
    a kernel in front does it, which reads lengths only. Those of `mla` and `ws_tmem` always
    have one."""
    kernel = compile_decode(problem, chip)
    if not re.match(r"#attn\.decode<.*\bdealt_runs", kernel.plan):
        return kernel
    plan = {"plan_work": True}
    return _compile(write_decode(problem), chip, True, plan, "decode", problem.partials)


@functools.lru_cache(maxsize=256)
def compile_merge(
    value_dim: int, out_type: str, chip: str, shape: tuple[int, ...] | None = None
) -> Kernel:
    """The kernel that merges partial results, of any shape unless it is said."""
    return _compile(write_merge(value_dim, out_type, shape), chip, False)


_lock = threading.Lock()
_loaded: dict[Kernel, runtime.LoadedKernel] = {}


def load(kernel: Kernel) -> runtime.LoadedKernel:
    """The kernel for launches, loaded once."""
    found = _loaded.get(kernel)
    if found is None:
        found = kernel.load()
        with _lock:
            found = _loaded.setdefault(kernel, found)
    return found


def count_runs(run_keys: int | None, kv_splits: int | None, keys: int) -> int | None:
    """Into how many runs up to `keys` keys are cut, None where the planner says it."""
    return kv_splits if run_keys is None else max(1, -(-keys // run_keys))


def make_pool_strides(
    layout: str, kv_heads: int, page_size: int, dim: int, page_stride: int | None
) -> tuple[int, int, int]:
    """Strides of a pool whose pages are dense."""
    page = page_size * kv_heads * dim if page_stride is None else page_stride
    inner = (dim, kv_heads * dim) if layout == "nhd" else (page_size * dim, dim)
    return (page, *inner)


def to_window(causal: bool, bounds: tuple[int, int] | None, queries: int) -> tuple[int, int] | None:
    """The mask of a batch, None if it hides nothing. One query is at its last
    key, so that nothing lies to its right."""
    left, right = bounds or (-1, -1)
    if causal:
        right = 0
    if queries == 1:
        right = -1
    return None if (left, right) == (-1, -1) else (left, right)
