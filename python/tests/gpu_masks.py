#!/usr/bin/env python3
"""Masks as functions beside the built-in options that say the same: checked and timed.
`document` hides later keys too, `documents` does not.

    here: python3 python/tests/gpu_masks.py make FOLDER [--compile=build/bin/attn-compile]
    GPU:  PYTHONPATH=python python3 python/tests/gpu_masks.py run FOLDER [--out=FILE]
              [--filter=REGEX] [--rounds=15]

`run` needs torch and no compiler. It prints a line of JSON for each cell: D 64 and 128, 4096
and 16384 keys, bf16, 16 heads, 16384 queries in all. Each mask has up to four kernels:
`function` (mask_mod, read), `builtin` (an option, or packed sequences, with the same pairs;
none for the prefix), `unread` (mask_mod with --no-read-masks), `dynamic` (the function's
kernel with tiles that a counter deals) and of documents `uncut` (tiles begin at multiples of
their rows). Other kernels of a cell in FOLDER, as CELL.NAME.attn, join them. All are compared with float64 on random rows before
anything is timed, then timed in turns: `ratio` is the median over rounds of the built-in's
time over the function's, `ratio_NAME` that over kernel NAME's. For the prefix `rate_ratio` is its TFLOP/s over those of the causal
option, timed in the same turns. `unordered_*` are documents whose ids decrease once. The last
line has geometric means.
"""

import argparse, json, math, os, pathlib, re, subprocess, sys
from concurrent.futures import ThreadPoolExecutor

HEADS, TOKENS = 16, 16384
CELLS = [(d, n) for d in (64, 128) for n in (4096, 16384)]
MASKS = ("causal", "window", "near", "chunk", "document", "documents", "prefix")
#: The masks that packed sequences stand for.
PACKED = ("chunk", "document", "documents")
WINDOW, CHUNK = 1024, 1024

BODIES = {
    "causal": "%keep = arith.cmpi sle, %j, %i : i32",
    "window": f"""%w = arith.constant {WINDOW} : i32
    %first = arith.subi %i, %w : i32
    %a = arith.cmpi sgt, %j, %first : i32
    %c = arith.cmpi sle, %j, %i : i32
    %keep = arith.andi %a, %c : i1""",
    "near": f"""%w = arith.constant {WINDOW // 2} : i32
    %x = arith.subi %i, %j : i32
    %y = math.absi %x : i32
    %keep = arith.cmpi sle, %y, %w : i32""",
    "chunk": f"""%s = arith.constant {CHUNK.bit_length() - 1} : i32
    %x = arith.shrsi %i, %s : i32
    %y = arith.shrsi %j, %s : i32
    %a = arith.cmpi eq, %y, %x : i32
    %c = arith.cmpi sle, %j, %i : i32
    %keep = arith.andi %a, %c : i1""",
    "document": """%bi = arith.index_cast %b : i32 to index
    %ii = arith.index_cast %i : i32 to index
    %ji = arith.index_cast %j : i32 to index
    %x = memref.load %t[%bi, %ii] : {ids}
    %y = memref.load %t[%bi, %ji] : {ids}
    %a = arith.cmpi eq, %x, %y : i32
    %c = arith.cmpi sle, %j, %i : i32
    %keep = arith.andi %a, %c : i1""",
    "documents": """%bi = arith.index_cast %b : i32 to index
    %ii = arith.index_cast %i : i32 to index
    %ji = arith.index_cast %j : i32 to index
    %x = memref.load %t[%bi, %ii] : {ids}
    %y = memref.load %t[%bi, %ji] : {ids}
    %keep = arith.cmpi eq, %x, %y : i32""",
    "prefix": """%bi = arith.index_cast %b : i32 to index
    %p = memref.load %t[%bi] : {ids}
    %a = arith.cmpi slt, %j, %p : i32
    %c = arith.cmpi sle, %j, %i : i32
    %keep = arith.ori %a, %c : i1""",
}


