"""`attn.DecodePlan`: one kernel for all batches within bounds, with memory of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .. import runtime
from ..calls.call_arguments import Modification
from ..errors import ArgumentError
from ..kernel import Kernel
from ..launch import cuda_driver, device_tensors, host_arrays
from ..launch.device_memory import Memory
from ..launch.one_process import OfProcess
from ..options import kernel_sizes, readers
from ..record import TensorView
from ..tensors import batch_lists, tensor_views
from . import decode_launch, decode_problem, numpy_inputs
from .decode_calls import name_state
from .decode_problem import ROW_TENSORS
from .plan_checks import check_planned
from .pool_rows import get_row_strides, make_apart_views, make_row_views
from .settings import Settings, trace_mods

_HOST = -1
#: Sets of tensors whose launches are kept.
_KEPT_LAUNCHES = 256
_I32 = 4


def _make_key(operands: Sequence[Any]) -> object:
    """What tells torch tensors apart but for their addresses; None of what has none."""
    try:
        return tuple(
            [
                each if each is None else (each.shape, each.stride(), each.dtype, each.get_device())
                for each in operands
            ]
        )
    except (AttributeError, TypeError):
        return None


def _join_results(o: Any, lse: Any, scales: Any) -> Any:
    results = tuple(each for each in (o, lse, scales) if each is not None)
    return results[0] if len(results) == 1 else results


def _read_device(device: Any) -> int:
    if device is None:
        return 0 if host_arrays.has_device() else _HOST
    if isinstance(device, str) and device == "host":
        return _HOST
    # A string has an index, too, which is a function.
    index = device if isinstance(device, str) else getattr(device, "index", device)
    return readers.to_integer("device", 0 if index is None else index, 0, 2**31 - 1)


class DecodePlan(OfProcess):
    """Decode of batches of up to `batch` sequences of up to `max_pages` pages.

    The kernel, its workspaces and room for lengths and a table are made once.
    `plan` copies a batch's lengths and table there, and has a kernel deal runs of keys by them
    where the planner wants that; `run` launches on them: neither allocates, and both can be
    captured in a CUDA graph, whose replays then serve whatever `plan` copied last.

        plan = attn.DecodePlan(batch=64, heads=32, kv_heads=8, dim=128, page_size=16,
                               max_pages=2048, dtype="bfloat16")
        plan.plan(kv_lengths, page_table)      # once a step
        plan.run(q, k_cache, v_cache, out=o)   # once a layer

    Pools are dense in the order of `layout` ("nhd": page, key, head, dim; "hnd"),
    pages `page_stride` elements apart where more lies between them, as keys and
    values in one tensor have it. `queries` are the last ones of each sequence.
    With `latent` the pool is that of `attn.mla_decode`: `dim` columns of a key, whose
    first `value_dim` ones are the values. `kv_dtype` is the element type of pools of
    8 bits; with `scales` each `run` takes k_scale and v_scale, f32 tensors: "tensor"
    of one element, "head" of one for each key head, "batch" (batch, key heads), or "rows":
    k_scales and v_scales with a number for each row, dense in the order of the pools. A latent
    plan of 8-bit pools has scales of rows, one for each 128 columns, and `run` takes k_scales
    and k_rope; `row_bytes` is the distance of rows where the three lie in one row, 656 in one
    of 512 e4m3, 4 f32 and 64 16-bit columns. With `rope_apart` the rotated columns of q and of
    a latent pool of 16 bits are tensors of their own: `run` takes q_rope, and k_rope, a pool
    with dense pages, or with `row_bytes` with rows as far apart as those of the other one.
    `out_type` is that of o. One of 8 bits is multiplied by `out_scale`, or has a scale for each
    `out_group` columns of a row, which `run` gives too, f32 (batch, heads, groups) or with
    queries behind heads: the largest magnitude of the columns by that of the type.
    `init` is the element type of the o of a state to go on from, which each `run` takes then.
    The other options are those of `attn.decode`; what `score_mod` and `mask_mod` read are
    tensors of the plan, whose contents may change between launches. `device` is a GPU; without one,
    or with "host", arrays of numpy run on the simulator.
    """

    def __init__(
        self,
        *,
        batch: int,
        heads: int,
        dim: int,
        page_size: int,
        max_pages: int,
        kv_heads: int | None = None,
        value_dim: int | None = None,
        dtype: Any = "bfloat16",
        kv_dtype: Any = None,
        scales: str | None = None,
        row_bytes: int | None = None,
        out_type: Any = None,
        out_scale: float | None = None,
        out_group: int | None = None,
        init: Any = None,
        queries: int = 1,
        layout: str = "nhd",
        page_stride: int | None = None,
        causal: bool = True,
        window: Sequence[int | None] | None = None,
        softcap: float | None = None,
        scale: float | None = None,
        sinks: bool = False,
        score_mod: Modification | None = None,
        mask_mod: Modification | None = None,
        lse: bool = False,
        kv_splits: int | None = None,
        run_keys: int | None = None,
        partials: str = "auto",
        selected: bool = False,
        latent: bool = False,
        rope_apart: bool = False,
        device: Any = None,
    ) -> None:
        self._device = _read_device(device)
        is_latent = readers.to_bool("latent", latent)
        if is_latent and (value_dim is None or kv_heads not in (None, 1)):
            raise ArgumentError(
                "DecodePlan: expected value_dim and one key head of the latent form, got "
                f"{value_dim} and {kv_heads}"
            )
        if is_latent:
            kv_heads = 1
        texts, captures = trace_mods(score_mod, mask_mod)
        #: What the regions read; their places in memory are the launches'.
        self._captures = decode_launch.name_captures(captures)
        settings = Settings.read(
            layout=layout,
            causal=causal,
            window=window,
            softcap=softcap,
            scale=scale,
            kv_splits=kv_splits,
            run_keys=run_keys,
            partials=partials,
            selected=selected,
            out_scale=out_scale,
            value_dim=value_dim if is_latent else None,
            **texts,
        )
        self._settings = settings
        count = {"batch": batch, "heads": heads, "dim": dim, "page_size": page_size}
        count |= {"max_pages": max_pages, "queries": queries}
        count["kv_heads"] = heads if kv_heads is None else kv_heads
        count["value_dim"] = dim if value_dim is None else value_dim
        given = {name: readers.to_integer(name, n, 1, 2**31 - 1) for name, n in count.items()}
        kernel_sizes.check_page_size("page_size", given["page_size"])
        element = readers.get_dtype("dtype", dtype)
        strides = [
            decode_problem.make_pool_strides(
                settings.layout, given["kv_heads"], given["page_size"], width, page_stride
            )
            for width in (given["dim"], given["value_dim"])
        ]
        rows = (given["batch"], given["heads"], given["queries"])

        def view(dtype: str, shape: Sequence[int], strides: Sequence[int]) -> TensorView:
            return TensorView(dtype, tuple(shape), (*strides, 1), 0, self._device)

        def dense(width: int) -> tuple[int, int, int]:
            return (rows[1] * rows[2] * width, rows[2] * width, width)

        pool_element = element if kv_dtype is None else readers.get_dtype("kv_dtype", kv_dtype)
        out = element if out_type is None else readers.get_dtype("out_type", out_type)
        self._rows, self._widths = rows, (given["dim"], given["value_dim"])
        self._max_pages = given["max_pages"]
        # Pools of the host state their pages; a plan leaves them open.
        pool = (1, given["kv_heads"], given["page_size"])
        tensors = {
            "q": view(element, (*rows, given["dim"]), dense(given["dim"])),
            "k": view(pool_element, (*pool, given["dim"]), strides[0]),
            "v": view(pool_element, (*pool, given["value_dim"]), strides[1]),
            "o": view(out, (*rows, given["value_dim"]), dense(given["value_dim"])),
            "page_table": view("i32", (rows[0], self._max_pages), (self._max_pages,)),
        }
        for name, each in self._captures.items():
            tensors[name] = tensor_views.view(name, each, is_captured=True)
        if is_latent:
            del tensors["v"]
        if readers.to_bool("sinks", sinks):
            tensors["sinks"] = view("f32", rows[1:2], ())
        if scales is not None:
            readers.to_text("scales", scales)
        for name, size in (("row_bytes", row_bytes), ("page_stride", page_stride)):
            if size is not None:
                readers.to_integer(name, size, 1, 2**40)
        if row_bytes is not None and not (is_latent and (scales == "rows" or rope_apart)):
            raise ArgumentError(
                "row_bytes: expected none but for a latent plan with scales of rows or rope_apart"
            )
        if scales == "rows":
            tensors |= make_row_views(tensors, settings.layout, given, row_bytes)
        elif scales is not None:
            tensors |= self._make_scales(scales, given["batch"], given["kv_heads"])
            decode_launch.turn_scales(tensors)
        if readers.to_bool("rope_apart", rope_apart):
            tensors |= make_apart_views(tensors, given, page_stride, row_bytes)
        if init is not None:
            width = given["value_dim"]
            state = readers.get_dtype("init", init)
            tensors["init_o"] = view(state, (*rows, width), dense(width))
            tensors["init_lse"] = view("f32", rows, (rows[1] * rows[2], rows[2]))
        if out_group is not None:
            group = readers.to_integer("out_group", out_group, 1, given["value_dim"])
            groups, rest = divmod(given["value_dim"], group)
            if rest:
                raise ArgumentError(
                    f"out_group: expected a divisor of {given['value_dim']} columns, got {group}"
                )
            tensors["o_scales"] = view("f32", (*rows, groups), dense(groups))
        problem = decode_launch.make_problem(tensors, settings, readers.to_bool("lse", lse))
        self._problem = problem._replace(pages=-1)
        self._runner = decode_launch.get_runner(self._problem, self._device, planned=True)
        #: What `plan` launches, if there is something, with its workspaces; and the steps that
        #: are left for each `run`.
        self._deal: tuple[runtime.PreparedLaunch, list[int], list[int]] | None = None
        self._rest: runtime.LoadedKernel | None = None
        self._planned = False
        self._stream: int | None = None
        self._workspaces: tuple[Memory, ...] = ()
        #: Launches by what tells torch tensors apart but for their addresses, each
        #: with the places of its addresses: indices among the tensors, or fixed ones.
        self._known: dict[object, tuple[runtime.PreparedLaunch, list[tuple[int, int]]]] = {}
        if self._device != _HOST:
            self._allocate()

    def _make_scales(self, scales: str, batch: int, kv_heads: int) -> dict[str, TensorView]:
        """Views of the scales that `run` will take."""
        shapes = {"tensor": (1,), "head": (kv_heads,), "batch": (batch, kv_heads)}
        if scales not in shapes:
            known = ", ".join((*shapes, "rows"))
            raise ArgumentError(f"scales: expected one of {known}, got {scales!r}")
        strides = (kv_heads, 1) if scales == "batch" else (1,)
        each = TensorView("f32", shapes[scales], strides, 0, self._device)
        return {"k_scale": each, "v_scale": each}

    def _allocate(self) -> None:
        batch = self._problem.batch
        sizes = {"room for lengths": batch * _I32, "room for a table": batch * self._max_pages * _I32}
        self._lengths, self._table = (
            Memory(self._device, size, f"DecodePlan: {what}") for what, size in sizes.items()
        )
        self._workspaces = tuple(
            Memory(self._device, size, "DecodePlan: workspace")
            for size in self._runner.get_workspaces()
        )
        # Kernels leave zeros for the next launch.
        for memory, size, each in zip(
            self._workspaces,
            self._runner.get_workspaces(),
            self._runner.list_workspaces(),
            strict=True,
        ):
            if each.zeroed:
                memory.clear(size)
        self._addresses = [each.address for each in self._workspaces]
        batch_views = self._make_batch_views()
        parts = self._runner.split(batch_views)
        if parts is not None:
            front, rest = parts
            views = {name: batch_views[name] for name in front.kernel.names}
            tensors = [each.address for each in views.values()]
            self._deal = front.kernel.prepare(views), tensors, front.pick(self._addresses)
            self._rest, self._addresses = rest.kernel, rest.pick(self._addresses)

    def _make_batch_views(self) -> dict[str, TensorView]:
        """Lengths and table, as launches have them."""
        batch, device = self._problem.batch, self._device
        table = ((batch, self._max_pages), (self._max_pages, 1), self._table.address)
        return {
            "kv_lengths": TensorView("i32", (batch,), (1,), self._lengths.address, device),
            "page_table": TensorView("i32", *table, device),
        }

    def __repr__(self) -> str:
        p = self._problem
        return (
            f"<attn.DecodePlan of {p.batch} sequences, {p.heads} heads on {p.kv_heads}, "
            f"{p.max_pages} pages of {p.page_size}, {self.splits} runs of keys>"
        )

    @property
    def kernel(self) -> Kernel:
        """The compiled kernel, or kernels."""
        return self._runner.kernel

    @property
    def splits(self) -> int:
        """Into how many runs the keys of a sequence are cut."""
        rows = self._problem.batch * self._problem.heads * self._problem.queries
        for size, each in zip(
            self._runner.get_workspaces(), self._runner.list_workspaces(), strict=True
        ):
            if each.name == "partial_lse":
                return size // (rows * 4)
        return 1

    @property
    def workspace_bytes(self) -> int:
        """Bytes of partial results, and of what counts them."""
        return sum(self._runner.get_workspaces())

    def plan(self, kv_lengths: Any, page_table: Any, *, stream: int | None = None) -> None:
        """Takes a batch's lengths, i32 (sequences), and table, i32 (sequences,
        pages), on the device of the plan. Fewer sequences than `batch` are padded
        with length 0, fewer pages than `max_pages` with none, so that a length beyond a
        narrower table counts zeros up to what `max_pages` hold."""
        lengths = tensor_views.view("kv_lengths", kv_lengths)
        table = tensor_views.view("page_table", page_table)
        batch_lists.check_lengths(lengths, table, self._device)
        for name, given, bound, what in (
            ("kv_lengths", lengths.shape[0], self._problem.batch, "sequences"),
            ("page_table", table.shape[1], self._max_pages, "pages of a sequence"),
        ):
            if given > bound:
                raise ArgumentError(
                    f'tensor "{name}": expected at most {bound} {what}, for which the plan was '
                    f"made, got {given}"
                )
        if self._device == _HOST:
            self._copy_host(kv_lengths, page_table)
        else:
            self._stream = decode_launch.get_stream(kv_lengths, stream, self._device)
            self._copy(lengths, table, self._stream)
            if self._deal is not None:
                prepared, tensors, workspaces = self._deal
                prepared(tensors, self._stream, workspaces)
        self._planned = True

    def _copy_host(self, kv_lengths: Any, page_table: Any) -> None:
        import numpy as np

        lengths = np.zeros(self._problem.batch, np.int32)
        table = np.full((self._problem.batch, self._max_pages), -1, np.int32)
        lengths[: len(kv_lengths)] = kv_lengths
        table[: page_table.shape[0], : page_table.shape[1]] = page_table
        self._inputs = {"kv_lengths": lengths, "page_table": table}

    def _copy(self, lengths: TensorView, table: TensorView, stream: int) -> None:
        driver = cuda_driver.load()
        batch, count = self._problem.batch, lengths.shape[0]

        def check(status: int, call: str) -> None:
            cuda_driver.check(status, call, "DecodePlan.plan")

        with cuda_driver.get_device(self._device):
            if count < batch:
                at = self._lengths.address + count * _I32
                check(driver.cuMemsetD32Async(at, 0, batch - count, stream), "cuMemsetD32Async")
            if table.shape[1] < self._max_pages:
                status = driver.cuMemsetD32Async(
                    self._table.address, 0xFFFFFFFF, batch * self._max_pages, stream
                )
                check(status, "cuMemsetD32Async")
            if count == 0:
                return
            status = driver.cuMemcpyDtoDAsync_v2(
                self._lengths.address, lengths.address, count * _I32, stream
            )
            check(status, "cuMemcpyDtoDAsync")
            if table.shape[1] == 0:
                return
            copy = cuda_driver.make_copy2d(
                source=table.address,
                source_pitch=table.strides[0] * _I32,
                target=self._table.address,
                target_pitch=self._max_pages * _I32,
                width=table.shape[1] * _I32,
                height=count,
            )
            check(driver.cuMemcpy2DAsync_v2(ctypes.byref(copy), stream), "cuMemcpy2DAsync")

    def run(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any = None,
        *,
        sinks: Any = None,
        k_scale: Any = None,
        v_scale: Any = None,
        k_scales: Any = None,
        v_scales: Any = None,
        k_rope: Any = None,
        q_rope: Any = None,
        init: tuple[Any, Any] | None = None,
        out: Any = None,
        lse: Any = None,
        out_scales: Any = None,
        stream: int | None = None,
    ) -> Any:
        """Attention of q to the keys of the batch that `plan` took last. q has all
        `batch` sequences; rows of those that `plan` was not given become zeros. A
        plan of the latent form takes no `v_cache`.
        Returns o, or a tuple with the LSE of a plan with `lse` and the scales of one with
        `out_group` behind it. Writes to `out`, `lse` and `out_scales` where they are given;
        torch has new ones made, numpy always."""
        if not self._planned:
            raise ArgumentError("DecodePlan: expected plan(kv_lengths, page_table) before run")
        state = name_state(init)
        key = None
        if out is not None and device_tensors.is_torch(q):
            operands = (q, k_cache, v_cache, sinks, out, lse, k_scale, v_scale)
            operands += (k_scales, v_scales, k_rope, q_rope, *state.values(), out_scales)
            key = _make_key(operands)
            known = self._known.get(key)
            if known is not None:
                prepared, places = known
                addresses = [at or operands[index].data_ptr() for index, at in places]
                prepared(addresses, self._choose_stream(q, stream), self._addresses)
                return _join_results(out, lse, out_scales)
        tensor_views.view("q", q)
        tensor_views.view("k_cache", k_cache)
        if self._problem.latent != (v_cache is None):
            wanted = "none" if self._problem.latent else "a pool of values"
            raise ArgumentError(f'tensor "v_cache": expected {wanted}, as the plan was made')
        tensors = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "sinks": sinks}
        tensors |= {"k_scale": k_scale, "v_scale": v_scale, **self._captures}
        tensors |= {"k_scales": k_scales, "v_scales": v_scales, "k_rope": k_rope}
        tensors |= {"q_rope": q_rope, **state}
        views = decode_launch.read_views(tensors, self._settings)
        check_planned(views, self._problem, self._device)
        if self._device == _HOST:
            for name, each in (("out", out), ("lse", lse), ("out_scales", out_scales)):
                if each is not None:
                    raise ArgumentError(
                        f"{name}: expected none with numpy arrays, whose results are new"
                    )
            return self._run_host(tensors, views)
        wants, is_scaled = self._problem.lse, self._problem.out_group is not None
        given = {"out": out} | ({"lse": lse} if wants else {})
        given |= {"out_scales": out_scales} if is_scaled else {}
        missing = [name for name, each in given.items() if each is None]
        if missing:
            if not device_tensors.is_torch(q):
                raise ArgumentError(
                    f'tensor "{missing[0]}": expected a tensor to write to; only torch and numpy '
                    "have outputs made"
                )
            from .. import torch_serving

            made = torch_serving.make_outputs(q, self._problem, wants)
            out, lse, out_scales = (
                new if old is None else old
                for old, new in zip((out, lse, out_scales), made, strict=True)
            )
        for name, each, is_wanted in (("lse", lse, wants), ("out_scales", out_scales, is_scaled)):
            if each is not None and not is_wanted:
                raise ArgumentError(f'tensor "{name}": expected none, as the plan was made')
        self._launch(views, (q, out, lse, out_scales), stream, key)
        return _join_results(out, lse, out_scales)

    def _run_host(self, tensors: dict[str, Any], views: dict[str, TensorView]) -> Any:
        # The simulator has no open strides: a kernel for these pools.
        p = self._problem._replace(
            pages=views["k"].shape[0],
            k_strides=views["k"].strides[:3],
            v_strides=views["k" if self._problem.latent else "v"].strides[:3],
            row_strides=get_row_strides(views),
            q_strides=views["q"].strides[:3],
        )
        if p.q_rope_strides is not None:
            p = p._replace(q_rope_strides=views["q_rope"].strides[:3])
        if p.init is not None:
            o, log = views["init_o"], views["init_lse"]
            p = p._replace(init=(o.dtype, o.strides[:3], log.strides[:3]))
        inputs = numpy_inputs.arrange(tensors, self._settings) | self._inputs
        inputs |= numpy_inputs.spread_scales(tensors, p)
        outputs = decode_launch.get_runner(p, _HOST).run_numpy(inputs)
        rank = tensors["q"].ndim
        results = (outputs.get(name) for name in ("o", "lse", "o_scales"))
        return _join_results(
            *(each if each is None else decode_launch.shape_numpy(each, rank) for each in results)
        )

    def _choose_stream(self, q: Any, stream: int | None) -> int:
        number = decode_launch.get_stream(q, stream, self._device)
        if self._workspaces and number != self._stream and not cuda_driver.is_capturing(number):
            raise ArgumentError(
                f"DecodePlan: expected the stream of plan(), {self._stream:#x}, got {number:#x}; "
                "partial results lie in the plan, so that streams need a plan each"
            )
        return number

    def _launch(
        self,
        views: dict[str, TensorView],
        given: tuple[Any, Any, Any, Any],
        stream: int | None,
        key: object,
    ) -> None:
        q, out, lse, out_scales = given
        number = self._choose_stream(q, stream)
        views["o"] = tensor_views.turn_rows("out", tensor_views.view("out", out))
        if lse is not None:
            each = tensor_views.view("lse", lse)
            views["lse"] = each._replace(
                shape=(*each.shape, 1)[:3], strides=(*each.strides, 1)[:3]
            )
        if out_scales is not None:
            each = tensor_views.view("out_scales", out_scales)
            views["o_scales"] = tensor_views.turn_rows("out_scales", each)
        views |= self._make_batch_views()
        kernel = self._rest or decode_problem.load(self._runner.kernel)
        names = kernel.names
        prepared = self._runner.prepare({name: views[name] for name in names}, kernel)
        prepared([views[name].address for name in names], number, self._addresses)
        if key is not None:
            order = ("q", "k", "v", "sinks", "o", "lse", "k_descale", "v_descale")
            order += (*ROW_TENSORS, "q_rope", "init_o", "init_lse", "o_scales")
            places = [
                (order.index(n), 0) if n in order else (-1, views[n].address) for n in names
            ]
            if len(self._known) >= _KEPT_LAUNCHES:
                self._known.clear()
            self._known[key] = (prepared, places)
