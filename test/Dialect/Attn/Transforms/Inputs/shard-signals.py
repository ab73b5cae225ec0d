"""Kernels for each way in which roles of a channel signal to each other in a
cluster, of which attn-shard-cga makes loads multicasts where it may.

usage: shard-signals.py ATTN-OPT

attn-lower-channels takes each kernel, after attn-shard-cga too. Prints how many
loads the CTAs share, and why others are not shared.
"""

import itertools
import re
import subprocess
import sys

SLOT = "!attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>"
MAP = "!attn.tensor_map<64x64xf16, swizzle = 128>"


def role_ops(channel, role, signal, leader, row):
    """What a partition does as a role of a channel."""
    use = [f"%i_{channel}, %t_{channel} = attn.channel.acquire %{channel}"
           f'[%c_{channel}] as "{role}" : !attn.channel<2>']
    if signal == "tx":
        use.append(f"attn.tma.load %map_{role}[{row}, %zero], %slot_{channel} "
                   f"token %t_{channel} : {MAP}, {SLOT}")
    use.append(f'attn.channel.release %{channel}, %t_{channel} as "{role}" : '
               "!attn.channel<2>")
    if leader:
        use = ["attn.cluster_leader {"] + use + ["}"]
    start = (f'%c_{channel} = attn.cursor.start %{channel} as "{role}" : '
             "!attn.channel<2>")
    lines = [start] + use
    return lines if signal == "arrive" else ["attn.elect {"] + lines + ["}"]


def make_kernel(channels, leader, coordinate):
    """A kernel of two CTAs; channels: lists of (role, signal). Each role that
    loads has a map of its own."""
    row = "%rank" if coordinate == "own" else "%zero"
    partitions = {}
    head = []
    for index, roles in enumerate(channels):
        name = f"k{index}"
        text = ", ".join(f'#attn.role<"{role}", {signal}>'
                         for role, signal in roles)
        head.append(f"%slot_{name} = attn.alloc {{name = \"{name}\"}} : {SLOT}")
        head.append(f'%{name} = attn.channel.create {{name = "{name}", roles = '
                    f"[{text}]}} : !attn.channel<2>")
        for role, signal in roles:
            partitions.setdefault(role, []).extend(
                role_ops(name, role, signal, role == leader, row))
    body = "\n".join(
        f'partition "{role}" warps 4 registers 24 {{\n' +
        "\n".join(ops) + "\n}" for role, ops in partitions.items())
    maps = ", ".join(f"%map_{role}: {MAP}" for role in partitions)
    return f"""gpu.module @kernels {{
gpu.func @kernel({maps}) kernel attributes {{known_cluster_size = array<i32: 2, 1, 1>}} {{
%zero = arith.constant 0 : i32
%id = gpu.cluster_block_id x
%rank = arith.index_cast %id : index to i32
{chr(10).join(head)}
attn.warp_specialize
{body}
gpu.return
}}
}}
"""


def run(attn_opt, passes, text):
    done = subprocess.run(
        [attn_opt, f"--pass-pipeline=builtin.module({passes})",
         "--remarks-filter=attn.shard-cga"],
        input=text, capture_output=True, text=True)
    return done.returncode == 0, done.stdout, done.stderr


LOWER = "gpu.module(attn-verify-tokens,attn-lower-channels)"
LOAD = ("load", "tx")


def rows():
    """Rows of the table: a name and the arguments of make_kernel."""
    signals = ("arrive", "commit", "tx")
    cycles = [[LOAD, ("use", a)] for a in signals]
    cycles += [[LOAD, ("pass", a), ("use", b)]
               for a, b in itertools.product(signals, repeat=2)]
    for roles in cycles:
        yield "-".join(signal for _, signal in roles), ([roles], None, "same")
    # Of one CTA's roles only this one is after another that may signal to it.
    yield ("tx-arrive-arrive, the last one the leader's",
           ([[LOAD, ("pass", "arrive"), ("use", "arrive")]], "use", "same"))
    # Two channels whose loads have one map.
    for a, b in itertools.product(("arrive", "commit"), repeat=2):
        channels = [[LOAD, ("use", a)], [LOAD, ("use", b)]]
        yield f"one map, tx-{a} and tx-{b}", (channels, None, "same")
    yield ("own rows, tx-arrive",
           ([[LOAD, ("use", "arrive")]], None, "own"))


def main():
    attn_opt = sys.argv[1]
    failures = 0
    for name, arguments in rows():
        text = make_kernel(*arguments)
        alone, _, why = run(attn_opt, LOWER, text)
        shared, _, later = run(attn_opt, "attn-shard-cga," + LOWER, text)
        if not alone:
            print(f"{name}: refused: {why}")
            failures += 1
        elif not shared:
            print(f"{name}: refused after attn-shard-cga: {later}")
            failures += 1
        else:
            _, sharded, remarks = run(attn_opt, "attn-shard-cga", text)
            reasons = re.findall(r'Reason="([^"]*)"', remarks)
            print(f"{name}: {sharded.count('multicast = 2')} multicasts",
                  *reasons, sep="; ")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