def documents(n):
    """Lengths of a batch's documents: the same for each number of keys."""
    import random

    draw, left, lengths = random.Random(n), n, []
    while left:
        length = min(left, draw.randint(n // 64, n // 4))
        lengths.append(length)
        left -= length
    return lengths


def text(mask, d, n, builtin):
    batch = TOKENS // n
    packed = builtin and mask in PACKED
    shape = f"1x{HEADS}x{TOKENS}" if packed else f"{batch}x{HEADS}x{n}"
    row, lse = f"memref<{shape}x{d}xbf16>", f"memref<{shape}xf32>"
    arguments, clauses, attributes = "", "", ""
    if packed:
        count = (TOKENS // CHUNK if mask == "chunk" else batch * len(documents(n))) + 1
        most = CHUNK if mask == "chunk" else max(documents(n))
        arguments = f", %cu: memref<{count}xi32>"
        clauses = f" cu_seqlens(%cu, %cu : memref<{count}xi32>, memref<{count}xi32>)"
        kind = "none" if mask == "documents" else "causal"
        attributes = f"mask = #attn.mask<kind = {kind}>, max_seqlen_q = {most} : i64"
    elif builtin:
        attributes = (
            "mask = "
            + {
                "causal": "#attn.mask<kind = causal>",
                "window": f"#attn.mask<kind = window, left = {WINDOW - 1}, right = 0>",
                "near": f"#attn.mask<kind = window, left = {WINDOW // 2}, right = {WINDOW // 2}>",
            }[mask]
        )
    else:
        ids = f"memref<{batch}x{n}xi32>" if mask.startswith("document") else f"memref<{batch}xi32>"
        body = BODIES[mask].replace("{ids}", ids)
        if "%t" in body:
            arguments = f", %t: {ids}"
        clauses = (
            " mask_mod {\n    ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):\n    "
            f"{body}\n    attn.yield %keep : i1\n  }}"
        )
    return (
        f"func.func @f(%q: {row}, %k: {row}, %v: {row}, %o: {row}, %lse: {lse}{arguments}) {{\n"
        f"  attn.attention ins(%q, %k, %v : {row}, {row}, {row}) "
        f"outs(%o, %lse : {row}, {lse}){clauses}"
        f"{' {' + attributes + '}' if attributes else ''}\n  return\n}}\n"
    )


def jobs():
    for d, n in CELLS:
        for mask in MASKS:
            yield d, n, mask, "function", []
            yield d, n, mask, "unread", ["--no-read-masks"]
            if mask.startswith("document"):
                yield d, n, mask, "uncut", ["--schedule=ws_wgmma", "--set=cut_documents=false"]
            elif mask in (*PACKED, "prefix"):
                yield d, n, mask, "dynamic", ["--schedule=ws_wgmma", "--set=dynamic=true"]
            if mask != "prefix":
                yield d, n, mask, "builtin", []


def compile_one(program, folder, job):
    d, n, mask, kind, flags = job
    name = f"d{d}-{n // 1024}k.{mask}.{kind}"
    problem = folder / f"{name}.mlir"
    problem.write_text(text(mask, d, n, kind == "builtin"))
    done = subprocess.run(
        [
            program,
            str(problem),
            "--chip=sm_90a",
            *flags,
            "-o",
            "/dev/null",
            f"--bundle={folder / name}.attn",
            "--bundle-chips=sm_90a",
            "--json",
        ],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return name, "FAILED " + done.stderr.strip()[:300]
    return name, json.loads(done.stdout)["plan"]


def make(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    chosen = [
        job
        for job in jobs()
        if re.search(options.filter, "d%d-%dk.%s.%s" % (job[0], job[1] // 1024, job[2], job[3]))
    ]
    with ThreadPoolExecutor(options.workers) as pool:
        for name, plan in pool.map(
            lambda job: compile_one(options.compile, options.folder, job), chosen
        ):
            print(name, plan, flush=True)


class Ours:
    """A bundle on tensors of its own shapes."""

    def __init__(self, torch, path, given):
        import attn.runtime
        from attn.launch import device_tensors

        self.torch, self.kernel = torch, attn.runtime.load(path)
        names = [each["name"] for each in self.kernel.launch_record["tensors"]]
        views = {name: device_tensors.view(name, given[name], 0) for name in names}
        self.prepared = self.kernel.prepare(views)
        self.memory = [
            torch.zeros(max(16, size), dtype=torch.uint8, device="cuda")
            for size in self.prepared.workspace_bytes
        ]
        self.addresses = [each.address for each in views.values()]
        self.where = [each.data_ptr() for each in self.memory]

    def run(self):
        self.prepared(self.addresses, self.torch.cuda.current_stream().cuda_stream, self.where)


def keep(torch, mask, b, i, n, ids, prefix):
    """What a row keeps, of n keys."""
    j = torch.arange(n, device="cuda")
    if mask == "causal":
        return j <= i
    if mask == "window":
        return (j <= i) & (j > i - WINDOW)
    if mask == "near":
        return (j - i).abs() <= WINDOW // 2
    if mask == "chunk":
        return (j <= i) & (j // CHUNK == i // CHUNK)
    if mask == "documents":
        return ids[b] == ids[b, i]
    if mask == "document":
        return (j <= i) & (ids[b] == ids[b, i])
    return (j <= i) | (j < prefix[b])


def count_pairs(mask, n):
    """Pairs of a batch and head."""
    if mask == "causal":
        return n * (n + 1) / 2
    if mask == "window":
        return sum(min(i + 1, WINDOW) for i in range(n))
    if mask == "near":
        return sum(min(i, WINDOW // 2) + 1 + min(n - 1 - i, WINDOW // 2) for i in range(n))
    if mask == "chunk":
        return n / CHUNK * CHUNK * (CHUNK + 1) / 2
    if mask == "documents":
        return sum(x * x for x in documents(n))
    if mask == "document":
        return sum(x * (x + 1) / 2 for x in documents(n))
    return sum(max(i + 1, n // 4) for i in range(n))


def run(options):
    import torch

    sys.path.insert(0, "python")
    torch.manual_seed(0)
    lines, out = [], open(options.out, "w") if options.out else None

    def say(row):
        print(json.dumps(row), flush=True)
        if out:
            out.write(json.dumps(row) + "\n")
            out.flush()

    say({"device": torch.cuda.get_device_name(), "torch": torch.__version__})
    for d, n in CELLS:
        batch = TOKENS // n
        q, k, v = (
            torch.randn(batch, HEADS, n, d, device="cuda", dtype=torch.bfloat16) for _ in "qkv"
        )
        flat = lambda t: t.transpose(0, 1).reshape(1, HEADS, TOKENS, d).contiguous()
        packed = [flat(t) for t in (q, k, v)]
        one = torch.repeat_interleave(torch.arange(len(documents(n))), torch.tensor(documents(n)))
        ids = one.repeat(batch, 1).int().cuda()
        prefix = torch.full((batch,), n // 4, dtype=torch.int32, device="cuda")

        def cu(lengths):
            return torch.tensor([0] + lengths).cumsum(0).int().cuda()

        own = cu(documents(n) * batch)
        sets = {"chunk": cu([CHUNK] * (TOKENS // CHUNK)), "document": own, "documents": own}
        timed = {}
        for mask in MASKS:
            name = f"d{d}-{n // 1024}k.{mask}"
            if not re.search(options.filter, name):
                continue
            row = {"cell": name, "d": d, "keys": n, "batch": batch, "mask": mask}
            kernels = {}
            for path in sorted(options.folder.glob(f"{name}.*.attn")):
                kind = path.name.removeprefix(name + ".").removesuffix(".attn")
                isPacked = kind.startswith("builtin") and mask in sets
                shape = (1, HEADS, TOKENS, d) if isPacked else (batch, HEADS, n, d)
                o = torch.full(shape, math.nan, device="cuda", dtype=torch.bfloat16)
                lse = torch.full(shape[:3], math.nan, device="cuda")
                a = packed if isPacked else [q, k, v]
                given = {
                    "q": a[0],
                    "k": a[1],
                    "v": a[2],
                    "o": o,
                    "lse": lse,
                    "capture0": prefix if mask == "prefix" else ids,
                }
                if isPacked:
                    given |= {"cu_seqlens_q": sets[mask], "cu_seqlens_k": sets[mask]}
                try:
                    kernel = Ours(torch, path, given)

                    def compare(ids_now):
                        worst, far = 0.0, 0.0
                        generator = torch.Generator().manual_seed(1)
                        for _ in range(options.rows):
                            b, h, i = (
                                int(torch.randint(m, (1,), generator=generator))
                                for m in (batch, HEADS, n)
                            )
                            kept = keep(torch, mask, b, i, n, ids_now, prefix)
                            s = (k[b, h].double() @ q[b, h, i].double()) / math.sqrt(d)
                            s = s.masked_fill(~kept, -math.inf)
                            want, want_lse = (
                                torch.softmax(s, 0) @ v[b, h].double(),
                                torch.logsumexp(s, 0),
                            )
                            at = (0, h, b * n + i) if isPacked else (b, h, i)
                            worst = max(
                                worst,
                                float(
                                    ((o[at].double() - want).norm() / want.norm()).nan_to_num(1e9)
                                ),
                            )
                            far = max(
                                far, float((lse[at].double() - want_lse).abs().nan_to_num(1e9))
                            )
                        return worst, far

                    kernel.run()
                    torch.cuda.synchronize()
                    worst, far = compare(ids)
                    entry = {
                        "err": round(worst, 5),
                        "lse_err": round(far, 6),
                        "right": worst < 1.6e-2 and far < 2e-3,
                    }
                    if kind != "unread" and not isPacked and mask.startswith("document"):
                        # One document comes back at the end: ids decrease.
                        broken = ids.clone()
                        broken[:, -n // 8 :] = 0
                        kept_ids = ids.clone()
                        ids.copy_(broken)
                        o.fill_(math.nan)
                        lse.fill_(math.nan)
                        kernel.run()
                        torch.cuda.synchronize()
                        worst, far = compare(broken)
                        row["unordered_" + kind] = {
                            "err": round(worst, 5),
                            "lse_err": round(far, 6),
                            "right": worst < 1.6e-2 and far < 2e-3,
                        }
                        ids.copy_(kept_ids)
                    row[kind], kernels[kind] = entry, kernel
                except Exception as error:
                    row[kind] = {"error": repr(error)[:300]}
            if mask == "causal" and "builtin" in kernels:
                timed["causal"] = kernels["builtin"]
            if mask == "prefix" and "causal" in timed:
                kernels["causal"] = timed["causal"]

            def time_of(kernel, calls):
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                for _ in range(calls):
                    kernel.run()
                end.record()
                end.synchronize()
                return start.elapsed_time(end) * 1000 / calls

            calls = {
                kind: max(1, int(20000 / max(1, min(time_of(kernel, 1) for _ in range(3)))))
                for kind, kernel in kernels.items()
            }
            times = {kind: [] for kind in kernels}
            for _ in range(options.rounds):
                for kind, kernel in kernels.items():
                    times[kind].append(time_of(kernel, min(calls[kind], 200)))
            middle = lambda values: sorted(values)[len(values) // 2]
            for kind in kernels:
                us = middle(times[kind])
                pairs = count_pairs("causal" if kind == "causal" else mask, n) * batch * HEADS
                row.setdefault(kind, {}).update(
                    us=round(us, 2), tflops=round(4 * d * pairs / us / 1e6, 1)
                )
            if "builtin" in kernels and "function" in kernels:
                row["ratio"] = round(
                    middle([b / f for b, f in zip(times["builtin"], times["function"])]), 4
                )
            for kind in kernels if "builtin" in kernels else ():
                if kind not in ("function", "builtin", "unread"):
                    row["ratio_" + kind] = round(
                        middle([b / f for b, f in zip(times["builtin"], times[kind])]), 4
                    )
            if "causal" in kernels and "function" in kernels and mask == "prefix":
                row["rate_ratio"] = round(row["function"]["tflops"] / row["causal"]["tflops"], 4)
                if "dynamic" in row:
                    row["rate_dynamic"] = round(
                        row["dynamic"]["tflops"] / row["causal"]["tflops"], 4
                    )
            if "unread" in kernels and "function" in kernels:
                row["saved"] = round(
                    middle([u / f for u, f in zip(times["unread"], times["function"])]), 3
                )
            lines.append(row)
            say(row)
    mean = lambda values: (
        round(math.exp(sum(map(math.log, values)) / len(values)), 4) if values else None
    )
    say(
        {
            "ratio": mean([row["ratio"] for row in lines if "ratio" in row]),
            "least": min([row["ratio"] for row in lines if "ratio" in row], default=None),
            "by_mask": {
                mask: mean(
                    [row["ratio"] for row in lines if row["mask"] == mask and "ratio" in row]
                )
                for mask in MASKS
            },
            "prefix_rate": mean([row["rate_ratio"] for row in lines if "rate_ratio" in row]),
            "wrong": [
                row["cell"]
                for row in lines
                for x in row.values()
                if isinstance(x, dict) and not x.get("right", True)
            ],
            "errors": [
                row["cell"]
                for row in lines
                for x in row.values()
                if isinstance(x, dict) and "error" in x
            ],
        }
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["make", "run"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--compile", default="build/bin/attn-compile")
    parser.add_argument("--filter", default="")
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", type=int, default=48)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    make(options) if options.what == "make" else run(options)


if __name__ == "__main__":
    main()
