"""The wrapper of latent attention (MLA) in its absorbed form."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..launch import device_tensors
from ..options import argument_names, kernel_sizes, readers
from ..serving import serving_signatures
from ..serving.pool_rows import NARROW_TYPES
from ..serving.query_rows import WIDE_TYPES
from ..serving.serving_signatures import DecodePlan
from ..tensors import batch_lists
from . import _checks, _lists
from ._wrapper import Wrapper, call_rows, get_element, make_outputs, read_lse

_UNCOVERED_PLAN: dict[str, Any] = {
    "metadata": None,
    "cum_seq_lens_q": None,
    "block_tables": None,
    "seq_lens": None,
    "max_q_len": None,
    "use_profiler": False,
    "skip_softmax": False,
}
_REQUIRED = ("num_heads", "head_dim_ckv", "head_dim_kpe", "page_size", "causal", "sm_scale")
_REQUIRED += ("q_data_type", "kv_data_type")
#: What a plan says of calls of `run`.
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "query_layout": (None, "packed", "split"),
    "kv_cache_layout": (None, "packed", "split"),
    "lse_mode": ("none", "base2", "basee"),
    "output_scale": ("none", "per-tensor"),
    "scale_mode": ("default", "kv-per-tensor"),
}
#: Arguments of the calls that launch, by the names that they have here.
_NAMES = {
    "q": "q_nope",
    "q_rope": "q_pe",
    "k_cache": "ckv_cache",
    "kv_cache": "ckv_cache",
    "k_rope": "kpe_cache",
    "page_table": "kv_indices",
    "kv_lengths": "kv_len_arr",
    "k_scale": "ckv_scale",
}
_UNCOVERED_RUN = dict.fromkeys(
    (
        "profiler_buffer",
        "kv_len",
        "page_table",
        "ckv_scale_arr",
        "skip_softmax_threshold_scale_factor",
        "bmm1_scale",
        "bmm2_scale",
    )
)


class BatchMLAPagedAttentionWrapper(Wrapper):
    """Decode of latent rows: the same number of queries of each sequence. Nothing is copied,
    whether the columns of `kpe_cache` and `q_pe` lie behind those of `ckv_cache` and `q_nope`,
    as in two views of one tensor, or elsewhere. Pools of 8 bits are such views, and queries
    beside them are copied unless both of their parts are, too, and both scales the same."""

    def __init__(
        self,
        float_workspace_buffer: Any,
        use_cuda_graph: bool = False,
        qo_indptr: Any = None,
        kv_indptr: Any = None,
        kv_indices: Any = None,
        kv_len_arr: Any = None,
        backend: str = "auto",
        *,
        max_pages: int | None = None,
        partials: str = "auto",
    ) -> None:
        buffers = {"kv_indptr": kv_indptr, "kv_indices": kv_indices, "kv_len_arr": kv_len_arr}
        super().__init__(use_cuda_graph, buffers | {"qo_indptr": qo_indptr}, max_pages)
        self._plans: dict[object, DecodePlan] = {}
        self._partials = readers.to_partials(partials)
        self._queries: int | None = None

    def plan(
        self,
        qo_indptr: Any = None,
        kv_indptr: Any = None,
        kv_indices: Any = None,
        kv_len_arr: Any = None,
        num_heads: int | None = None,
        head_dim_ckv: int | None = None,
        head_dim_kpe: int | None = None,
        page_size: int | None = None,
        causal: bool | None = None,
        sm_scale: float | None = None,
        q_data_type: Any = None,
        kv_data_type: Any = None,
        use_profiler: bool = False,
        *,
        metadata: Any = None,
        cum_seq_lens_q: Any = None,
        block_tables: Any = None,
        seq_lens: Any = None,
        max_q_len: int | None = None,
        query_layout: str | None = None,
        kv_cache_layout: str | None = None,
        lse_mode: str = "none",
        output_dtype: Any = None,
        output_scale: str = "none",
        scale_mode: str = "default",
        skip_softmax: bool = False,
        enable_pdl: bool | None = None,
        use_sinks: bool = False,
    ) -> None:
        """Takes a batch's pages: `kv_indices` of sequence i from `kv_indptr[i]` on, with
        `kv_len_arr[i]` keys in them. `sm_scale` is the model's. `run` has to be called as
        `lse_mode` and `use_sinks` say, if they are given; "none" leaves the LSE to it. With an
        `output_scale` of "per-tensor" and an `output_dtype` of 8 bits each `run` takes `o_scale`,
        what a unit of `out` stands for. With a `kv_data_type` of 8 bits each `run` takes
        `ckv_scale` and `kpe_scale`, what units of both parts of a row stand for."""
        given = dict(locals())
        _lists.refuse(given, _UNCOVERED_PLAN)
        for name, choices in _CHOICES.items():
            if given[name] is not None:
                readers.to_text(name, given[name])
            if given[name] not in choices:
                names = ", ".join(str(each) for each in choices)
                raise ArgumentError(f"{name}: expected one of {names}, got {readers.show(given[name])}")
        for name in _REQUIRED:
            if given[name] is None:
                raise ArgumentError(f"{name}: expected a value, got None")
        types = [_lists.read_type(n, given[n]) for n in ("q_data_type", "kv_data_type")]
        if types[0] not in WIDE_TYPES:
            raise ArgumentError(f"q_data_type: expected {' or '.join(WIDE_TYPES)}, got {types[0]}")
        is_narrow = types[1] in NARROW_TYPES
        if types[0] != types[1] and not is_narrow:
            raise ArgumentError(
                f"kv_data_type: expected {types[0]} as q_data_type or a type of 8 bits, got "
                f"{types[1]}"
            )
        if scale_mode != "default" and not is_narrow:
            raise ArgumentError(
                f"scale_mode: expected default with a kv_data_type of {types[1]}, got {scale_mode}"
            )
        out_type = self._read_output(types[0], output_dtype, output_scale)
        settings = self._read_settings(given, (types[0], types[1])) | {"_out_type": out_type}
        _lists.check_list("qo_indptr", qo_indptr)
        _lists.check_list("kv_indptr", kv_indptr)
        _lists.expect("qo_indptr: entries as kv_indptr", kv_indptr.shape[0], qo_indptr.shape[0])
        settings["_queries"] = self._read_queries(qo_indptr)
        lists = (("kv_indptr", kv_indptr), ("kv_indices", kv_indices), ("kv_len_arr", kv_len_arr))
        pages, settings["_greatest"] = self._read_pages(
            *lists, settings["_page_size"], self._most_pages, are_lengths=True
        )
        self._pages.plan(*pages)
        vars(self).update(settings)
        for each in self._plans.values():
            each.plan(self._pages.lengths, self._pages.table)

    def _read_settings(self, given: dict[str, Any], types: tuple[str, str]) -> dict[str, Any]:
        """What a plan says beside the lists, as attributes, checked."""
        dims = ("head_dim_ckv", "head_dim_kpe")
        sizes = _checks.read_sizes(given, ("num_heads", "page_size", *dims))
        kernel_sizes.check_page_size("page_size", sizes["page_size"])
        _checks.check_dims({name: sizes[name] for name in dims}, types)
        return {
            "_dtype": types[0],
            "_pool_type": types[1],
            "_dims": tuple(sizes[name] for name in dims),
            "_heads": sizes["num_heads"],
            "_page_size": sizes["page_size"],
            "_options": {**_checks.read_options(given), "partials": self._partials},
            "_is_packed": given["query_layout"] == "packed",
            "_lse_mode": given["lse_mode"],
            "_has_sinks": readers.to_bool("use_sinks", given["use_sinks"]),
        }

    def _read_output(self, q_type: str, given: Any, scale: str) -> str | None:
        """The type of outputs of 8 bits; None where they are like the queries."""
        out_type = q_type if given is None else _lists.read_type("output_dtype", given)
        if scale == "none":
            _lists.expect("output_dtype", q_type, out_type)
            return None
        if out_type not in NARROW_TYPES:
            raise ArgumentError(
                f"output_dtype: expected a type of 8 bits with output_scale, got {out_type}"
            )
        return out_type

    def _read_factor(self, o_scale: float | None, out: Any) -> dict[str, Any]:
        """What outputs of 8 bits are multiplied by, as planned."""
        if (o_scale is None) != (self._out_type is None):
            wanted = "none" if self._out_type is None else "a number"
            raise ArgumentError(
                f"o_scale: expected {wanted} as planned by output_scale, got {o_scale}"
            )
        if o_scale is None:
            return {}
        if out is None:
            raise ArgumentError("out: expected a tensor of 8 bits with o_scale, got None")
        unit = readers.to_float("o_scale", o_scale)
        if not 0 < unit < float("inf"):
            raise ArgumentError(f"o_scale: expected a finite number above 0, got {o_scale}")
        return {"out_scale": 1 / unit}

    def _read_queries(self, indptr: Any) -> int:
        """The number of queries of each sequence, which a graph keeps."""
        looks = _checks.is_near(indptr) or batch_lists.looks_at(indptr)
        if self._is_graph and self._queries is not None and not looks:
            return self._queries
        host = _checks.check_indptr("qo_indptr", indptr, is_packed=True)
        counts = host[1:] - host[:-1]
        queries = int(counts[0]) if len(counts) else 1
        if (counts != queries).any() or queries < 1:
            raise ArgumentError(
                "qo_indptr: expected the same number of queries of each sequence, got "
                f"{counts.min()} to {counts.max()}"
            )
        if self._is_graph and self._queries is not None:
            _lists.expect("qo_indptr: queries of a sequence of the graph", self._queries, queries)
        return queries

    def _check_call(self, has_lse: bool, is_natural: bool, sinks: Any) -> None:
        """How the plan said that `run` would be called."""
        if is_natural and not has_lse:
            raise ArgumentError("return_lse_base_on_e: expected False without return_lse, got True")
        if self._lse_mode != "none":
            got = ("basee" if is_natural else "base2") if has_lse else "none"
            _lists.expect("return_lse: lse_mode as planned", self._lse_mode, got)
        if self._has_sinks and sinks is None:
            raise ArgumentError("sinks: expected a tensor as planned with use_sinks, got None")

    def run(
        self,
        q_nope: Any = None,
        q_pe: Any = None,
        ckv_cache: Any = None,
        kpe_cache: Any = None,
        out: Any = None,
        lse: Any = None,
        return_lse: bool = False,
        profiler_buffer: Any = None,
        kv_len: Any = None,
        page_table: Any = None,
        return_lse_base_on_e: bool = False,
        o_scale: float | None = None,
        *,
        query: Any = None,
        kv_cache: Any = None,
        ckv_scale: float | None = None,
        ckv_scale_arr: Any = None,
        kpe_scale: float | None = None,
        sinks: Any = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        bmm1_scale: Any = None,
        bmm2_scale: Any = None,
    ) -> Any:
        """o, (queries, heads, head_dim_ckv), or (o, lse) with `return_lse`."""
        _lists.refuse(locals(), _UNCOVERED_RUN)
        self._expect_planned()
        return_lse = read_lse(lse, return_lse)
        return_lse_base_on_e = readers.to_bool("return_lse_base_on_e", return_lse_base_on_e)
        self._check_call(return_lse, return_lse_base_on_e, sinks)
        ratio = self._read_scales(ckv_scale, kpe_scale)
        q = self._join("q_nope q_pe", (q_nope, q_pe) if query is None else query)
        pool = self._join(
            "ckv_cache kpe_cache", (ckv_cache, kpe_cache) if kv_cache is None else kv_cache
        )
        q, pool = self._place(q, pool, ratio)
        first, rows = (
            q[0] if isinstance(q, tuple) else q,
            pool[0] if isinstance(pool, tuple) else pool,
        )
        for name, each, dtype in (
            ("q_nope", first, self._dtype),
            ("ckv_cache", rows, self._pool_type),
        ):
            _checks.check_tensor(name, each, first)
            _lists.expect(f"{name}: elements of", dtype, get_element(name, each))
        columns = self._dims[0] if isinstance(q, tuple) else sum(self._dims)
        factor = self._read_factor(o_scale, out)
        if out is not None:
            _lists.expect(
                "out: elements of", self._out_type or self._dtype, get_element("out", out)
            )
        batch, queries = self._pages.lengths.shape[0], self._queries
        rows_of_q = [batch * queries, self._heads, columns]
        _lists.expect("q_nope: (queries, heads, dim)", rows_of_q, list(first.shape))
        _lists.expect("ckv_cache: a page of", [self._page_size, columns], list(rows.shape[1:]))
        _checks.check_ids("kv_indices", self._greatest, rows.shape[0])
        with argument_names.rename(_NAMES):
            if self._is_graph and queries == 1 and device_tensors.is_torch(first):
                outputs = make_outputs(first, self._dims[0], out, lse, return_lse)
                o, log = self._run_plan(q, pool, sinks, ckv_scale, factor, *outputs)
            else:
                o, log = self._run_rows(q, pool, sinks, ckv_scale, factor, (out, lse, return_lse))
        return (
            (o, _lists.finish_lse(log, "ln" if return_lse_base_on_e else "log2"))
            if return_lse
            else o
        )

    def run_return_lse(self, *arguments: Any, **options: Any) -> Any:
        return self.run(*arguments, **options, return_lse=True)

    def _join(self, names: str, parts: Any) -> Any:
        """One tensor, of two that lie side by side as well; a pair of others."""
        if not isinstance(parts, (tuple, list)):
            return parts
        first, second = names.split()
        _lists.check_tensors((first, second), parts)
        joined = _lists.join((first, second), *parts)
        return tuple(parts) if joined is None else joined

    def _place(self, q: Any, pool: Any, ratio: float | None) -> tuple[Any, Any]:
        """Queries and pool, both in one tensor or both in two. With a `ratio`, that of
        _read_scales, in one."""
        if self._is_packed and isinstance(q, tuple):
            raise ArgumentError(
                "q_pe: expected its columns behind those of q_nope in memory, as planned by a "
                "query_layout of packed, got them elsewhere"
            )
        if ratio is None:
            is_apart = isinstance(q, tuple) or isinstance(pool, tuple)
            return (self._split(q), self._split(pool)) if is_apart else (q, pool)
        if isinstance(pool, tuple):
            raise ArgumentError(
                "kpe_cache: expected its columns behind those of ckv_cache in memory with a "
                "kv_data_type of 8 bits, got them elsewhere"
            )
        if isinstance(q, tuple) or ratio != 1:
            q = _lists.concatenate(*self._split(q), ratio)
        return q, pool

    def _split(self, tensor: Any) -> Any:
        """Views of the latent and the rotated columns."""
        if isinstance(tensor, tuple):
            return tensor
        return tensor[..., : self._dims[0]], tensor[..., self._dims[0] :]

    def _read_scales(self, latent: float | None, rotated: float | None) -> float | None:
        """What a unit of the rotated columns of 8 bits stands for by one of the latent ones: the
        kernel has one number for both, so that the rest is the queries'. None without 8 bits."""
        given = {"ckv_scale": latent, "kpe_scale": rotated}
        if self._pool_type not in NARROW_TYPES:
            for name, each in given.items():
                if each is not None:
                    raise ArgumentError(
                        f"{name}: expected None with a kv_data_type of {self._pool_type}, got "
                        f"{each}"
                    )
            return None
        for name, each in given.items():
            if each is None:
                raise ArgumentError(
                    f"{name}: expected a number with a kv_data_type of {self._pool_type}, got None"
                )
            if not 0 < readers.to_float(name, each) < float("inf"):
                raise ArgumentError(f"{name}: expected a finite number above 0, got {each}")
        return float(given["kpe_scale"]) / float(given["ckv_scale"])

    def _run_rows(
        self,
        q: Any,
        pool: Any,
        sinks: Any,
        unit: float | None,
        factor: dict[str, Any],
        outputs: Any,
    ) -> Any:
        """attn.mla_decode, whose kernel is that of the batch."""
        pages = (self._pages.table, self._pages.lengths)
        options = {"value_dim": self._dims[0], **self._options, **factor}
        if unit is not None:
            options["k_scale"] = self._keep_scale("ckv_scale", pool, unit)
        is_apart = isinstance(q, tuple)

        def function(rows: Any, **outputs: Any) -> Any:
            if is_apart:
                options["q_rope"], options["k_rope"] = outputs.pop("beside"), pool[1]
            keys = pool[0] if is_apart else pool
            return serving_signatures.mla_decode(
                rows, keys, *pages, **options, sinks=sinks, **outputs
            )

        size = (self._pages.lengths.shape[0], self._queries or 1)
        first, second = q if is_apart else (q, None)
        return call_rows(function, first, self._dims[0], size, outputs, second)

    def _run_plan(
        self,
        q: Any,
        pool: Any,
        sinks: Any,
        unit: float | None,
        factor: dict[str, Any],
        out: Any,
        lse: Any,
    ) -> Any:
        """A plan of fixed memory, for graphs."""
        has_lse, has_sinks = lse is not None, sinks is not None
        shape = (self._dtype, self._pool_type, self._dims, self._heads, self._page_size)
        is_apart = isinstance(pool, tuple)
        pools = pool if is_apart else (pool,)
        steps = [each.stride() for each in pools]
        form = (has_lse, has_sinks, self._out_type, *factor.values())
        key = (shape, *steps, *form, *self._options.values())
        plan = self._plans.get(key)
        if plan is None:
            more: dict[str, Any] = {"page_stride": steps[0][0]}
            if is_apart:
                more = {"rope_apart": True, **self._measure_rows(steps)}
            if unit is not None:
                more |= {"kv_dtype": self._pool_type, "scales": "tensor"}
            plan = self._plans[key] = DecodePlan(
                batch=self._pages.lengths.shape[0],
                heads=self._heads,
                dim=sum(self._dims),
                value_dim=self._dims[0],
                page_size=self._page_size,
                max_pages=self._pages.table.shape[1],
                dtype=self._dtype,
                sinks=has_sinks,
                lse=has_lse,
                latent=True,
                out_type=self._out_type,
                device=out.device,
                **self._options,
                **factor,
                **more,
            )
            plan.plan(self._pages.lengths, self._pages.table)
        first, second = q if is_apart else (q, None)
        beside = {"q_rope": second, "k_rope": pools[1]} if is_apart else {}
        if unit is not None:
            beside = dict.fromkeys(
                ("k_scale", "v_scale"), self._keep_scale("ckv_scale", pool, unit)
            )
        plan.run(first, pools[0], sinks=sinks, out=out, lse=lse, **beside)
        return out, lse

    def _measure_rows(self, steps: Any) -> dict[str, Any]:
        """How far the rows of two pools are apart, as a plan has it."""
        (page, row, _), (second_page, second_row, _) = steps
        size = self._page_size
        if row == second_row and page == second_page == size * row:
            return {"row_bytes": 2 * row}
        if row == self._dims[0] and (second_page, second_row) == (
            size * self._dims[1],
            self._dims[1],
        ):
            return {"page_stride": page}
        raise ArgumentError(
            "kpe_cache: expected dense rows and pages, or those of one tensor with ckv_cache, got "
            f"strides {list(steps[1])} beside {list(steps[0])}"
        )
