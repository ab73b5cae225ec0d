#!/usr/bin/env python3
"""Holds estimates of plans against a board, for problems that are not plain.

Two sets of problems are drawn, one for fitting and one that is only looked at: packed
sequences, slices of fused tensors, chunks of prompts on pages, caches whose lengths differ,
drafts of a few queries, and windows. Each gets the kernel that the planner takes and the
best one of every schedule that can compute it.

  here   benchmarks/plan-costs.py --make FOLDER [--count=60] [--seed=1] [--chip=sm_90a]
             [--board=h200] [--cubin=sm_90a] [--workers=2] [--build=build] [--limit=SECONDS]
             [--expected] [--set=fit|fresh]
  GPU    PYTHONPATH=python benchmarks/plan-costs.py --run FOLDER --json=costs.json
             [--seconds=0.05] [--limit=SECONDS]
  here   benchmarks/plan-costs.py --report costs.json [--scales=packed.,pages.] [--write --board=h200]

--make goes on where an earlier call was stopped; with --expected the planner is told the lengths
that the launch will have, and with --set problems of one set alone are made. --run needs torch, and neither the compiler
nor a toolkit: it compares the results of a problem's kernels with each other, times them in
turns, and stores each problem at once, so that a later call goes on there too. --report
prints, for each set and kind and in all, by how much estimates are off (the larger one of
estimate / measured and its inverse: median and 95th percentile) and the time of the plan that
is taken over that of the best schedule (geometric mean and 95th percentile): with the scales
of the board's calibration file as they are, and with those that the first set asks for, which
multiply the times of a schedule, and of its packed problems, lengths and pages; --scales names
those that may change. --write stores these with their residuals, --page one of the two tables of
docs/HowTo/how-a-plan-is-chosen.md, with --expected the other one.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import json
import math
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import results_util  # noqa: E402

SCHEDULES = ("split_q", "decode", "tiled_d", "ws_wgmma", "self_load", "ws_columns", "ws_pair")
#: Heads, and key heads.
HEADS = ((32, 32), (32, 8), (16, 16), (40, 8), (16, 2), (64, 8))


def spread(rng: random.Random, least: int, most: int) -> int:
    """A length, its logarithm drawn evenly."""
    return round(math.exp(rng.uniform(math.log(least), math.log(most))))


def draw_packed(rng: random.Random) -> dict:
    heads, kv_heads = rng.choice(HEADS)
    lengths = [spread(rng, 64, 4096) for _ in range(rng.choice((2, 5, 8, 16, 32)))]
    flags = [f"--q=1x{heads}x{sum(lengths)}x{rng.choice((64, 128, 128, 256))}xbf16", f"--kv-heads={kv_heads}"]
    flags += ["--varlen=q:" + ",".join(map(str, lengths))] + ["--causal"] * rng.randrange(2)
    return {"flags": flags, "queries": lengths, "scales": ["packed"]}


def draw_fused(rng: random.Random) -> dict:
    heads, kv_heads = rng.choice(HEADS)
    shape = f"{rng.choice((1, 2, 4, 8))}x{heads}x{spread(rng, 256, 4096)}x{rng.choice((64, 80, 128, 256))}"
    flags = [f"--q={shape}xbf16", f"--kv-heads={kv_heads}", "--layout=strided"]
    return {"flags": flags + ["--causal"] * rng.randrange(2), "scales": []}


def draw_window(rng: random.Random) -> dict:
    heads, kv_heads = rng.choice(HEADS)
    shape = f"{rng.choice((1, 2, 4))}x{heads}x{spread(rng, 1024, 16384)}x{rng.choice((64, 128, 256))}"
    window = rng.choice((127, 255, 511, 1023, 4095))
    return {"flags": [f"--q={shape}xbf16", f"--kv-heads={kv_heads}", f"--window={window},0"], "scales": []}


def draw_served(rng: random.Random, queries: int, even: bool, paged: bool) -> dict:
    heads, kv_heads = rng.choice(HEADS[1:])
    batch, bound = rng.choice((1, 4, 8, 16, 32)), spread(rng, 1024, 16384)
    lengths = [bound if even else spread(rng, 64, bound) for _ in range(batch)]
    lengths[rng.randrange(batch)] = bound
    flags = [
        f"--q={batch}x{heads}x{queries}x{rng.choice((64, 128, 128, 256))}xbf16",
        f"--kv-heads={kv_heads}",
    ]
    # The planner knows the longest sequence, the launch all lengths.
    flags += ["--kv-lengths=" + ",".join([str(bound)] * batch)]
    flags += [f"--page-size={rng.choice((16, 64, 256))}"] * paged
    flags += ["--causal=bottom-right"] * (queries > 1)
    scales = ["lengths", *["pages"] * paged]
    return {"flags": flags, "keys": lengths, "even": even, "scales": scales}


DRAWERS = {
    "packed": draw_packed,
    "fused": draw_fused,
    "window": draw_window,
    "chunk": lambda rng: draw_served(rng, rng.choice((128, 256, 512, 1024)), True, True),
    "ragged": lambda rng: draw_served(rng, 1, False, rng.random() < 0.5),
    "draft": lambda rng: draw_served(rng, rng.choice((2, 4, 8)), rng.random() < 0.5, True),
}


#: What a kind is called in the page's table.
TITLES = {
    "packed": "packed sequences of 64 to 4096 rows",
    "fused": "slices of a fused tensor",
    "window": "windows",
    "chunk": "chunks of prompts",
    "ragged": "caches of different lengths",
    "draft": "drafts",
}


def draw(count: int, seed: int) -> list[dict]:
    """Problems of both sets, by turns of sets and kinds."""
    generators = {"fit": random.Random(2 * seed), "fresh": random.Random(2 * seed + 1)}
    problems = []
    for number in range(count):
        kind = list(DRAWERS)[number % len(DRAWERS)]
        for name, rng in generators.items():
            problem = DRAWERS[kind](rng)
            problems.append({"name": f"{name}-{number:02}-{kind}", "set": name, "kind": kind} | problem)
    return problems


#
# Here: kernels and estimates
#


def expect(problem: dict) -> list[str]:
    """What tells the planner the lengths that the launch will have; nothing where it knows them."""
    lengths = problem.get("queries", problem.get("keys"))
    return [] if lengths is None else ["--expected-keys=" + ",".join(map(str, lengths))]


def compile_one(options: argparse.Namespace, problem: dict, schedule: str) -> dict | None:
    """The kernel of a schedule, or of the planner's choice; nothing where it has no plan."""
    file = f"{problem['name']}-{schedule or 'planned'}.attn"
    done = subprocess.run(
        [options.build / "bin/attn-compile", *problem["flags"], f"--chip={options.chip}",
         *(expect(problem) if options.expected else []),
         f"--board={options.board}", *[f"--schedule={schedule}"] * bool(schedule), "--no-shipped-plans",
         f"--bundle={options.make / file}", f"--bundle-chips={options.cubin}",
         r"--remarks-filter=attn\.(plan|split)", "-o", "/dev/null"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    plan = re.search(r"plan for \S+: (#attn\.(\w+)<[^>]*>).* microseconds=([\d.]+)", done.stderr)
    if done.returncode or not plan:
        return None
    estimate = float(plan[3])
    if split := re.search(r"even-microseconds=([\d.]+).*uneven-microseconds=([\d.]+)", done.stderr):
        estimate = float(split[1] if problem.get("even", True) else split[2])
    return {
        "file": file, "plan": plan[1], "schedule": plan[2], "is_planned": not schedule,
        "estimate_us": estimate,
    }  # fmt: skip


def make(options: argparse.Namespace) -> int:
    options.make.mkdir(parents=True, exist_ok=True)
    listing = options.make / "costs.json"
    known = {}
    if listing.exists():
        known = {each["name"]: each for each in json.loads(listing.read_text(encoding="utf-8"))["problems"]}
    drawn = [each for each in draw(options.count, options.seed) if options.set in ("", each["set"])]
    problems = [known.get(each["name"], each) for each in drawn]
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        jobs_of = {
            problem["name"]: [pool.submit(compile_one, options, problem, each) for each in ("", *SCHEDULES)]
            for problem in problems
            if "kernels" not in problem
        }
        for problem in problems:
            if "kernels" in problem:
                continue
            jobs = jobs_of[problem["name"]]
            if time.monotonic() - start > options.limit:
                for job in jobs:
                    job.cancel()
                continue
            problem["kernels"] = [kernel for job in jobs if (kernel := job.result())]
            if not problem["kernels"]:
                print(f"{problem['name']}: no plan")
                continue
            # The same plan twice is one kernel.
            planned = problem["kernels"][:1]
            problem["kernels"] = planned + [
                each for each in problem["kernels"][1:] if each["plan"] != planned[0]["plan"]
            ]
            done = [each for each in problems if "kernels" in each]
            listing.write_text(
                json.dumps({"board": options.board, "problems": done}, indent=1), encoding="utf-8"
            )
            print(f"{problem['name']}: {len(problem['kernels'])} kernels", flush=True)
    for path in options.make.glob("*.attn"):
        if not any(path.name == each["file"] for problem in problems for each in problem.get("kernels", ())):
            path.unlink()
    return 0


#
# There: times
#


def resolve_strides(record: dict) -> None:
    """Writes the strides of an own, fused tensor where the launch decides them: q, k and v are
    slices of its heads, and results have the queries' heads alone."""
    views = {each["name"]: each for each in record["tensors"]}
    heads = sum(views[name]["shape"][1] for name in ("q", "k", "v"))
    for view in views.values():
        if min(view["strides"]) >= 0:
            continue
        _, own, rows, columns = view["shape"]
        row = (heads if view["access"] == "read" else own) * columns
        view["strides"] = [rows * row, columns, row, 1]


def make_inputs(problem: dict, record: dict) -> list[dict]:
    """Sets of inputs of a launch record, more than L2 holds twice."""
    import torch
    from attn.tuning import timing

    ints = {"i32": torch.int32, "i64": torch.int64}
    views = {each["name"]: each for each in record["tensors"]}
    size = sum(
        2 * math.prod(each["shape"])
        for each in views.values()
        if each["access"] == "read" and each["dtype"] not in ints
    )
    made = []
    for _ in range(min(16, max(2, -(-timing._SET_BYTES // max(size, 1))))):
        tensors = {}
        for name, view in views.items():
            if view["access"] != "read":
                continue
            if view["dtype"] not in ints:
                tensors[name] = timing._make(view, lambda t: t.copy_(torch.randn(t.shape, device="cuda")))
                continue
            if name == "cu_seqlens_k":
                values = torch.tensor([0, *problem.get("packed_keys", problem["queries"])]).cumsum(0)
            elif name == "cu_seqlens_q":
                values = torch.tensor([0, *problem["queries"]]).cumsum(0)
            elif name == "kv_lengths":
                values = torch.tensor(problem["keys"])
            elif name == "page_table":
                pages = torch.randperm(views["k"]["shape"][0])
                values = pages[: math.prod(view["shape"])].reshape(view["shape"])
            else:
                raise ValueError(f"expected a known tensor of integers, got {name}")
            tensors[name] = values.to(dtype=ints[view["dtype"]], device="cuda").contiguous()
        made.append(tensors)
    return made


def time_problem(problem: dict, folder: pathlib.Path, seconds: float) -> None:
    """Fills in what each kernel takes, or why it is not to be trusted."""
    import torch
    from attn import runtime
    from attn.tuning import candidates, timing

    contestants: list = []
    sets: list[dict] = []
    outputs: dict = {}
    first: dict | None = None
    for entry in problem["kernels"]:
        kernel = runtime.load(folder / entry["file"])
        record = copy.deepcopy(kernel.launch_record)
        resolve_strides(record)
        written = [each for each in record["tensors"] if each["access"] != "read"]
        if not sets:
            sets = make_inputs(problem, record)
            outputs = {each["name"]: timing._make(each, lambda t: t.fill_(math.nan)) for each in written}
        for tensor in outputs.values():
            tensor.fill_(math.nan)

        def call(index: int, kernel: runtime.LoadedKernel = kernel) -> dict:
            kernel(**sets[index], **outputs)
            return outputs

        try:
            call(0)
            torch.cuda.synchronize()
            first = first or {name: tensor.clone() for name, tensor in outputs.items()}
            dtypes = {each["name"]: each["dtype"] for each in written}
            entry["error"] = timing.compare(outputs, first, dtypes)
            own = candidates.Candidate(entry["file"], entry["plan"], entry["estimate_us"])
            contestant = timing._Contestant(own)
            contestant.capture(call, len(sets))
            contestants.append((entry, contestant))
        except (RuntimeError, ValueError) as error:
            entry["error"] = str(error).split("\n")[0][:160]
    for turn in range(3):
        for entry, contestant in reversed(contestants) if turn % 2 else contestants:
            contestant.run_for(seconds)
            entry["measured_us"] = 1000 * contestant.median()


def run(options: argparse.Namespace) -> int:
    import torch

    data = json.loads((options.run / "costs.json").read_text(encoding="utf-8"))
    known = {}
    if options.json.exists():
        known = {
            each["name"]: each for each in json.loads(options.json.read_text(encoding="utf-8"))["problems"]
        }
    done, start = list(known.values()), time.monotonic()
    for problem in data["problems"]:
        if problem["name"] in known or time.monotonic() - start > options.limit:
            continue
        try:
            time_problem(problem, options.run, options.seconds)
        except (RuntimeError, ValueError) as error:
            print(f"{problem['name']}: {error}", file=sys.stderr)
            continue
        finally:
            torch.cuda.empty_cache()
        done.append(problem)
        results = {"board": torch.cuda.get_device_name(), "problems": done}
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
        texts = [f"{each['schedule']} {each.get('measured_us', 0):.1f}" for each in problem["kernels"]]
        print(f"{problem['name']}: {', '.join(texts)}", flush=True)
    return 0 if len(done) == len(data["problems"]) else 1


#
# Here: what it says
#


def name_scales(problem: dict, kernel: dict) -> list[str]:
    return [f"{kind}.{kernel['schedule']}" for kind in ("time", *problem["scales"])]


def fit(problems: list[dict], known: set[str]) -> tuple[dict[str, float], dict[str, float]]:
    """Scales by least squares of logarithms, one after the other, and their residuals."""
    cells = [
        (name_scales(problem, kernel), math.log(kernel["measured_us"] / kernel["estimate_us"]))
        for problem in problems
        for kernel in problem["kernels"]
    ]
    names = sorted({name for scales, _ in cells for name in scales} & known)
    logs = dict.fromkeys(names, 0.0)
    hold = 1.0  # a scale that few cells ask for stays near 1
    for _ in range(200):
        for name in names:
            rest = [
                error - sum(logs.get(other, 0) for other in scales if other != name)
                for scales, error in cells
                if name in scales
            ]
            logs[name] = sum(rest) / (len(rest) + hold)
    residuals = {}
    for name in names:
        squares = [
            (error - sum(logs.get(other, 0) for other in scales)) ** 2
            for scales, error in cells
            if name in scales
        ]
        residuals[name] = math.sqrt(sum(squares) / len(squares))
    return {name: math.exp(value) for name, value in logs.items()}, residuals


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def weigh(problems: list[dict], scales: dict[str, float] | None) -> tuple[list[float], list[float]]:
    """How far off estimates are, and what the choice costs. Without scales the planner's
    choice counts, with them that of the schedule with the least estimate."""
    errors, ratios = [], []
    for problem in problems:
        best = min(kernel["measured_us"] for kernel in problem["kernels"])
        estimates = []
        for kernel in problem["kernels"]:
            estimate = kernel["estimate_us"]
            for name in name_scales(problem, kernel) if scales else ():
                estimate *= scales.get(name, 1)
            ratio = estimate / kernel["measured_us"]
            errors.append(max(ratio, 1 / ratio))
            estimates.append((estimate, kernel))
        taken = next((kernel for kernel in problem["kernels"] if kernel["is_planned"]), None)
        if scales or taken is None:
            taken = min(estimates, key=lambda each: each[0])[1]
        ratios.append(taken["measured_us"] / best)
    return errors, ratios


def describe(problems: list[dict], scales: dict[str, float] | None) -> str:
    errors, ratios = weigh(problems, scales)
    return (
        f"{len(problems):>3} problems, {len(errors):>3} kernels: estimates off {statistics.median(errors):.2f} "
        f"(p95 {percentile(errors, 0.95):.2f}), taken / best {statistics.geometric_mean(ratios):.3f} "
        f"(p95 {percentile(ratios, 0.95):.2f})"
    )


#: What the page's two tables say: what the planner knows of lengths.
CAPTIONS = ("lengths that the planner does not know", "lengths that the planner expects (`--expected`)")


def write_page(problems: list[dict], board: str, expected: bool) -> None:
    """Writes one of the two tables of the problems that no scale was fitted to, and leaves the
    other one and the file's other sections as they are."""
    section = results_util.make_section(
        "Estimates beside measured times", board, time.strftime("%Y-%m-%d"),
        "benchmarks/plan-costs.py --report costs.json --page",
    )  # fmt: skip
    rows = []
    for kind in (*DRAWERS, ""):
        chosen = [each for each in problems if each["set"] == "fresh" and kind in ("", each["kind"])]
        if not chosen:
            continue
        errors, ratios = weigh(chosen, None)
        figures = [statistics.median(errors), percentile(errors, 0.95), statistics.geometric_mean(ratios)]
        rows.append(
            [TITLES.get(kind, "all"), len(chosen), len(errors)]
            + [f"{each:.2f}" for each in (*figures, percentile(ratios, 0.95))]
        )
    columns = ["problems", "number", "kernels", "estimate off, median", "95th percentile"]
    columns += ["taken / best, mean", "95th percentile"]
    path = results_util.RESULTS / "plan-costs.json"
    contents = json.loads(path.read_text(encoding="utf-8"))
    known = next(each for each in contents["sections"] if each["id"] == section["id"])
    table = {"caption": CAPTIONS[expected], "columns": columns, "rows": rows}
    tables = [each for each in known["tables"] if each["caption"] != table["caption"]] + [table]
    section["tables"] = sorted(tables, key=lambda each: CAPTIONS.index(each["caption"]))
    section["notes"] = known["notes"]
    known.update(section)
    path.write_text(results_util.to_text(contents), encoding="utf-8")


def report(options: argparse.Namespace) -> int:
    path = ROOT / f"lib/Planner/Data/calibration-{options.board}.json"
    calibration = json.loads(path.read_text(encoding="utf-8"))
    known = {factor["name"] for factor in calibration["factors"]}
    problems = json.loads(options.report.read_text(encoding="utf-8"))["problems"]
    for problem in problems:
        wrong = [each for each in problem["kernels"] if each.get("error") or not each.get("measured_us")]
        for kernel in wrong:
            print(f"{problem['name']}: {kernel['plan']}: {kernel.get('error') or 'not timed'}")
        problem["kernels"] = [each for each in problem["kernels"] if each not in wrong]
    problems = [problem for problem in problems if problem["kernels"]]
    if not problems:
        print("expected problems with times, got none")
        return 1
    known = {name for name in known if name.startswith(tuple(options.scales.split(",")))}
    scales, residuals = fit([each for each in problems if each["set"] == "fit"], known)
    for title, own in (("as they are", None), ("fitted", scales)):
        for name in ("fit", "fresh"):
            of_set = [problem for problem in problems if problem["set"] == name]
            for kind in (*DRAWERS, ""):
                chosen = [problem for problem in of_set if kind in ("", problem["kind"])]
                if chosen:
                    print(f"{title:<11} {name:<5} {kind or 'all':<6} {describe(chosen, own)}")
    if options.page:
        write_page(problems, options.board.upper(), options.expected)
    for name, value in sorted(scales.items()):
        print(f"{name:<18} {value:.3f}, residual {residuals[name]:.3f}")
    if options.write:
        for factor in calibration["factors"]:
            if factor["name"] in scales:
                # Estimates have the scales of now.
                factor["value"] = round(factor["value"] * scales[factor["name"]], 3)
                factor["residual"] = round(residuals[factor["name"]], 3)
                factor.pop("note", None)
        head = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in calibration.items() if k != "factors"]
        rows = ",\n".join(f"  {json.dumps(factor)}" for factor in calibration["factors"])
        path.write_text(
            "{\n" + ",\n".join(head) + ',\n "factors": [\n' + rows + "\n ]\n}\n", encoding="utf-8"
        )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--make", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--run", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--report", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path("costs.json"))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chip", default="sm_90a")
    parser.add_argument("--board", default="h200")
    parser.add_argument("--expected", action="store_true", help="tell the planner the lengths")
    parser.add_argument("--set", choices=("", "fit", "fresh"), default="", help="problems of this set alone")
    parser.add_argument("--cubin", default="sm_90a")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--limit", type=float, default=float("inf"))
    parser.add_argument("--scales", default="", metavar="PREFIX,...")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.make:
        return make(options)
    if options.run:
        return run(options)
    if options.report:
        return report(options)
    parser.error("expected --make, --run or --report, got none")
    return 2


if __name__ == "__main__":
    sys.exit(main())
