"""Wrappers with the signatures of FlashInfer's for servers that call it.

    from attn.compat.flashinfer import BatchDecodeWithPagedKVCacheWrapper

    wrapper = BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD")
    wrapper.plan(indptr, indices, last_page_len, 32, 8, 128, 16, q_data_type=torch.bfloat16)
    o = wrapper.run(q, (k_cache, v_cache))

Signatures are those of FlashInfer 0.7; names of kernels (`backend`, `use_tensor_cores`),
`non_blocking`, `enable_pdl` and the contents of workspaces mean nothing here. An argument
that is not covered raises ArgumentError with its name. LSEs have base 2. Tensors are
torch's on a GPU, or numpy's, which run as those of `attn.decode` do.

For CUDA graphs (`use_cuda_graph=True`) the first `plan` fixes the bounds of all later
ones: sequences by the buffer of counts, pages of a sequence by the `max_pages` of the
constructor, of this project's own, or else by the buffer of page ids, which a planner
takes for longer sequences than a server has. A call of `run` in front of the capture
loads the kernel. After the first `plan`, lists on the GPU are not looked at, and nothing waits.
"""

from __future__ import annotations

from ._mla import BatchMLAPagedAttentionWrapper
from ._paged import BatchDecodeWithPagedKVCacheWrapper
from ._prefill import BatchPrefillWithPagedKVCacheWrapper

__all__ = [
    "BatchDecodeWithPagedKVCacheWrapper",
    "BatchMLAPagedAttentionWrapper",
    "BatchPrefillWithPagedKVCacheWrapper",
]
