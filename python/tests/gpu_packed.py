#!/usr/bin/env python3
"""Results of 4 bits that `attn.DecodePlan` writes to torch's tensors, made here and the caller's,
and scales in tiles of it, of `attn.decode` and of `attn.prefill`.

    python3 python/tests/gpu_packed.py

Compares with the results of a plan without a type of its own; the status is 1 where they differ.
"""

import sys

import attn
import torch

BATCH, HEADS, KV_HEADS, DIM, PAGE, PAGES = 2, 4, 2, 64, 16, 4


def make_plan(**options):
    plan = attn.DecodePlan(
        batch=BATCH, heads=HEADS, kv_heads=KV_HEADS, dim=DIM, page_size=PAGE, max_pages=PAGES,
        dtype="float16", **options,
    )  # fmt: skip
    lengths = torch.tensor([37, 5], dtype=torch.int32, device="cuda")
    table = torch.randperm(BATCH * PAGES).reshape(BATCH, PAGES).int().to("cuda")
    return plan, lengths, table


def to_tiles(scales):
    """A row for each token of what kernels write row by row, in the layout 128x4."""
    rows = scales.cpu().view(torch.uint8).flatten(1).numpy()
    return torch.from_numpy(attn.tile_scales(rows))


def check_tiles(q, pools, table, lengths, rows, want) -> bool:
    """Scales in tiles are those of `rows` in another order, also of a plan, which takes `amax`."""
    kind = {"out_type": "f4E2M1FN", "out_group": 16}
    plan, _, _ = make_plan(**kind, out_scale_tiles=True, amax=True)
    plan.plan(lengths, table)
    # The last run takes the shorter way.
    largest = [torch.zeros(1, device="cuda") for _ in range(3)]
    made = plan.run(q, *pools, amax=largest[0])
    out, units = (torch.zeros_like(each.view(torch.uint8)) for each in made)
    units = units.view(torch.float8_e4m3fn)
    for amax in largest[1:]:
        plan.run(q, *pools, out=out, out_scales=units, amax=amax)
    counts = torch.arange(BATCH + 1, dtype=torch.int32, device="cuda")
    tiled = [made, (out, units)]
    batch = (q, *pools, table, lengths)
    tiled.append(attn.decode(*batch, **kind, out_scale_tiles=True))
    tiled.append(attn.prefill(*batch, counts, max_seqlen_q=1, **kind, out_scale_tiles=True))
    torch.cuda.synchronize()
    there = to_tiles(torch.ones_like(rows.view(torch.uint8))) == 1
    most = want.abs().max()
    good = all(bool(abs(amax.cpu() - most) <= 2e-3 * most) for amax in largest)
    for _, each in tiled:
        bits = each.cpu().view(torch.uint8)
        good &= bits.shape == there.shape and torch.equal(bits[there], to_tiles(rows)[there])
    try:
        plan.run(q, *pools)
        return False
    except attn.ArgumentError as error:
        return good and 'tensor "amax": expected a tensor' in str(error)


def main() -> int:
    torch.manual_seed(0)
    q = torch.randn(BATCH, HEADS, DIM, dtype=torch.float16, device="cuda")
    pools = [
        torch.randn(BATCH * PAGES, PAGE, KV_HEADS, DIM, dtype=torch.float16, device="cuda")
        for _ in "kv"
    ]
    wide, lengths, table = make_plan()
    wide.plan(lengths, table)
    want = wide.run(q, *pools).float().cpu()
    most = want.abs().reshape(BATCH, HEADS, -1, 16).amax(-1).repeat_interleave(16, -1)
    narrow, _, _ = make_plan(out_type="f4E2M1FN", out_group=16)
    narrow.plan(lengths, table)
    made = narrow.run(q, *pools)
    out = torch.zeros(BATCH, HEADS, DIM // 2, dtype=torch.uint8, device="cuda")
    scales = torch.zeros(BATCH, HEADS, DIM // 16, device="cuda").to(torch.float8_e4m3fn)
    # A launch with tensors like those of another takes a shorter way.
    given = [narrow.run(q, *pools, out=out, out_scales=scales) for _ in range(2)]
    good = all(o is out and s is scales for o, s in given)
    torch.cuda.synchronize()
    for o, units in (made, (out, scales)):
        bytes_of = [each.cpu().view(torch.uint8).numpy() for each in (o, units)]
        got = torch.from_numpy(attn.unpack_nvfp4(*bytes_of))
        good &= bool(((got - want).abs() <= 0.18 * most + 2e-3).all())
    try:
        narrow.run(q, *pools, out=out.half(), out_scales=scales)
        good = False
    except attn.ArgumentError as error:
        good &= "expected elements of i8, got f16" in str(error)
    good &= check_tiles(q, pools, table, lengths, made[1], want)
    print("packed results:", "good" if good else "WRONG")
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
