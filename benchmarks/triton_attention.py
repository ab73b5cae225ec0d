"""A plain attention forward kernel in Triton, to measure compile time against.

FlashAttention-2 style with a causal option, strided (batch, head, sequence,
dim) tensors, grouped heads, and a log-sum-exp result: the same problem that
attn-compile gets. It is compiled for a named GPU; no GPU is needed.
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def _attend(acc, row_sum, row_max, q, k_ptr, v_ptr, stride_kn, stride_vn, kv_len,
            rows, first, last, scale_log2,
            BLOCK_N: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr):
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, D)
    for start in range(first, last, BLOCK_N):
        cols = start + columns
        k = tl.load(k_ptr + cols[None, :] * stride_kn + dims[:, None],
                    mask=cols[None, :] < kv_len, other=0.0)
        scores = tl.dot(q, k) * scale_log2
        if MASKED:
            keep = (cols[None, :] <= rows[:, None]) & (cols[None, :] < kv_len)
            scores = tl.where(keep, scores, float("-inf"))
        new_max = tl.maximum(row_max, tl.max(scores, 1))
        p = tl.math.exp2(scores - new_max[:, None])
        correction = tl.math.exp2(row_max - new_max)
        row_sum = row_sum * correction + tl.sum(p, 1)
        acc = acc * correction[:, None]
        v = tl.load(v_ptr + cols[:, None] * stride_vn + dims[None, :],
                    mask=cols[:, None] < kv_len, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        row_max = new_max
    return acc, row_sum, row_max


@triton.jit
def attention_forward(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
                      stride_qb, stride_qh, stride_qm,
                      stride_kb, stride_kh, stride_kn,
                      stride_vb, stride_vh, stride_vn,
                      stride_ob, stride_oh, stride_om,
                      heads, group, q_len, kv_len, scale_log2,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                      D: tl.constexpr, CAUSAL: tl.constexpr):
    block = tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    kv_head = head // group
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + batch * stride_qb + head * stride_qh
                + rows[:, None] * stride_qm + dims[None, :],
                mask=rows[:, None] < q_len, other=0.0)
    k_ptr += batch * stride_kb + kv_head * stride_kh
    v_ptr += batch * stride_vb + kv_head * stride_vh
    row_max = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    row_sum = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    whole = block * BLOCK_M // BLOCK_N * BLOCK_N if CAUSAL else kv_len // BLOCK_N * BLOCK_N
    end = tl.minimum((block + 1) * BLOCK_M, kv_len) if CAUSAL else kv_len
    acc, row_sum, row_max = _attend(acc, row_sum, row_max, q, k_ptr, v_ptr,
                                    stride_kn, stride_vn, kv_len, rows, 0, whole,
                                    scale_log2, BLOCK_N, D, False)
    acc, row_sum, row_max = _attend(acc, row_sum, row_max, q, k_ptr, v_ptr,
                                    stride_kn, stride_vn, kv_len, rows, whole, end,
                                    scale_log2, BLOCK_N, D, True)
    acc = acc / row_sum[:, None]
    lse = (row_max + tl.math.log2(row_sum)) * 0.6931471805599453
    tl.store(lse_ptr + tl.program_id(1) * q_len + rows, lse, mask=rows < q_len)
    tl.store(o_ptr + batch * stride_ob + head * stride_oh
             + rows[:, None] * stride_om + dims[None, :],
             acc.to(o_ptr.dtype.element_ty), mask=rows[:, None] < q_len)


def source(head_dim: int, causal: bool) -> ASTSource:
    """The kernel for f16 tensors, specialised as a launch would do it."""
    pointers = ["q_ptr", "k_ptr", "v_ptr", "o_ptr"]
    names = attention_forward.arg_names
    constants = {"BLOCK_M": 128, "BLOCK_N": 64, "D": head_dim, "CAUSAL": causal}
    signature = {}
    for name in names:
        if name in pointers:
            signature[name] = "*fp16"
        elif name == "lse_ptr":
            signature[name] = "*fp32"
        elif name == "scale_log2":
            signature[name] = "fp32"
        elif name in constants:
            signature[name] = "constexpr"
        else:
            signature[name] = "i32"
    divisible = {
        (index,): [["tt.divisibility", 16]]
        for index, name in enumerate(names)
        if name.endswith("_ptr") or name.startswith("stride_")
    }
    return ASTSource(fn=attention_forward, signature=signature,
                     constexprs=constants, attrs=divisible)


def compile_for(capability: int, head_dim: int, causal: bool):
    """Compiles the kernel; returns Triton's CompiledKernel."""
    return triton.compile(source(head_dim, causal),
                          target=GPUTarget("cuda", capability, 32),
                          options={"num_warps": 4, "num_stages": 2})
