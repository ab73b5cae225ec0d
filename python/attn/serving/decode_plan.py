"""`attn.DecodePlan`: one kernel for all batches within bounds, with memory of its own."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from .. import runtime
from ..calls import attention_outputs
from ..errors import ArgumentError
from ..kernel import Kernel
from ..launch import cuda_driver, device_tensors, host_arrays
from ..launch.device_memory import Memory
from ..launch.one_process import OfProcess
from ..options import kernel_sizes, readers
from ..record import TensorView
from ..tensors import batch_lists, padding, tensor_views
from ..tensors.argument_checks import check_devices
from ..tensors.tensor_views import expect
from . import decode_launch, decode_problem, numpy_inputs
from .decode_calls import name_state
from .decode_problem import PAIRED, ROW_TENSORS
from .plan_checks import check_planned, check_planned_amax
from .pool_rows import get_row_strides, make_apart_views, make_row_views
from .settings import Settings, trace_mods

_HOST = -1
#: Sets of tensors whose launches are kept.
_KEPT_LAUNCHES = 256
_I32 = 4
#: Tensors of a launch in the order in which they are kept, by the names of the arguments, and
#: what kernels call them and the outputs.
_OPERANDS = ("q", "k_cache", "v_cache", "k_scale", "v_scale", "sinks", *ROW_TENSORS)
_OPERANDS += ("q_rope", "init_o", "init_lse")
_OUTPUTS = ("out", "lse", "out_scales", "amax")
_NAMES = ("q", "k", "v", "k_descale", "v_descale", *_OPERANDS[5:], "o", "lse", "o_scales", "amax")


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


def _read_device(device: Any) -> int:
    if device is None:
        return 0 if host_arrays.has_device() else _HOST
    if isinstance(device, str) and device == "host":
        return _HOST
    # A string has an index, too, which is a function.
    index = device if isinstance(device, str) else getattr(device, "index", device)
    return readers.to_integer("device", 0 if index is None else index, 0, 2**31 - 1)


def _read_sizes(sizes: Mapping[str, Any], is_latent: bool) -> dict[str, int]:
    """The sizes of a plan with what stands for those that are None."""
    if is_latent and (sizes["value_dim"] is None or sizes["kv_heads"] not in (None, 1)):
        raise ArgumentError(
            "DecodePlan: expected value_dim and one key head of the latent form, got "
            f"{sizes['value_dim']} and {sizes['kv_heads']}"
        )
    found = dict(sizes)
    if sizes["kv_heads"] is None:
        found["kv_heads"] = 1 if is_latent else sizes["heads"]
    if sizes["value_dim"] is None:
        found["value_dim"] = sizes["dim"]
    return {name: readers.to_integer(name, n, 1, 2**31 - 1) for name, n in found.items()}


def _read_elements(form: Mapping[str, Any], out_scale: float | None) -> dict[str, str]:
    """Element types of q, pools and o by the names of their arguments. An o that has a factor or
    scales is e4m3 where nothing says otherwise."""
    element = readers.get_dtype("dtype", form["dtype"])
    is_narrow = out_scale is not None or form["out_group"] is not None
    usual = {"kv_dtype": element, "out_type": "f8E4M3FN" if is_narrow else element}
    given = {name: form[name] for name in usual if form[name] is not None}
    stated = {name: readers.get_dtype(name, each) for name, each in given.items()}
    return {"dtype": element, **usual, **stated}


def _read_outputs(
    form: Mapping[str, Any], elements: Mapping[str, str]
) -> attention_outputs.Asked:
    """What a plan says of its outputs."""
    stated = (form[name] for name in ("out_group", "out_scale_type", "out_scale_tiles"))
    return attention_outputs.read(None, elements["out_type"], *stated, None, None, None)


def _pad_plan(
    given: dict[str, int], settings: Settings, form: Mapping[str, Any], elements: Mapping[str, str]
) -> tuple[dict[str, int], Settings, Mapping[str, Any]]:
    """What a plan is made for where each `run` fits its operands to what kernels take."""
    types = (elements["dtype"], elements["kv_dtype"])
    dim, value_dim = given["dim"], given["value_dim"]
    is_latent = settings.value_dim is not None
    # Rotated columns come after those of the values, which are widened on their own.
    parts = (dim - value_dim, value_dim) if is_latent and dim > value_dim else (dim, value_dim)
    if is_latent:
        wide, wide_value = map(kernel_sizes.pad_latent, parts)
    else:
        wide, wide_value = (max(kernel_sizes.pad(part, kind) for kind in types) for part in parts)
    if (wide, wide_value) == parts:
        return given, settings, form
    for name in ("out_group", "row_bytes", "amax"):
        if form[name] not in (None, False):
            raise ArgumentError(f"pad: expected none beside {name}")
    if form["scales"] == "rows":
        raise ArgumentError("pad: expected none beside scales of rows")
    widths = {"dim": wide + wide_value if parts[0] != dim else wide, "value_dim": wide_value}
    settings = settings._replace(
        scale=dim**-0.5 if settings.scale is None else settings.scale,
        value_dim=wide_value if is_latent else None,
    )
    # The copies are dense.
    return given | widths, settings, {**form, "page_stride": None}


class PlannedDecode(OfProcess):
    """What a `DecodePlan` does. Its generated class has the arguments and says what they are."""

    def __init__(
        self,
        sizes: Mapping[str, Any],
        options: Mapping[str, Any],
        mods: tuple[Any, Any, Any],
        form: Mapping[str, Any],
        device: Any,
    ) -> None:
        self._device = _read_device(device)
        is_latent = readers.to_bool("latent", form["latent"])
        given = _read_sizes(sizes, is_latent)
        texts, captures = trace_mods(*mods)
        #: What the regions read; their places in memory are the launches'.
        self._captures = decode_launch.name_captures(captures)
        value_dim = given["value_dim"] if is_latent else None
        settings = Settings.read(**options, value_dim=value_dim, **texts)
        kernel_sizes.check_page_size("page_size", given["page_size"])
        elements = _read_elements(form, settings.out_scale)
        #: Columns of keys and values as the caller has them, if each run fits its operands.
        self._stated: tuple[int, int] | None = None
        if readers.to_bool("pad", form["pad"]):
            self._stated = given["dim"], given["value_dim"]
            given, settings, form = _pad_plan(given, settings, form, elements)
        self._settings = settings
        self._max_pages = given["max_pages"]
        tensors = self._make_views(given, settings, form, elements)
        problem = decode_launch.make_problem(
            tensors,
            settings,
            readers.to_bool("lse", form["lse"]),
            _read_outputs(form, elements).group,
        )
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

    def _make_views(
        self,
        given: Mapping[str, int],
        settings: Settings,
        form: Mapping[str, Any],
        elements: Mapping[str, str],
    ) -> dict[str, TensorView]:
        """Views of what `run` and `plan` will take."""
        rows = (given["batch"], given["heads"], given["queries"])
        dim, value_dim = given["dim"], given["value_dim"]
        page_stride, row_bytes, scales = (form[n] for n in ("page_stride", "row_bytes", "scales"))

        def view(dtype: str, shape: Sequence[int], strides: Sequence[int]) -> TensorView:
            return TensorView(dtype, tuple(shape), (*strides, 1), 0, self._device)

        def dense(width: int) -> tuple[int, int, int]:
            return (rows[1] * rows[2] * width, rows[2] * width, width)

        def view_pool(width: int) -> TensorView:
            # Pools of the host state their pages; a plan leaves them open.
            heads, page = given["kv_heads"], given["page_size"]
            strides = decode_problem.make_pool_strides(
                settings.layout, heads, page, width, page_stride
            )
            return view(elements["kv_dtype"], (1, heads, page, width), strides)

        tensors = {
            "q": view(elements["dtype"], (*rows, dim), dense(dim)),
            "k": view_pool(dim),
            "v": view_pool(value_dim),
            "o": view(elements["out_type"], (*rows, value_dim), dense(value_dim)),
            "page_table": view("i32", (rows[0], self._max_pages), (self._max_pages,)),
        }
        for name, each in self._captures.items():
            tensors[name] = tensor_views.view(name, each, is_captured=True)
        asked = _read_outputs(form, elements)
        if asked.out_type == PAIRED:
            tensors["o"] = view(PAIRED, (*rows, value_dim // 2), dense(value_dim // 2))
        if asked.group is not None:
            made = attention_outputs.make_views(tensors["q"], value_dim, False, asked)
            tensors["o_scales"] = made["o_scales"]
        if readers.to_bool("amax", form["amax"]):
            tensors["amax"] = view("f32", (1,), ())
        is_latent = settings.value_dim is not None
        if is_latent:
            del tensors["v"]
        if readers.to_bool("sinks", form["sinks"]):
            tensors["sinks"] = view("f32", rows[1:2], ())
        if scales is not None:
            readers.to_text("scales", scales)
        for name in ("row_bytes", "page_stride"):
            if form[name] is not None:
                readers.to_integer(name, form[name], 1, 2**40)
        is_apart = readers.to_bool("rope_apart", form["rope_apart"])
        if row_bytes is not None and not (is_latent and (scales == "rows" or is_apart)):
            raise ArgumentError(
                "row_bytes: expected none but for a latent plan with scales of rows or rope_apart"
            )
        if scales == "rows":
            tensors |= make_row_views(tensors, settings.layout, given, row_bytes)
        elif scales is not None:
            tensors |= self._make_scales(scales, given["batch"], given["kv_heads"])
            decode_launch.turn_scales(tensors)
        if is_apart:
            tensors |= make_apart_views(tensors, given, page_stride, row_bytes)
        if form["init"] is not None:
            state = readers.get_dtype("init", form["init"])
            tensors["init_o"] = view(state, (*rows, value_dim), dense(value_dim))
            tensors["init_lse"] = view("f32", rows, (rows[1] * rows[2], rows[2]))
        return tensors

    def _make_scales(self, scales: str, batch: int, kv_heads: int) -> dict[str, TensorView]:
        """Views of the scales that `run` will take."""
        shapes = {"tensor": (1,), "head": (kv_heads,), "batch": (batch, kv_heads)}
        if scales not in shapes:
            known = ", ".join((*shapes, "rows"))
            raise ArgumentError(f"scales: expected one of {known}, got {readers.show(scales)}")
        strides = (kv_heads, 1) if scales == "batch" else (1,)
        each = TensorView("f32", shapes[scales], strides, 0, self._device)
        return {"k_scale": each, "v_scale": each}

    def _allocate(self) -> None:
        batch = self._problem.batch
        sizes = {
            "room for lengths": batch * _I32,
            "room for a table": batch * self._max_pages * _I32,
        }
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
        """Into how many runs the keys of a sequence are cut; where runs are dealt by lengths, into
        how many at most."""
        if equal := decode_problem.count_equal_runs(self.kernel.plan):
            return equal
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
        amax: Any = None,
        stream: int | None = None,
    ) -> Any:
        """Attention of q to the keys of the batch that `plan` took last. q has all
        `batch` sequences; rows of those that `plan` was not given become zeros. A
        plan of the latent form takes no `v_cache`.
        Returns o, or a tuple with the LSE of a plan with `lse` and the scales of one with
        `out_group` behind it. Writes to `out`, `lse` and `out_scales` where they are given;
        torch has new ones made, numpy always. A plan with `amax` takes a tensor of one f32, which
        the largest size of the results joins."""
        tensors = {"q": q, "k_cache": k_cache, "v_cache": v_cache, "sinks": sinks}
        tensors |= {"k_scale": k_scale, "v_scale": v_scale, "k_scales": k_scales}
        tensors |= {"v_scales": v_scales, "k_rope": k_rope, "q_rope": q_rope, **name_state(init)}
        outputs = (out, lse, out_scales, amax)
        if self._stated is not None:
            return self._run_padded(tensors, outputs, stream)
        return self._run(tensors, outputs, stream)

    def _run_padded(
        self, tensors: dict[str, Any], outputs: tuple[Any, Any, Any, Any], stream: int | None
    ) -> Any:
        """A run with operands that kernels take, copied where they are not so."""
        out, *others = outputs
        _, dv = self._stated or (0, 0)
        if self._problem.latent:
            pool = {"kv_cache": tensors.pop("k_cache")}
            fitted, _, wide = padding.pad_latent(tensors | pool, dv)
            fitted = {"q": fitted.pop("q"), "k_cache": fitted.pop("kv_cache"), **fitted}
        else:
            fitted, _, _, wide = padding.pad_operands(tensors, "k_cache", "v_cache", None)
        target = out
        if out is not None and wide != dv:
            target = out.new_empty((*out.shape[:-1], wide))
        result = self._run(fitted, (target, *others), stream)
        if wide == dv:
            return result
        o, *more = result if isinstance(result, tuple) else (result,)
        o = padding.cut(o, out, None, dv)
        return (o, *more) if more else o

    def _run(
        self, tensors: dict[str, Any], outputs: tuple[Any, Any, Any, Any], stream: int | None
    ) -> Any:
        if not self._planned:
            raise ArgumentError("DecodePlan: expected plan(kv_lengths, page_table) before run")
        q = tensors["q"]
        out, lse, out_scales, amax = outputs
        key = None
        if out is not None and device_tensors.is_torch(q):
            operands = tuple([tensors[name] for name in _OPERANDS]) + outputs
            key = _make_key(operands)
            known = self._known.get(key)
            if known is not None:
                prepared, places = known
                addresses = [at or operands[index].data_ptr() for index, at in places]
                prepared(addresses, self._choose_stream(q, stream), self._addresses)
                return decode_launch.join_results(out, lse, out_scales)
        tensor_views.view("q", q)
        tensor_views.view("k_cache", tensors["k_cache"])
        if self._problem.latent != (tensors["v_cache"] is None):
            wanted = "none" if self._problem.latent else "a pool of values"
            raise ArgumentError(f'tensor "v_cache": expected {wanted}, as the plan was made')
        tensors = tensors | self._captures
        views = decode_launch.read_views(tensors, self._settings)
        check_planned(views, self._problem, self._device)
        check_planned_amax(amax, self._problem)
        if self._device == _HOST:
            for name, each in zip(_OUTPUTS, outputs, strict=True):
                if each is not None and name != "amax":
                    raise ArgumentError(
                        f"{name}: expected none with numpy arrays, whose results are new"
                    )
            return self._run_host(tensors, views, amax)
        made = self._make_outputs(q, outputs)
        self._launch(views, (q, *made, amax), stream, key)
        return decode_launch.join_results(*made)

    def _make_outputs(self, q: Any, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The results of a launch, those of the caller or new ones of torch."""
        wants = (True, self._problem.lse, self._problem.out_group is not None)
        outputs = outputs[: len(wants)]
        pairs = list(zip(_OUTPUTS[: len(wants)], outputs, wants, strict=True))
        missing = [name for name, each, is_wanted in pairs if is_wanted and each is None]
        if missing:
            if not device_tensors.is_torch(q):
                raise ArgumentError(
                    f'tensor "{missing[0]}": expected a tensor to write to; only torch and numpy '
                    "have outputs made"
                )
            from .. import torch_serving

            made = torch_serving.make_outputs(q, self._problem, wants[1])
            outputs = tuple(
                new if old is None else old for old, new in zip(outputs, made, strict=True)
            )
        for name, each, is_wanted in pairs:
            if each is not None and not is_wanted:
                raise ArgumentError(f'tensor "{name}": expected none, as the plan was made')
        return outputs

    def _run_host(self, tensors: dict[str, Any], views: dict[str, TensorView], amax: Any) -> Any:
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
        if amax is not None:
            inputs["amax"] = amax
        outputs = decode_launch.get_runner(p, _HOST).run_numpy(inputs)
        if amax is not None:
            amax[...] = outputs["amax"]
        if p.out_type == PAIRED:
            outputs["o"] = outputs["o"].view("uint8")
        rank = tensors["q"].ndim
        results = (outputs.get(name) for name in ("o", "lse", "o_scales"))
        return decode_launch.join_results(
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
        given: tuple[Any, ...],
        stream: int | None,
        key: object,
    ) -> None:
        q, out, lse, out_scales, amax = given
        number = self._choose_stream(q, stream)
        views["o"] = tensor_views.turn_rows("out", tensor_views.view("out", out))
        if self._problem.out_type == PAIRED:
            expect("out", "elements of", PAIRED, views["o"].dtype)
        if lse is not None:
            each = tensor_views.view("lse", lse)
            views["lse"] = each._replace(shape=(*each.shape, 1)[:3], strides=(*each.strides, 1)[:3])
        if out_scales is not None:
            each = tensor_views.view("out_scales", out_scales)
            is_matrix = self._problem.scale_tiles is not None
            views["o_scales"] = each if is_matrix else tensor_views.turn_rows("out_scales", each)
        if amax is not None:
            views["amax"] = tensor_views.view("amax", amax)
        check_devices(views, self._device, "the plan")
        views |= self._make_batch_views()
        kernel = self._rest or decode_problem.load(self._runner.kernel)
        names = kernel.names
        prepared = self._runner.prepare({name: views[name] for name in names}, kernel)
        prepared([views[name].address for name in names], number, self._addresses)
        if key is not None:
            places = [
                (_NAMES.index(n), 0) if n in _NAMES else (-1, views[n].address) for n in names
            ]
            if len(self._known) >= _KEPT_LAUNCHES:
                self._known.clear()
            self._known[key] = (prepared, places)
