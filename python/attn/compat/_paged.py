"""Wrappers of pools of keys and values, of which decode's is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError
from ..launch import device_tensors
from ..options import argument_names, kernel_sizes, readers
from ..serving import serving_signatures
from ..serving.decode_problem import make_pool_strides
from ..serving.pool_rows import NARROW_TYPES
from ..serving.query_rows import WIDE_TYPES
from ..serving.serving_signatures import DecodePlan
from ..tensors import argument_checks, tensor_views
from . import _checks, _lists
from ._wrapper import (
    Wrapper,
    call_rows,
    get_element,
    make_outputs,
    multiply,
    read_factor,
    read_lse,
)

#: What neither wrapper takes.
UNCOVERED_PLAN = {"pos_encoding_mode": "NONE", "rope_scale": None, "rope_theta": None}
UNCOVERED_PLAN |= {"block_tables": None, "seq_lens": None, "fixed_split_size": None}
#: What pools are called here.
POOLS = {"k_cache": "paged_kv_cache", "v_cache": "paged_kv_cache"}
UNCOVERED_RUN = {"skip_softmax_threshold_scale_factor": None, "kv_cache_sf": None}


def read_layout(kv_layout: Any) -> str:
    with argument_names.rename({"layout": "kv_layout"}):
        return readers.to_pool_order(kv_layout)


def _split_cache(cache: Any) -> tuple[Any, Any]:
    """Both pools of a tuple, or of one tensor with k and v of a page side by side."""
    if isinstance(cache, (tuple, list)):
        if len(cache) != 2:
            raise ArgumentError(f"paged_kv_cache: expected a pair of tensors, got {len(cache)}")
        return cache[0], cache[1]
    shape = cache.shape if tensor_views.is_array(cache) else None
    if shape is None or len(shape) != 5 or shape[1] != 2:
        raise ArgumentError(
            "paged_kv_cache: expected a pair of tensors or one of rank 5 with a second dimension "
            f"of 2, got {type(cache).__name__ if shape is None else list(shape)}"
        )
    return cache[:, 0], cache[:, 1]


class PagedWrapper(Wrapper):
    """What wrappers of pools of keys and values have in common."""

    #: Arguments of the calls that launch, by the names that they have here.
    _names: Mapping[str, str]
    #: The greatest id of a page, if `plan` looked.
    _greatest: int | None

    def reset_workspace_buffer(
        self, float_workspace_buffer: Any, int_workspace_buffer: Any
    ) -> None:
        """Takes other workspaces, which mean nothing here."""

    def _read_types(self, given: dict[str, Any]) -> tuple[str, str]:
        """Element types of queries and pools."""
        if given["q_data_type"] is None:
            raise ArgumentError("q_data_type: expected an element type, got None")
        q_type = _lists.read_type("q_data_type", given["q_data_type"])
        kv_type = given["kv_data_type"]
        kv_type = q_type if kv_type is None else _lists.read_type("kv_data_type", kv_type)
        if q_type != kv_type and kv_type not in NARROW_TYPES:
            raise ArgumentError(
                f"kv_data_type: expected {q_type} as q_data_type or a type of 8 bits, got {kv_type}"
            )
        if q_type not in WIDE_TYPES:
            raise ArgumentError(f"q_data_type: expected {' or '.join(WIDE_TYPES)}, got {q_type}")
        o_type = given["o_data_type"]
        if o_type is not None:
            _lists.expect("o_data_type", q_type, _lists.read_type("o_data_type", o_type))
        return q_type, kv_type

    def _read_settings(
        self, types: tuple[str, str], given: dict[str, Any], dims: dict[str, Any]
    ) -> dict[str, Any]:
        """Options of a plan that both wrappers have, as attributes, checked; `dims` has the head
        dimensions by the names of their arguments."""
        options = {"layout": self._layout, **_checks.read_options(given)}
        names = ("num_qo_heads", "num_kv_heads", "page_size")
        sizes = _checks.read_sizes(given | dims, (*names, *dims))
        heads, kv_heads, page_size = (sizes[name] for name in names)
        argument_checks.check_heads("num_qo_heads", heads, kv_heads)
        kernel_sizes.check_page_size("page_size", page_size)
        _checks.check_dims({name: sizes[name] for name in dims}, types)
        return {
            "_types": types,
            "_window_left": given["window_left"],
            "_options": options,
            "_heads": heads,
            "_kv_heads": kv_heads,
            "_page_size": page_size,
        }

    def _read_pools(self, q: Any, cache: Any, dims: tuple[int, int]) -> tuple[Any, Any]:
        """Both pools, compared with what was planned."""
        pools = _split_cache(cache)
        _checks.check_tensor("q", q)
        for each in pools:
            _checks.check_tensor("paged_kv_cache", each, q)
        expected = [("q", q, self._types[0])]
        expected += [("paged_kv_cache", each, self._types[1]) for each in pools]
        for name, each, dtype in expected:
            _lists.expect(f"{name}: elements of", dtype, get_element(name, each))
        _lists.expect("q: (heads, dim)", [self._heads, dims[0]], list(q.shape[1:]))
        for each, dim in zip(pools, dims, strict=True):
            middle = [self._page_size, self._kv_heads]
            if self._layout == "hnd":
                middle.reverse()
            _lists.expect("paged_kv_cache: a page of", [*middle, dim], list(each.shape[1:]))
        _checks.check_ids(self._names["page_table"], self._greatest, pools[0].shape[0])
        return pools

    def _check_window(self, window_left: int | None) -> None:
        if window_left is not None:
            _lists.expect("window_left: as planned", self._window_left, window_left)

    def _scale_options(self, q_scale: Any, k_scale: Any, dim: int) -> dict[str, Any]:
        """Options with the factors of 16-bit queries and keys in the scale; a kernel is
        compiled for each."""
        factor = 1.0
        for name, each in (("q_scale", q_scale), ("k_scale", k_scale)):
            plain = readers.to_python(each)
            if tensor_views.is_array(plain):
                raise ArgumentError(
                    f"{name}: expected a number, got a tensor of {list(plain.shape)}"
                )
            factor *= 1.0 if plain is None else readers.to_float(name, plain)
        if factor == 1.0:
            return self._options
        scale = self._options["scale"]
        return self._options | {"scale": (dim**-0.5 if scale is None else scale) * factor}

    def _read_factors(
        self, q: Any, factors: tuple[Any, Any, Any], dim: int
    ) -> tuple[dict[str, Any], dict[str, Any], Any]:
        """What factors of queries, keys and values become: options, scales of pools of 8 bits, and
        what results are multiplied by."""
        q_scale, k_scale, v_scale = factors
        if self._types[1] in NARROW_TYPES:
            scales = self._make_scales(q, {"k_scale": k_scale, "v_scale": v_scale})
            return self._scale_options(q_scale, None, dim), scales, 1.0
        return self._scale_options(q_scale, k_scale, dim), {}, read_factor("v_scale", v_scale)

    def _make_scales(self, q: Any, scales: dict[str, Any]) -> dict[str, Any]:
        """Factors of pools of 8 bits as tensors, which are kept."""
        if scales["k_scale"] is None and scales["v_scale"] is None:
            return {}
        return {name: self._keep_scale(name, q, each) for name, each in scales.items()}


class BatchDecodeWithPagedKVCacheWrapper(PagedWrapper):
    """One query, or `q_len_per_req`, of each sequence of a batch."""

    _names = POOLS | {"page_table": "indices", "kv_lengths": "last_page_len"}

    def __init__(
        self,
        float_workspace_buffer: Any,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        use_tensor_cores: bool = False,
        paged_kv_indptr_buffer: Any = None,
        paged_kv_indices_buffer: Any = None,
        paged_kv_last_page_len_buffer: Any = None,
        backend: str = "auto",
        jit_args: Any = None,
        *,
        max_pages: int | None = None,
        partials: str = "auto",
    ) -> None:
        _lists.refuse({"jit_args": jit_args}, {"jit_args": None})
        self._layout = read_layout(kv_layout)
        buffers = {
            "paged_kv_indptr_buffer": paged_kv_indptr_buffer,
            "paged_kv_indices_buffer": paged_kv_indices_buffer,
            "paged_kv_last_page_len_buffer": paged_kv_last_page_len_buffer,
        }
        super().__init__(use_cuda_graph, buffers, max_pages)
        self._plans: dict[object, DecodePlan] = {}
        self._partials = readers.to_partials(partials)

    def plan(
        self,
        indptr: Any,
        indices: Any,
        last_page_len: Any,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim: int,
        page_size: int,
        *,
        pos_encoding_mode: str = "NONE",
        window_left: int = -1,
        window_right: int = 0,
        logits_soft_cap: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
        o_data_type: Any = None,
        data_type: Any = None,
        sm_scale: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        non_blocking: bool = True,
        block_tables: Any = None,
        seq_lens: Any = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        q_len_per_req: int = 1,
        is_causal: bool | None = None,
    ) -> None:
        """Takes a batch's pages: `indices` of sequence i from `indptr[i]` on, of which the
        last one has `last_page_len[i]` keys."""
        given = dict(locals())
        _lists.refuse(given, UNCOVERED_PLAN | {"window_right": 0})
        if data_type is not None:
            for name in ("q_data_type", "kv_data_type"):
                given[name] = data_type if given[name] is None else given[name]
        given["causal"] = True if is_causal is None else readers.to_bool("is_causal", is_causal)
        types = self._read_types(given)
        queries = _checks.read_sizes(given, ("q_len_per_req",))["q_len_per_req"]
        if self._is_graph and self._pages.table is not None:
            _lists.expect(
                "q_len_per_req: queries of a sequence of the graph", self._queries, queries
            )
        settings = self._read_settings(types, given, {"head_dim": head_dim})
        is_whole = readers.to_bool("disable_split_kv", disable_split_kv)
        lists = (("indptr", indptr), ("indices", indices), ("last_page_len", last_page_len))
        pages, greatest = self._read_pages(*lists, settings["_page_size"], self._most_pages)
        self._pages.plan(*pages)
        vars(self).update(settings, _greatest=greatest, _queries=queries)
        self._options["kv_splits"] = 1 if is_whole else None
        self._options["partials"] = self._partials
        self._dim = int(head_dim)
        for each in self._plans.values():
            each.plan(self._pages.lengths, self._pages.table)

    begin_forward = plan

    def run(
        self,
        q: Any,
        paged_kv_cache: Any,
        *args: Any,
        q_scale: float | None = None,
        k_scale: float | None = None,
        v_scale: float | None = None,
        out: Any = None,
        lse: Any = None,
        return_lse: bool = False,
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: Any = None,
        q_len_per_req: int | None = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        kv_cache_sf: Any = None,
    ) -> Any:
        """o like q, (sequences x queries, heads, dim), or (o, lse) with `return_lse`."""
        _lists.refuse(locals(), UNCOVERED_RUN | {"args": ()})
        self._expect_planned()
        return_lse = read_lse(lse, return_lse)
        k, v = self._read_pools(q, paged_kv_cache, (self._dim, self._dim))
        self._check_window(window_left)
        if q_len_per_req is not None:
            _lists.expect("q_len_per_req: as planned", self._queries, q_len_per_req)
        batch = self._pages.lengths.shape[0]
        _lists.expect("q: queries", batch * self._queries, q.shape[0])
        options, scales, factor = self._read_factors(q, (q_scale, k_scale, v_scale), self._dim)
        is_planned = self._is_graph and self._queries == 1 and device_tensors.is_torch(q)
        run = self._run_plan if is_planned else self._run_rows
        with argument_names.rename(self._names):
            o, log = run(q, (k, v), sinks, scales, (out, lse, return_lse), options)
        multiply(o, factor)
        return (o, _lists.finish_lse(log, "log2")) if return_lse else o

    def run_return_lse(self, *arguments: Any, **options: Any) -> Any:
        return self.run(*arguments, **options, return_lse=True)

    def _run_rows(
        self, q: Any, pools: Any, sinks: Any, scales: Any, outputs: Any, options: Any
    ) -> tuple[Any, Any]:
        """attn.decode, whose kernel is that of the batch."""
        pages = (self._pages.table, self._pages.lengths)
        options = options | scales | {"sinks": sinks}
        size = (self._pages.lengths.shape[0], self._queries)

        def function(rows: Any, **outputs: Any) -> Any:
            return serving_signatures.decode(rows, *pools, *pages, **options, **outputs)

        return call_rows(function, q, self._dim, size, outputs)

    def _run_plan(
        self, q: Any, pools: Any, sinks: Any, scales: Any, outputs: Any, options: Any
    ) -> tuple[Any, Any]:
        """A plan of fixed memory, for graphs."""
        out, lse, has_lse = outputs
        out, lse = make_outputs(q, q.shape[-1], out, lse, has_lse)
        k, v = pools
        dense = make_pool_strides(
            self._layout, self._kv_heads, self._page_size, self._dim, k.stride(0)
        )
        order = (0, 2, 1) if self._layout == "nhd" else (0, 1, 2)
        for each in pools:
            got = [each.stride(axis) for axis in order]
            _lists.expect("paged_kv_cache: strides of (page, head, key)", [*dense], got)
        shape = (self._heads, self._kv_heads, self._dim, self._page_size, self._types)
        key = (shape, k.stride(0), has_lse, sinks is not None, bool(scales), *options.values())
        plan = self._plans.get(key)
        if plan is None:
            is_narrow = self._types[0] != self._types[1]
            plan = self._plans[key] = DecodePlan(
                batch=self._pages.lengths.shape[0],
                heads=self._heads,
                kv_heads=self._kv_heads,
                dim=self._dim,
                page_size=self._page_size,
                max_pages=self._pages.table.shape[1],
                page_stride=k.stride(0),
                dtype=self._types[0],
                kv_dtype=self._types[1] if is_narrow else None,
                scales="tensor" if scales else None,
                sinks=sinks is not None,
                lse=has_lse,
                device=q.device,
                **options,
            )
            plan.plan(self._pages.lengths, self._pages.table)
        plan.run(q, k, v, sinks=sinks, out=out, lse=lse if has_lse else None, **scales)
        return out, lse
