"""The wrapper of queries of which each sequence has another number."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from ..options import argument_names, readers
from ..serving import serving_signatures
from ..tensors import batch_lists
from . import _checks, _lists
from ._paged import POOLS, UNCOVERED_PLAN, UNCOVERED_RUN, PagedWrapper, read_layout
from ._wrapper import call_rows, multiply, read_lse

_UNCOVERED: dict[str, Any] = {
    "custom_mask": None,
    "packed_custom_mask": None,
    "use_fp16_qk_reduction": False,
    "prefix_len_ptr": None,
    "token_pos_in_items_ptr": None,
    "token_pos_in_items_len": 0,
    "max_item_len_ptr": None,
    "seq_lens_q": None,
    "uniform_q_len": None,
}


class BatchPrefillWithPagedKVCacheWrapper(PagedWrapper):
    """Queries of a batch one sequence behind the other: chunked prefill and append."""

    _names = POOLS | {
        "page_table": "paged_kv_indices",
        "kv_lengths": "paged_kv_last_page_len",
        "cu_seqlens_q": "qo_indptr",
    }

    def __init__(
        self,
        float_workspace_buffer: Any,
        kv_layout: str = "NHD",
        use_cuda_graph: bool = False,
        qo_indptr_buf: Any = None,
        paged_kv_indptr_buf: Any = None,
        paged_kv_indices_buf: Any = None,
        paged_kv_last_page_len_buf: Any = None,
        custom_mask_buf: Any = None,
        mask_indptr_buf: Any = None,
        backend: str = "auto",
        jit_args: Any = None,
        jit_kwargs: Any = None,
        variant_owns_mask: bool = False,
        *,
        max_pages: int | None = None,
    ) -> None:
        uncovered = {"custom_mask_buf": None, "mask_indptr_buf": None, "jit_args": None}
        _lists.refuse(locals(), uncovered | {"jit_kwargs": None, "variant_owns_mask": False})
        self._layout = read_layout(kv_layout)
        buffers = {
            "paged_kv_indptr_buf": paged_kv_indptr_buf,
            "paged_kv_indices_buf": paged_kv_indices_buf,
            "paged_kv_last_page_len_buf": paged_kv_last_page_len_buf,
            "qo_indptr_buf": qo_indptr_buf,
        }
        super().__init__(use_cuda_graph, buffers, max_pages)
        self._counts: Any = None
        self._most_queries: int | None = None

    def plan(
        self,
        qo_indptr: Any,
        paged_kv_indptr: Any,
        paged_kv_indices: Any,
        paged_kv_last_page_len: Any,
        num_qo_heads: int,
        num_kv_heads: int,
        head_dim_qk: int,
        page_size: int,
        head_dim_vo: int | None = None,
        custom_mask: Any = None,
        packed_custom_mask: Any = None,
        causal: bool = False,
        pos_encoding_mode: str = "NONE",
        use_fp16_qk_reduction: bool = False,
        sm_scale: float | None = None,
        window_left: int = -1,
        logits_soft_cap: float | None = None,
        rope_scale: float | None = None,
        rope_theta: float | None = None,
        q_data_type: Any = "float16",
        kv_data_type: Any = None,
        o_data_type: Any = None,
        non_blocking: bool = True,
        prefix_len_ptr: Any = None,
        token_pos_in_items_ptr: Any = None,
        token_pos_in_items_len: int = 0,
        max_item_len_ptr: Any = None,
        seq_lens: Any = None,
        seq_lens_q: Any = None,
        block_tables: Any = None,
        max_token_per_sequence: int | None = None,
        max_sequence_kv: int | None = None,
        fixed_split_size: int | None = None,
        disable_split_kv: bool = False,
        uniform_q_len: int | None = None,
    ) -> None:
        """Takes a batch's queries and pages: those of sequence i from `qo_indptr[i]` and
        `paged_kv_indptr[i]` on. The last query is at the last key. In graph mode
        `max_token_per_sequence` and `max_sequence_kv` of the first plan bound all later
        ones. Keys are never split."""
        given = dict(locals())
        _lists.refuse(given, UNCOVERED_PLAN | _UNCOVERED)
        most = {
            "max_token_per_sequence": max_token_per_sequence,
            "max_sequence_kv": max_sequence_kv,
        }
        for name, each in most.items():
            if each is not None:
                readers.to_integer(name, each, 0, 2**31 - 1)
        types = self._read_types(given)
        _lists.check_list("qo_indptr", qo_indptr)
        _lists.check_list("paged_kv_indptr", paged_kv_indptr)
        _lists.expect(
            "qo_indptr: entries as paged_kv_indptr", paged_kv_indptr.shape[0], qo_indptr.shape[0]
        )
        value_dim = head_dim_qk if head_dim_vo is None else head_dim_vo
        dims = {"head_dim_qk": head_dim_qk, "head_dim_vo": value_dim}
        settings = self._read_settings(types, given, dims)
        page_size = settings["_page_size"]
        most_pages = self._bound_keys(max_sequence_kv, page_size)
        most_queries = self._bound_queries(qo_indptr, max_token_per_sequence)
        pages, greatest = self._read_pages(
            ("paged_kv_indptr", paged_kv_indptr),
            ("paged_kv_indices", paged_kv_indices),
            ("paged_kv_last_page_len", paged_kv_last_page_len),
            page_size,
            most_pages,
        )
        counts = _lists.move(qo_indptr, paged_kv_indices)
        self._pages.plan(*pages)
        vars(self).update(settings, _greatest=greatest, _dims=(int(head_dim_qk), int(value_dim)))
        self._most_pages, self._most_queries = most_pages, most_queries
        if self._is_graph and self._counts is not None:
            self._counts[...] = counts
        else:
            self._counts = counts if counts is not qo_indptr else _lists.copy(counts)

    begin_forward = plan

    def _bound_keys(self, most: int | None, page_size: int) -> int | None:
        """Pages of a sequence; a graph keeps those of the first plan."""
        if not self._is_graph or self._most_pages is None or most is None:
            return self._most_pages
        if self._pages.table is None:
            return max(min(self._most_pages, -(-most // page_size)), 1)
        held = self._pages.table.shape[1] * page_size
        if most > held:
            raise ArgumentError(
                f"max_sequence_kv: expected at most {held}, keys of the pages of the first plan, "
                f"got {most}"
            )
        return self._most_pages

    def _bound_queries(self, indptr: Any, most: int | None) -> int:
        """What a kernel is compiled for; a graph keeps that of the first plan."""
        is_fixed = self._is_graph and self._most_queries is not None
        is_near = _checks.is_near(indptr)
        if is_near or not self._is_graph or batch_lists.looks_at(indptr):
            _checks.check_indptr("qo_indptr", indptr, is_packed=True)
        bound = self._most_queries if is_fixed else most
        if is_fixed and bound is not None and most is not None and most > bound:
            raise ArgumentError(
                f"max_token_per_sequence: expected at most {bound}, that of the first plan, got "
                f"{most}"
            )
        if bound is not None and not is_near:
            return bound
        count = _lists.count_most(indptr)
        if bound is not None and count > bound:
            raise ArgumentError(
                f"qo_indptr: expected at most {bound} queries of a sequence, got {count}"
            )
        return max(count, 1) if bound is None else bound

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
        lse_base: str = "log2",
        lse_layout: str = "NH",
        enable_pdl: bool | None = None,
        window_left: int | None = None,
        sinks: Any = None,
        kv_cache_sf: Any = None,
        skip_softmax_threshold_scale_factor: float | None = None,
        use_fp16_softmax: bool | None = None,
        uses_spcompress: bool | None = None,
    ) -> Any:
        """o like q, (queries, heads, dim), or (o, lse) with `return_lse`."""
        uncovered = {"args": (), "lse_layout": "NH", "use_fp16_softmax": None}
        _lists.refuse(locals(), UNCOVERED_RUN | uncovered | {"uses_spcompress": None})
        if lse_base not in ("log2", "ln"):
            raise ArgumentError(f'lse_base: expected "log2" or "ln", got {readers.show(lse_base)}')
        self._expect_planned()
        return_lse = read_lse(lse, return_lse)
        k, v = self._read_pools(q, paged_kv_cache, self._dims)
        self._check_window(window_left)
        lists = (self._pages.table, self._pages.lengths, self._counts)
        factors = (q_scale, k_scale, v_scale)
        options, scales, factor = self._read_factors(q, factors, self._dims[0])
        options = options | {"max_seqlen_q": self._most_queries, "sinks": sinks} | scales

        def function(rows: Any, **outputs: Any) -> Any:
            return serving_signatures.prefill(rows, k, v, *lists, **options, **outputs)

        with argument_names.rename(self._names):
            o, log = call_rows(function, q, self._dims[1], None, (out, lse, return_lse))
        multiply(o, factor)
        return (o, _lists.finish_lse(log, lse_base)) if return_lse else o

    def run_return_lse(self, *arguments: Any, **options: Any) -> Any:
        return self.run(*arguments, **options, return_lse=True)
