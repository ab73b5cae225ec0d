#!/usr/bin/env python3
"""Compares kernels of random masks with and without attn-read-masks.

Each case is a problem with a random mask_mod: conjunctions and disjunctions of
comparisons of query, key, batch, head, constants, captured tensors and scalars, with
quotients, remainders, minima and absolute values, some beside a mask, packed sequences,
lengths or a score_mod. It is compiled twice under one plan, with the pass and without,
and simulated on the same inputs; once where the pass finds nothing. Outputs have to be
equal to the bit, or under plans that bet as near as rounding allows, and the kernel with
the pass must not multiply more. Where documents are the mask a third kernel of the same plan
has tiles that begin with them.

usage: scripts/mask-forms.py [options]
  --count=N        cases (default 1000)
  --seed=N         what they are drawn from (default 0)
  --case=N         this case alone, whose files are kept
  --workers=N      processes at once (default 2)
  --limit=SECONDS  begins no case later than that
  --compile=PATH   attn-compile (default: build/bin, then PATH)
  --simulate=PATH  attn-sim (default: beside attn-compile)
  --keep=FOLDER    where the files of cases go that differ
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

#: Chip, schedule and what is fixed of its plan. Policies that bet on a block's maximum
#: (optimistic) do so where a block needs no test, so that their bits follow the phases of
#: the loop. Those that keep a maximum while no row of a warp has grown a lot (threshold)
#: look at rows beyond the last query too, so that their queries fill whole tiles. First
#: blocks of fewer keys are for bounds that the compiler knows.
PLANS = [
    ("sm_80", "split_q", "warps=1,block_m=16,block_n=32,softmax=exact"),
    ("sm_80", "split_q", "block_m=64,block_n=64,softmax=exact"),
    ("sm_80", "split_q", "warps=2,block_m=32,block_n=32,softmax=exact"),
    ("sm_80", "tiled_d", "block_n=64,softmax=exact"),
    ("sm_90a", "ws_wgmma", "block_m=128,block_n=64,softmax=exact,first_block=whole"),
    ("sm_90a", "ws_wgmma", "block_m=64,block_n=64,softmax=exact,first_block=whole"),
    ("sm_90a", "ws_wgmma", "block_m=128,block_n=64,softmax=optimistic,first_block=whole"),
    ("sm_90a", "self_load", "softmax=exact"),
    ("sm_90a", "ws_pair", "softmax=threshold"),
    ("sm_100a", "ws_tmem", "softmax=threshold"),
    ("sm_80", "decode", "softmax=exact,warps=1"),
]


class Masks:
    """Draws the text of a mask_mod."""

    def __init__(self, draw, batch, heads, queries, keys):
        self.draw, self.heads, self.queries, self.keys = draw, heads, queries, keys
        self.batch = batch
        self.lines = []
        self.count = 0
        #: Captured memrefs by name: shape and numbers.
        self.captures = {}

    def emit(self, text):
        self.count += 1
        name = f"%x{self.count}"
        self.lines.append(f"    {name} = {text}")
        return name

    def constant(self, value):
        return self.emit(f"arith.constant {value} : i32")

    def element(self, shape, indices, values, kind="i32"):
        """An element of a tensor, as i32."""
        name = f"%t{len(self.captures)}"
        type = "memref<" + "".join(f"{extent}x" for extent in shape) + f"{kind}>"
        self.captures[name] = (type, shape, kind, values)
        places = ", ".join(self.emit(f"arith.index_cast {i} : i32 to index") for i in indices)
        value = self.emit(f"memref.load {name}[{places}] : {type}")
        if kind == "i64":
            return self.emit(f"arith.trunci {value} : i64 to i32")
        return self.emit(f"arith.extsi {value} : {kind} to i32") if kind == "i8" else value

    def length(self):
        """A number of each batch or head, at times one that no sum bears."""
        most = self.keys + 20
        values = lambda count: [
            self.draw.choice([2**31 - 1, -(2**31), -1]) if self.draw.random() < 0.08
            else self.draw.randint(-10, most) for _ in range(count)]
        form = self.draw.random()
        if form < 0.6:
            return self.element([self.batch], ["%b"], values(self.batch))
        if form < 0.7:
            return self.element([self.batch], ["%b"], values(self.batch), "i64")
        if form < 0.8:
            small = [self.draw.randint(-100, 127) for _ in range(self.heads)]
            return self.element([self.heads], ["%h"], small, "i8")
        return self.element([self.batch, self.heads], ["%b", "%h"], values(self.batch * self.heads))

    def query(self):
        """A number that depends on no key."""
        form = self.draw.random()
        if form < 0.5:
            return "%i"
        if form < 0.65:
            return self.emit(f"arith.addi %i, {self.constant(self.draw.randint(-80, 80))} : i32")
        if form < 0.75:
            return self.constant(self.draw.randint(-5, self.keys + 5))
        if form < 0.9:
            return self.length()
        if form < 0.95:
            return self.emit(f"arith.addi %i, {self.length()} : i32")
        op = self.draw.choice(["minsi", "maxsi"])
        return self.emit(f"arith.{op} %i, {self.constant(self.draw.randint(0, self.queries))} : i32")

    def compare(self, x, y, predicates=("slt", "sle", "sgt", "sge", "eq")):
        return self.emit(f"arith.cmpi {self.draw.choice(predicates)}, {x}, {y} : i32")

    def causal(self):
        if self.draw.random() < 0.5:
            return self.emit("arith.cmpi sle, %j, %i : i32")
        return self.compare("%j", self.query(), ("slt", "sle"))

    def window(self):
        size = self.constant(self.draw.randint(0, 120))
        if self.draw.random() < 0.4:
            difference = self.emit("arith.subi %i, %j : i32")
            if self.draw.random() < 0.5:
                difference = self.emit(f"math.absi {difference} : i32")
            return self.emit(f"arith.cmpi sle, {difference}, {size} : i32")
        first = self.emit(f"arith.subi {self.query()}, {size} : i32")
        return self.compare("%j", first, ("sgt", "sge"))

    def chunk(self):
        """Equal quotients of a query and the key."""
        query, key = self.query(), "%j"
        if self.draw.random() < 0.3:
            left = self.length()
            query = self.emit(f"arith.subi %i, {left} : i32")
            key = self.emit(f"arith.subi %j, {left} : i32")
        if self.draw.random() < 0.5:
            by = self.constant(self.draw.randint(3, 7))
            op = "shrsi"
        else:
            by = self.constant(self.draw.choice([7, 24, 60, 100]))
            op = "floordivsi"
        x = self.emit(f"arith.{op} {query}, {by} : i32")
        y = self.emit(f"arith.{op} {key}, {by} : i32")
        return self.compare(y, x, ("eq", "eq", "eq", "sle", "sge", "ne"))

    def prefix(self):
        x = self.compare("%j", self.length(), ("slt", "sle"))
        y = self.emit("arith.cmpi sle, %j, %i : i32")
        return self.emit(f"arith.ori {x}, {y} : i1")

    def several(self):
        """A multiple of the key."""
        product = self.emit(f"arith.muli %j, {self.constant(self.draw.choice([2, 3, -2, 5]))} : i32")
        return self.compare(product, self.query())

    def documents(self):
        """Equal numbers of a query and a key, mostly in order."""
        extent = max(self.queries, self.keys)
        kind = self.draw.choice(["i32", "i32", "i64"])
        apart = self.draw.choice([1, 1, 2**20, 2**40 if kind == "i64" else 3])
        ids = [self.draw.randint(-1, 5) * apart for _ in range(extent * self.batch)]
        if self.draw.random() < 0.8:
            parts = [ids[b * extent:(b + 1) * extent] for b in range(self.batch)]
            ids = [number for part in parts for number in sorted(part)]
        name = f"%t{len(self.captures)}"
        type = f"memref<{self.batch}x{extent}x{kind}>"
        self.captures[name] = (type, [self.batch, extent], kind, ids)
        batch = self.emit("arith.index_cast %b : i32 to index")
        loads = []
        for place in ("%i", "%j"):
            index = self.emit(f"arith.index_cast {place} : i32 to index")
            loads.append(self.emit(f"memref.load {name}[{batch}, {index}] : {type}"))
        return self.emit(f"arith.cmpi eq, {loads[0]}, {loads[1]} : {kind}")

    def unknown(self):
        if self.draw.random() < 0.5:
            rest = self.emit(f"arith.remsi %j, {self.constant(self.draw.choice([2, 3]))} : i32")
            return self.compare(rest, self.constant(1), ("eq", "ne"))
        f = self.emit("arith.sitofp %j : i32 to f32")
        c = self.emit(f"arith.constant {self.draw.randint(1, self.keys)}.5 : f32")
        return self.emit(f"arith.cmpf olt, {f}, {c} : f32")

    def row(self):
        """A condition without the key."""
        x = self.draw.choice(["%i", "%h", "%b"])
        if x == "%i" and self.draw.random() < 0.3:
            x = self.emit(f"arith.remsi %i, {self.constant(5)} : i32")
        return self.compare(x, self.constant(self.draw.randint(0, self.queries)))

    def leaf(self):
        forms = [self.causal, self.window, self.chunk, self.prefix, self.several, self.row, self.unknown, self.documents]
        return self.draw.choices(forms, [5, 5, 4, 3, 1, 1, 1, 4])[0]()

    def tree(self, depth):
        form = self.draw.random()
        if depth == 0 or form < 0.3:
            return self.leaf()
        if form < 0.7:
            return self.emit(f"arith.andi {self.tree(depth - 1)}, {self.tree(depth - 1)} : i1")
        if form < 0.9:
            return self.emit(f"arith.ori {self.tree(depth - 1)}, {self.tree(depth - 1)} : i1")
        if form < 0.95:
            true = self.emit("arith.constant true")
            return self.emit(f"arith.xori {self.tree(depth - 1)}, {true} : i1")
        return self.emit(f"arith.select {self.leaf()}, {self.leaf()}, {self.leaf()} : i1")


class Case:
    def __init__(self, seed, number):
        draw = random.Random(f"{seed}.{number}")
        self.number = number
        self.chip, self.schedule, self.set = draw.choice(PLANS)
        few = self.schedule == "decode"
        batch = draw.choice([1, 2])
        kv_heads = draw.choice([1, 2])
        heads = kv_heads * draw.choice([1, 1, 2, 4] if few else [1, 1, 2])
        queries = draw.choice([1, 2, 4]) if few else draw.randint(1, 150)
        if "threshold" in self.set:
            queries = 256
        keys = draw.choice([queries, draw.randint(1, 230), draw.randint(1, 230)])
        if few:
            keys = draw.randint(1, 230)
        depth = 64
        kind = draw.choice(["f16", "bf16"])
        self.type = kind
        self.inputs = {}
        masks = Masks(draw, batch, heads, queries, keys)
        kept = masks.tree(draw.choice([0, 1, 1, 2, 2, 3]))
        arguments, clauses, attributes = [], "", []
        row = lambda n, h: f"memref<{batch}x{h}x{n}x{depth}x{kind}>"
        types = {"q": row(queries, heads), "k": row(keys, kv_heads), "v": row(keys, kv_heads),
                 "o": row(queries, heads)}
        lse = f"memref<{batch}x{heads}x{queries}xf32>"
        if draw.random() < 0.15 and not few and self.schedule in ("split_q", "ws_wgmma"):
            # Sequences of one tensor, which are as many as there are batches.
            cuts = lambda n: [0, *sorted(draw.randint(0, n) for _ in range(batch - 1)), n]
            for letter, count in (("q", queries), ("k", keys)):
                self.inputs[f"cu_seqlens_{letter}"] = ([batch + 1], "i32", cuts(count))
            row = lambda n, h: f"memref<1x{h}x{n}x{depth}x{kind}>"
            types = {"q": row(queries, heads), "k": row(keys, kv_heads), "v": row(keys, kv_heads),
                     "o": row(queries, heads)}
            lse = f"memref<1x{heads}x{queries}xf32>"
            cu = f"memref<{batch + 1}xi32>"
            arguments += [f"%cq: {cu}", f"%ck: {cu}"]
            clauses += f" cu_seqlens(%cq, %ck : {cu}, {cu})"
            attributes.append(f"max_seqlen_q = {queries} : i64")
        elif draw.random() < 0.15 and self.schedule in ("split_q", "decode"):
            arguments.append(f"%n: memref<{batch}xi32>")
            clauses += f" kv_lengths(%n : memref<{batch}xi32>)"
            self.inputs["kv_lengths"] = ([batch], "i32", [draw.randint(0, keys) for _ in range(batch)])
        if draw.random() < 0.3:
            align = draw.choice(["top_left", "bottom_right"])
            mask = draw.choice(["kind = causal", f"kind = window, left = {draw.randint(0, 90)}",
                                f"kind = window, left = {draw.randint(0, 90)}, right = {draw.randint(0, 90)}"])
            which, _, rest = mask.partition(", ")
            attributes.append(f"mask = #attn.mask<{which}, align = {align}{', ' + rest if rest else ''}>")
        score = ""
        if draw.random() < 0.15:
            score = ("score_mod {\n    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):\n"
                     "    %half = arith.constant 0.5 : f32\n    %r = arith.mulf %s, %half : f32\n"
                     "    attn.yield %r : f32\n  } ")
        for number, (name, (type, shape, element, values)) in enumerate(masks.captures.items()):
            arguments.append(f"{name}: {type}")
            # In the order of their first use, which is that of the tensors.
            self.inputs[f"capture{number}"] = (shape, element, values)
        given = ", ".join([f"%{name}: {type}" for name, type in types.items()] + [f"%lse: {lse}"] + arguments)
        body = "\n".join(masks.lines)
        self.head = (
            f"func.func @case({given}) {{\n"
            f"  attn.attention ins(%q, %k, %v : {types['q']}, {types['k']}, {types['v']}) "
            f"outs(%o, %lse : {types['o']}, {lse}){clauses} {score}mask_mod {{\n"
            f"    ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):\n{body}\n"
            f"    attn.yield {kept} : i1\n  }}")
        self.attributes = attributes

    def text(self, plan=None):
        attributes = self.attributes + ([f"plan = {plan}"] if plan else [])
        return f"{self.head} {{{', '.join(attributes)}}}\n  return\n}}\n"


def write_npy(path, shape, kind, values):
    codes = {"i32": ("<i4", "i"), "i64": ("<i8", "q"), "i8": ("|i1", "b")}
    descr, code = codes[kind]
    extents = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{code}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


#: How far results of plans that bet may be apart, of values of about 1 in size.
NEAR = {"f16": 2**-8, "bf16": 2**-5, "f32": 2**-8}


def read_numbers(path, kind):
    """The elements of a file of numpy."""
    data = path.read_bytes()
    data = data[10 + struct.unpack("<H", data[8:10])[0]:]
    if kind == "bf16":
        data = b"".join(b"\0\0" + data[at:at + 2] for at in range(0, len(data), 2))
    code = "e" if kind == "f16" else "f"
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def is_near(some, others, kind):
    """Whether files of numbers hold about the same; infinities and NaN are themselves."""
    return all(str(x) == str(y) or abs(x - y) <= NEAR[kind] * max(1, abs(y))
               for x, y in zip(read_numbers(some, kind), read_numbers(others, kind), strict=True))


def call(command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


#: What compilers say where tiles cannot begin with documents.
UNCUT = "for cut_documents"


def cut(plan):
    """The plan with tiles that begin with documents; nothing if it has none such."""
    if not plan.startswith("#attn.ws_wgmma<") or "pack_heads" in plan or "cluster" in plan:
        return None
    plan = re.sub(r", (order|first_block|epilogue) = \w+", "", plan)
    return plan.removesuffix(">") + ", order = longest_first, cut_documents = true>"


def sees_keys(lse):
    """True if any row of a file of LSEs has a key."""
    return any(value != float("-inf") for value in read_numbers(lse, "f32"))


def run(case, folder, compile, simulate):
    """What is wrong with a case, else nothing; then blocks less, and what was found."""
    problem = folder / "problem.mlir"
    problem.write_text(case.text())
    common = [f"--chip={case.chip}", "--no-split-keys", "--no-check-barriers"]
    plan_flags = [f"--schedule={case.schedule}"] + ([f"--set={case.set}"] if case.set else [])
    planned = call([compile, problem, *common, *plan_flags, "--no-read-masks", "--emit=plan"])
    if planned.returncode != 0:
        if "has no legal plan" in planned.stderr or "cannot be computed" in planned.stderr:
            return "refused", 0, 0, ""
        return f"no plan: {planned.stderr.strip()[:400]}", 0, 0, ""
    plan = re.search(r"plan = (#attn\.\w+<.*?>)[,}]", planned.stdout)
    plan = plan or re.search(r"plan = (#attn\.\w+)", planned.stdout)
    problem.write_text(case.text(plan[1]))
    ways = [("on", problem, ["--remarks-filter=attn.read-masks"]), ("off", problem, ["--no-read-masks"])]
    if cut(plan[1]):
        ways.append(("cut", folder / "cut.mlir", []))
        ways[-1][1].write_text(case.text(cut(plan[1])))
    files = []
    for name, (shape, kind, values) in case.inputs.items():
        write_npy(folder / f"{name}.npy", shape, kind, values)
    reports, outputs, remarks = [], [], ""
    for way, text, flags in ways:
        ptx, record = folder / f"{way}.ptx", folder / f"{way}.json"
        made = call([compile, text, *common, *flags, "-o", ptx, f"--launch-out={record}"])
        if way == "cut" and UNCUT in made.stderr:
            break
        if made.returncode != 0:
            return f"{way}: {made.stderr.strip()[:600]}", 0, 0, ""
        if way == "on":
            remarks = made.stderr
            if "[Passed]" not in remarks:
                return None, 0, 0, remarks
        names = {tensor["name"] for tensor in json.loads(record.read_text())["tensors"]}
        inputs = [f"--in={name}={folder / name}.npy" for name in case.inputs if name in names]
        outs = [folder / f"{way}-{name}.npy" for name in ("o", "lse")]
        checks = [] if way == "off" else ["--sanitize"]
        report = call([simulate, ptx, f"--launch={record}", "--seed=7", *checks, "--json", *inputs,
                       f"--out=o={outs[0]}", f"--out=lse={outs[1]}"])
        if report.returncode != 0:
            return f"{way}: simulation: {(report.stderr + report.stdout).strip()[:600]}", 0, 0, remarks
        reports.append(json.loads(report.stdout)["run"]["counters"]["mma_flops"])
        outputs.append(outs)
    on, off, *others = zip(outputs, reports)
    for way, (files, flops) in (("on", on), *(("cut", each) for each in others)):
        for kind, one, other in zip((case.type, "f32"), files, off[0]):
            bets = "optimistic" in case.set
            if one.read_bytes() != other.read_bytes() and not (bets and is_near(one, other, kind)):
                return f"{way}: outputs differ", *reports[:2], remarks
        # Of scores that no row sees LLVM drops the product where it can tell that, which is
        # without the pass: a mask and a range that contradict each other are two things.
        if flops > off[1] and sees_keys(off[0][1]):
            return f"{way}: {flops} multiplications, {off[1]} without the pass", *reports[:2], remarks
    return None, *reports[:2], remarks + "[cut]" * len(others)


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--case", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--compile")
    parser.add_argument("--simulate")
    parser.add_argument("--keep")
    options = parser.parse_args()
    if options.help:
        print(__doc__)
        return 0
    built = ROOT / "build/bin/attn-compile"
    compile = options.compile or (built if built.exists() else shutil.which("attn-compile"))
    if not compile:
        sys.exit("mask-forms.py: expected attn-compile in build/bin or PATH; --compile names it")
    simulate = options.simulate or pathlib.Path(compile).parent / "attn-sim"
    numbers = [options.case] if options.case is not None else range(options.count)

    end = time.monotonic() + options.limit if options.limit else None

    def one(number):
        if end and time.monotonic() > end:
            return None, None
        case = Case(options.seed, number)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            found = run(case, folder, compile, simulate)
            isWrong = found[0] not in (None, "refused")
            if options.keep and (isWrong or options.case is not None):
                target = pathlib.Path(options.keep) / f"case-{number}"
                shutil.copytree(folder, target, dirs_exist_ok=True)
        return case, found

    wrong, refused, fewer, moved, ranged, cuts, begun = 0, 0, 0, 0, 0, 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for case, found in pool.map(one, numbers):
            if not case:
                continue
            problem, less, all_flops, remarks = found
            begun += 1
            moved += "[Passed] mask" in remarks
            ranged += "[Passed] key-range" in remarks
            cuts += "[cut]" in remarks
            if problem == "refused":
                refused += 1
            elif problem:
                wrong += 1
                print(f"case {case.number} ({case.chip} {case.schedule} {case.set}): {problem}")
            fewer += less < all_flops
    ran = begun - refused
    print(f"{ran} masks, {refused} that no plan takes: {moved} moved bounds, {ranged} with a key_range, "
          f"{fewer} that multiply less, {cuts} with tiles of documents, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
