#!/usr/bin/env python3
"""Latent decoding of uneven batches: several plans, checked and timed beside FlashInfer.

    here: python3 python/tests/gpu_mla_uneven.py make FOLDER [--compile=build/bin/attn-compile]
              [--static=OTHER/attn-compile]
    GPU:  PYTHONPATH=python python3 python/tests/gpu_mla_uneven.py run FOLDER [--out=FILE]
              [--filter=REGEX] [--even] [--backends=fa3]

`make` compiles every cell's plans. `run` needs torch and no compiler, and takes flashinfer if
it can be imported. Lengths of a cell are log-uniform from --least to the longest, with fixed
seeds. Every kernel is first compared with float64 (pages in random order, what no sequence
owns is NaN) over three sets of lengths by one captured graph. Then it is timed in a CUDA graph
with L2 flushed between launches: `us` without the step that plans (a step of a model plans
once), `us_all` with it. It prints a line of JSON for each cell; the last line has geometric
means.
"""

import argparse, json, math, os, pathlib, re, subprocess, sys, time
from concurrent.futures import ThreadPoolExecutor

HEADS = (16, 32, 64, 128)
BATCHES = ((8, 32768), (16, 16384), (32, 32768), (64, 8192), (128, 16384), (256, 8192))
CELLS = [(h, b, m) for h in HEADS for b, m in BATCHES]
SMS = 132


