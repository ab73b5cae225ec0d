#!/usr/bin/env python3
"""The kernels for sm_90 on a Hopper GPU: what the simulator calls right has to be right there.

usage: on_gpu.py make FOLDER     compiles, where Triton is (no GPU)
       on_gpu.py run FOLDER      launches, where the GPU is (no Triton), and compares with numpy
"""

import json
import pathlib
import re
import sys
import types

import harness
import numpy as np

MODULES = ("scalars", "reductions", "matmuls", "attentions", "gluon_kernels")


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    index = []
    for module in MODULES:
        for case in __import__(module).cases():
            if 90 not in case.chips:
                continue
            compiled = harness.compile_case(case, 90)
            ptx, metadata = compiled.asm["ptx"], compiled.metadata
            (folder / f"{case.name}.cubin").write_bytes(compiled.asm["cubin"])
            cluster = re.search(r"\.reqnctapercluster (\d+)", ptx)
            ctas = int(cluster[1]) if cluster else 1
            size = metadata.global_scratch_size * int(np.prod(case.grid)) * ctas
            scratch = harness.empty(size, np.uint8) if size else np.uint64(0)
            args, places = harness.parameters(case, metadata, scratch)
            arrays, params = {}, []
            for arg in args:
                params.append(pack(arg, arrays))
            results = {}
            for number, expected in case.expected.items():
                value = case.args[number]
                inner = value.array if isinstance(value, harness.Descriptor) else value
                kind = inner.type if isinstance(inner, harness.Array) else ""
                arrays[f"expected{number}"] = np.asarray(expected)
                results[number] = {"place": places[number], "type": kind}
            np.savez_compressed(folder / f"{case.name}.npz", **arrays)
            index.append({
                "name": case.name, "kernel": re.search(r"\.entry ([\w$]+)", ptx)[1],
                "grid": [case.grid[0] * ctas, *case.grid[1:]], "cluster": ctas,
                "block": int(re.search(r"\.reqntid (\d+)", ptx)[1]), "shared": metadata.shared,
                "tolerance": case.tolerance, "params": params, "results": results,
            })  # fmt: skip
            print(case.name, flush=True)
    (folder / "index.json").write_text(json.dumps(index))


def pack(arg, arrays):
    """A parameter as JSON; its array goes into `arrays`."""
    if isinstance(arg, harness.TensorMap):
        fields = {"dims": arg.get_dims(), "strides": arg.get_strides(), "box": list(arg.box)}
        fields |= {"swizzle": arg.swizzle, "element": arg.get_element()}
        return {"map": fields, "array": pack(arg.array, arrays)}
    if isinstance(arg, harness.Empty):
        return {"empty": list(arg.shape), "dtype": arg.dtype.name}
    if isinstance(arg, np.ndarray) and arg.ndim:
        name = next((n for n, each in arrays.items() if each is arg), f"array{len(arrays)}")
        arrays[name] = arg
        return {"array": name}
    return {"raw": np.asarray(arg).tobytes().hex()}


def unpack(param, arrays):
    if "map" in param:
        fields = param["map"]
        return harness.TensorMap(
            unpack(param["array"], arrays), fields["box"], dims=fields["dims"], strides=fields["strides"],
            swizzle=fields["swizzle"], element=fields["element"],
        )  # fmt: skip
    if "empty" in param:
        return harness.empty(param["empty"], param["dtype"])
    if "array" in param:
        return arrays[param["array"]]
    raw = bytes.fromhex(param["raw"])
    return types.SimpleNamespace(tobytes=lambda: raw)


def run(folder):
    sys.path.insert(0, str(harness.ROOT / "test" / "Hardware"))
    from record import Gpu

    gpu, wrong = Gpu(), 0
    index = json.loads((folder / "index.json").read_text())
    for entry in index:
        arrays = dict(np.load(folder / f"{entry['name']}.npz"))
        args = [unpack(param, arrays) for param in entry["params"]]
        places = {result["place"]: result for result in entry["results"].values()}
        launch = types.SimpleNamespace(
            name=entry["name"], kernel=entry["kernel"], grid=tuple(entry["grid"]), block=entry["block"],
            cluster=entry["cluster"], shared=entry["shared"], args=args, compare=places,
        )  # fmt: skip
        outputs = gpu.run(launch, (folder / f"{entry['name']}.cubin").read_bytes(), 1)
        worst = 0.0
        for number, result in entry["results"].items():
            expected, raw = arrays[f"expected{number}"], outputs[result["place"]]
            value = harness.Array(raw, result["type"]) if result["type"] else raw
            case = harness.Case("", None, [value], {}, (1,), {0: expected})
            worst = max(worst, harness.error_of(case, 0, raw))
        good = worst <= entry["tolerance"]
        wrong += not good
        print(f"{entry['name']:32} {'error' if good else 'WRONG'} {worst:.1e}", flush=True)
    print(f"{len(index) - wrong} of {len(index)} kernels agree")
    return int(wrong != 0)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("make", "run"):
        sys.exit(__doc__)
    sys.exit(make(pathlib.Path(sys.argv[2])) if sys.argv[1] == "make" else run(pathlib.Path(sys.argv[2])))
