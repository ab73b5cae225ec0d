"""Tiles that begin where documents do, as a kernel in front of a launch lists them."""

import attn
import numpy as np
import pytest

#: Words of a record, and lengths of tiles that are told apart.
_WORDS, _LENGTHS = 8, 1024


def count_blocks(tile, rows, block, window, causal):
    """Blocks of keys of a record's tile, whose numbers count from its origin."""
    _, _, query, queries, begin, end, _ = tile
    if causal:
        end = max(min(end, query + rows, queries), begin)
    if window is not None:
        begin = min(max(begin, query - window), end)
    return -(-end // block) - begin // block


def list_tiles(ids, rows, block, align, window, causal):
    """The records that attn.plan_tiles writes, in any order."""
    batches, count = ids.shape
    ordered = bool((np.diff(ids, axis=1) >= 0).all())
    ends = [[*(np.flatnonzero(np.diff(row)) + 1), count] for row in ids]

    def record(batch, query, queries, begin, end, is_one):
        origin = begin - begin % align
        return (batch, origin, *(n - origin for n in (query, queries, begin, end)), is_one)

    def count_all(tiles):
        return sum(count_blocks(tile, rows, block, window, causal) for tile in tiles)

    cut = [
        record(batch, query, end, begin, end, 1)
        for batch, own in enumerate(ends)
        for begin, end in zip([0, *own[:-1]], own)
        for query in range(begin, end, rows)
    ]
    starts = [(batch, query) for batch in range(batches) for query in range(0, count, rows)]
    unread = [(batch, 0, query, count, 0, count, 0) for batch, query in starts]
    if ordered and len(cut) <= 4 * len(starts) and count_all(cut) <= count_all(unread):
        return cut
    if not ordered:
        return unread
    return [
        record(
            batch, query, count, max([each for each in [0, *ends[batch]] if each <= query]),
            min(each for each in ends[batch] if each >= min(query + rows, count)), 0,
        )
        for batch, query in starts
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "softmax", "dtype"),
    [
        ({"causal": True}, "optimistic", "int32"),
        ({}, "exact", "int64"),
        ({"window": (300, 0)}, "exact", "int32"),
    ],
)
def test_records(options, softmax, dtype):
    """The same tiles as by plain arithmetic, those with fewer blocks first, whatever the numbers."""
    batches, count, rows, block = 3, 700, 64, 48
    draw = np.random.default_rng(5)
    ids = np.zeros((batches, count), dtype)
    kernel = attn.compile(
        q=(batches, 2, count, 64), dtype="bfloat16", chip="sm_90a", schedule="ws_wgmma", **options,
        mask_mod=lambda b, h, q, kv: ids[b, q] == ids[b, kv],
        plan={"block_m": rows, "block_n": block, "softmax": softmax, "order": "longest_first",
              "cut_documents": True},
    )  # fmt: skip
    align = block if softmax == "exact" else 1
    window = options["window"][0] if "window" in options else None
    room = 4 * batches * -(-count // rows)
    words = _WORDS * (room + 1) + 3 * 32 + _LENGTHS + room + 1
    shares = (0, 1, 1 / 300, 1 / 90, 1 / 40, 1 / 20)
    numbers = [(draw.random((batches, count)) < share).cumsum(1) - 7 for share in shares]
    numbers.append(numbers[2].copy())
    numbers[-1][1, -1] = -9
    for ids_now in numbers:
        ids_now = ids_now.astype(dtype)
        out = attn.sim.empty((-(-words // 8), _WORDS), np.int32)
        ran = attn.sim.run(
            kernel.ptx, kernel="attn_fwd_plan", grid=1, block=1024, args=[ids_now, out]
        )
        assert not ran.findings
        plan = ran.outputs[1]
        wanted = list_tiles(ids_now, rows, block, align, window, bool(options))
        assert plan[0, 0] == len(wanted)
        found = [tuple(map(int, record[:7])) for record in plan[1 : len(wanted) + 1]]
        assert sorted(found) == sorted(wanted)
        if found[0][6]:
            blocks = [count_blocks(tile, rows, block, window, bool(options)) for tile in found]
            assert blocks == sorted(blocks)