def name_of(cell):
    return "h%d-b%d-%dk" % (cell[0], cell[1], cell[2] // 1024)


def variants(cell):
    """Flags of attn-compile by name. `static` is compiled by the program of --static."""
    heads, batch, keys = cell
    tiles = -(-heads // 64)

    def dealt(runs, **more):
        cluster = more.get("cluster", 1)
        records = runs + batch
        words = {
            "score": "own",
            "wgmma": "true",
            "block_m": 64,
            "block_n": 64,
            "warps_m": 4,
            "warps_n": 2,
            "stages": 2,
            "softmax": "lagged",
            "q_in_regs": "false",
            "dealt_runs": runs,
        } | more
        return ["--schedule=mla", f"--kv-splits={-(-records // batch)}"] + [
            f"--set={k}={v}" for k, v in words.items()
        ]

    out = {"static": None, "planned": []}
    out["d"] = dealt(SMS // tiles)
    out["d-held"] = dealt(SMS // tiles, q_in_regs="true")
    if heads == 128:
        out["d-c2"] = dealt(SMS // 2, cluster=2)
    # A few alternatives on every second cell.
    if (batch, keys) in ((8, 32768), (64, 8192), (256, 8192)):
        out["d-start3"] = dealt(SMS // tiles, start_blocks=3)
        out["d-piece4"] = dealt(SMS // tiles, piece_blocks=4)
        if (batch, keys) != (8, 32768):
            out["d-twice"] = dealt(2 * SMS // tiles)
        else:
            out["d-half"] = dealt(SMS // tiles // 2)
    return out


def compile_one(program, folder, cell, label, flags):
    heads, batch, keys = cell
    path = folder / f"{name_of(cell)}.{label}.attn"
    command = [
        program,
        f"--q={batch}x{heads}x1x576xbf16",
        "--rope-dim=64",
        "--page-size=64",
        "--kv-lengths=" + ",".join([str(keys)] * batch),
        "--chip=sm_90a",
        *flags,
        "-o",
        "/dev/null",
        f"--bundle={path}",
        "--bundle-chips=sm_90a",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return path.name, None, done.stderr.strip()[:400]
    try:
        plan = json.loads(done.stdout)["plan"]
    except Exception:
        plan = None
    return path.name, plan, ""


def make(options):
    options.folder.mkdir(parents=True, exist_ok=True)
    jobs = []
    for cell in CELLS:
        for label, flags in variants(cell).items():
            if not re.search(options.filter, name_of(cell) + "." + label):
                continue
            program = options.compile
            if flags is None:
                if not options.static:
                    continue
                program, flags = options.static, []
            jobs.append((program, options.folder, cell, label, flags))
    with ThreadPoolExecutor(options.workers) as pool:
        for (_, _, cell, label, _), (file, plan, error) in zip(
            jobs, pool.map(lambda j: compile_one(*j), jobs)
        ):
            print(file, error or plan, flush=True)


def draw(torch, cell, seed, least):
    heads, batch, keys = cell
    generator = torch.Generator().manual_seed(1000 * seed + heads * 7 + batch)
    u = torch.rand(batch, generator=generator, dtype=torch.float64)
    lengths = (
        torch.exp(math.log(least) + u * (math.log(keys) - math.log(least))).int().clamp(1, keys)
    )
    lengths[int(torch.randint(batch, (1,), generator=generator))] = keys
    return lengths


def fill_table(torch, lengths, pages, width, seed):
    """A table of random pages, and how many keys of each page are somebody's."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(pages, generator=generator).int()
    table = torch.full((len(lengths), width), -1, dtype=torch.int32)
    owned = torch.zeros(pages, dtype=torch.int32)
    first = 0
    for i, length in enumerate(lengths.tolist()):
        used = -(-length // 64)
        ids = order[first : first + used]
        table[i, :used] = ids
        owned[ids.long()] = 64
        if length % 64:
            owned[int(ids[-1])] = length % 64
        first += used
    return table, owned


def reference(torch, q, pool, table, length, scale):
    ids = table[: -(-length // 64)].long()
    keys = pool[ids].reshape(-1, 576)[:length].double()
    s = q.double() @ keys.T * scale
    lse = s.logsumexp(-1)
    return torch.softmax(s, -1) @ keys[:, :512], lse


def measure(torch, call, flush, calls=8, repeats=7):
    """Median microseconds of a launch in a graph, without the flushes of L2 between launches."""

    def capture(both):
        for _ in range(3):
            if both:
                call()
            flush()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                flush()
                if both:
                    call()
        graph.replay()
        torch.cuda.synchronize()
        return graph

    both, alone = capture(True), capture(False)

    def time_of(graph):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000 / calls

    pairs = [(time_of(both), time_of(alone)) for _ in range(repeats)]
    return sorted(a - b for a, b in pairs)[repeats // 2]


class Ours:
    """A bundle on tensors of its own shapes: the step that plans, and the rest."""

    def __init__(self, torch, path, given):
        import attn.runtime
        from attn.launch import planned_steps, device_tensors

        self.torch, self.kernel = torch, attn.runtime.load(path)
        record = self.kernel.launch_record
        self.tensors = {}
        types = {"bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32}
        for each in record["tensors"]:
            self.tensors[each["name"]] = given.get(each["name"])
            if self.tensors[each["name"]] is None:
                self.tensors[each["name"]] = torch.empty(
                    each["shape"], dtype=types[each["dtype"]], device="cuda"
                )
        views = {n: device_tensors.view(n, t, 0) for n, t in self.tensors.items()}
        whole = self.kernel.prepare(views)
        self.bytes = sum(whole.workspace_bytes)
        self.memory = [
            torch.zeros(max(16, size), dtype=torch.uint8, device="cuda")
            for size in whole.workspace_bytes
        ]
        where = [m.data_ptr() for m in self.memory]
        count = planned_steps.count_planned(record, ("kv_lengths", "page_table"))
        self.steps = []
        parts = planned_steps.split(self.kernel, count) if count else None
        if parts:
            for part in parts:
                own = {n: views[n] for n in part.kernel.names}
                self.steps.append(
                    (part.kernel.prepare(own), [v.address for v in own.values()], part.pick(where))
                )
        else:
            self.steps.append((whole, [v.address for v in views.values()], where))
        # The step that attends alone, without the one that merges.
        self.attends, all_steps = None, record.get("steps", ())
        if len(all_steps) - count >= 2:
            part = planned_steps.Part(self.kernel, count, len(all_steps) - 1)
            own = {n: views[n] for n in part.kernel.names}
            self.attends = (
                part.kernel.prepare(own),
                [v.address for v in own.values()],
                part.pick(where),
            )

    def launch(self, step):
        prepared, addresses, where = step
        prepared(addresses, self.torch.cuda.current_stream().cuda_stream, where)

    def plan(self):
        for step in self.steps[:-1]:
            self.launch(step)

    def run(self):
        self.launch(self.steps[-1])

    def all(self):
        self.plan()
        self.run()


def run(options):
    import torch

    sys.path.insert(0, "python")
    try:
        import flashinfer
    except Exception as error:
        flashinfer = None
        print(json.dumps({"flashinfer": repr(error)[:200]}), flush=True)
    print(
        json.dumps(
            {
                "device": torch.cuda.get_device_name(),
                "torch": torch.__version__,
                "flashinfer": getattr(flashinfer, "__version__", None),
            }
        ),
        flush=True,
    )
    junk = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    flush = lambda: junk.zero_()
    scale = 576**-0.5
    rows, out = [], open(options.out, "w") if options.out else None
    for cell in CELLS:
        heads, batch, keys = cell
        paths = sorted(options.folder.glob(name_of(cell) + ".*.attn"))
        if not paths or not re.search(options.filter, name_of(cell)):
            continue
        width, pages = keys // 64, batch * keys // 64 + 3
        pool = torch.randn(pages, 64, 576, device="cuda", dtype=torch.bfloat16)
        clean = pool.clone() if pages * 64 * 576 * 2 < 8e9 else None
        q = torch.randn(batch, heads, 576, device="cuda", dtype=torch.bfloat16)
        table = torch.zeros(batch, width, dtype=torch.int32, device="cuda")
        lens = torch.zeros(batch, dtype=torch.int32, device="cuda")
        o = torch.empty(batch, heads, 512, device="cuda", dtype=torch.bfloat16)
        lse = torch.empty(batch, heads, device="cuda")
        given = {
            "q": q.view(batch, heads, 1, 576),
            "k": pool.view(pages, 1, 64, 576),
            "page_table": table,
            "kv_lengths": lens,
            "o": o.view(batch, heads, 1, 512),
            "lse": lse.view(batch, heads, 1),
        }
        row = {"cell": name_of(cell), "heads": heads, "batch": batch, "max": keys, "plans": {}}
        sets = []
        for seed in range(options.sets):
            lengths = draw(torch, cell, seed, options.least)
            if seed == 1:
                lengths[0], lengths[-1] = 0, 1
            if seed == 2:
                lengths[:] = keys // 2
            sets.append((lengths, *fill_table(torch, lengths, pages, width, seed)))

        def load(index, poisoned):
            lengths, entries, owned = sets[index]
            lens.copy_(lengths)
            table.copy_(entries)
            pool.copy_(clean)
            if poisoned:
                absent = torch.arange(64, device="cuda")[None, :] >= owned.cuda()[:, None]
                pool.masked_fill_(absent[:, :, None], math.nan)

        def compare(index):
            lengths = sets[index][0].tolist()
            err = norm = worst = 0.0
            order = sorted(range(batch), key=lambda i: lengths[i])
            picked = set(order[-8:] + order[:3] + list(range(0, batch, max(1, batch // 24))))
            for i in picked:
                if lengths[i] == 0:
                    err += float(o[i].double().abs().nan_to_num(1e9).sum())
                    worst = max(worst, 0.0 if bool((lse[i] == -math.inf).all()) else 1e9)
                    continue
                want, want_lse = reference(torch, q[i], pool, table[i], lengths[i], scale)
                err += float(((o[i].double() - want) ** 2).sum().nan_to_num(1e9))
                norm += float((want**2).sum())
                worst = max(worst, float((lse[i].double() - want_lse).abs().nan_to_num(1e9).max()))
            return math.sqrt(err / max(norm, 1e-30)), worst

        good, kernels = True, {}
        for path in paths:
            label = path.name.split(".")[1]
            entry = row["plans"][label] = {}
            try:
                kernel = Ours(torch, path, given)
                load(0, True)
                kernel.all()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    kernel.all()
                entry["err"], entry["lse_err"] = 0.0, 0.0
                for index in range(len(sets)):
                    load(index, True)
                    o.fill_(math.nan)
                    lse.fill_(math.nan)
                    graph.replay()
                    torch.cuda.synchronize()
                    a, b = compare(index)
                    entry["err"], entry["lse_err"] = max(entry["err"], a), max(entry["lse_err"], b)
                entry["right"] = entry["err"] < 1.6e-2 and entry["lse_err"] < 2e-3
                entry["workspace_mb"] = round(kernel.bytes / 1e6, 1)
                kernels[label] = kernel
            except Exception as error:
                entry["error"] = repr(error)[:300]
        load(0, False)
        lengths = sets[0][0]
        total = int(lengths.sum())
        row["keys"] = total
        for label, kernel in kernels.items():
            entry = row["plans"][label]
            kernel.all()
            entry["us"] = round(measure(torch, kernel.run, flush), 2)
            if len(kernel.steps) > 1:
                entry["us_all"] = round(measure(torch, kernel.all, flush), 2)
            if kernel.attends is not None:
                entry["us_attend"] = round(
                    measure(torch, lambda: kernel.launch(kernel.attends), flush), 2
                )
            entry["gbs"] = round(total * 1152 / entry["us"] / 1e3)
            entry["tflops"] = round(2 * total * heads * 1088 / entry["us"] / 1e6)
        # The same kernels on even lengths of half the table.
        if options.even and len(sets) > 2:
            load(2, False)
            for label, kernel in kernels.items():
                kernel.all()
                row["plans"][label]["us_even"] = round(measure(torch, kernel.run, flush), 2)
            load(0, False)
        if flashinfer is not None:
            for backend in options.backends.split(","):
                try:
                    ws = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
                    w = flashinfer.mla.BatchMLAPagedAttentionWrapper(ws, backend=backend)
                    used = ((lengths + 63) // 64).int()
                    qi = torch.arange(0, batch + 1, dtype=torch.int32, device="cuda")
                    ki = torch.cat([torch.zeros(1, dtype=torch.int32), used.cumsum(0).int()]).cuda()
                    ids = (
                        torch.cat([sets[0][1][i, :n] for i, n in enumerate(used.tolist())])
                        .int()
                        .cuda()
                    )
                    w.plan(
                        qi,
                        ki,
                        ids,
                        lengths.cuda(),
                        heads,
                        512,
                        64,
                        64,
                        False,
                        scale,
                        torch.bfloat16,
                        torch.bfloat16,
                    )
                    ckv, kpe = pool[..., :512].contiguous(), pool[..., 512:].contiguous()
                    qn, qp = q[..., :512].contiguous(), q[..., 512:].contiguous()
                    got = torch.empty_like(o)
                    call = lambda: w.run(qn, qp, ckv, kpe, out=got)
                    call()
                    torch.cuda.synchronize()
                    o.copy_(got)
                    lse.zero_()
                    err, _ = compare(0)
                    row[backend] = {"us": round(measure(torch, call, flush), 2), "err": err}
                    del ckv, kpe
                except Exception as error:
                    row[backend] = {"error": repr(error)[:300]}
        best = min(
            (e["us"] for e in row["plans"].values() if e.get("right") and "us" in e), default=None
        )
        theirs = min(
            (row[b]["us"] for b in options.backends.split(",") if "us" in row.get(b, {})),
            default=None,
        )
        row["best"], row["theirs"] = best, theirs
        if best and theirs:
            row["ratio_best"] = round(theirs / best, 3)
            row["ratio"] = {
                l: round(theirs / e["us"], 3) for l, e in row["plans"].items() if "us" in e
            }
        rows.append(row)
        line = json.dumps(row)
        print(line, flush=True)
        if out:
            out.write(line + "\n")
            out.flush()
        del pool, clean, q, kernels, given
        torch.cuda.empty_cache()
    means = {}
    for row in rows:
        for label, ratio in row.get("ratio", {}).items():
            means.setdefault(label, []).append(ratio)
        if "ratio_best" in row:
            means.setdefault("best", []).append(row["ratio_best"])
    last = json.dumps(
        {
            "geomean": {
                l: [round(math.exp(sum(map(math.log, v)) / len(v)), 3), min(v), len(v)]
                for l, v in means.items()
            },
            "wrong": [
                f"{r['cell']}.{l}"
                for r in rows
                for l, e in r["plans"].items()
                if not e.get("right")
            ],
        }
    )
    print(last)
    if out:
        out.write(last + "\n")


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("what", choices=("make", "run"))
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--compile", default="build/bin/attn-compile")
parser.add_argument("--static", default="")
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--filter", default="")
parser.add_argument("--least", type=int, default=64)
parser.add_argument("--sets", type=int, default=3)
parser.add_argument("--even", action="store_true")
parser.add_argument("--backends", default="fa3")
parser.add_argument("--out", default="")
options = parser.parse_args()
(make if options.what == "make" else run)(options)
