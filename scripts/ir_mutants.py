"""Wrong copies of a kernel at the barrier rung, one change each (mutate-ir.py)."""

import collections
import re

SYNC = re.compile(
    r"^\s*(?:%\S+ = )?(attn\.mbarrier\.(?:wait|arrive|expect_tx|init|fence_init)|attn\.fence\.proxy_async"
    r"|attn\.named_barrier|attn\.team_barrier|attn\.cluster_barrier|attn\.turn\.\w+|attn\.wgmma\.wait|attn\.tma\.wait"
    r"|attn\.tma\.commit|attn\.cp_async\.(?:wait|commit|arrive)|gpu\.barrier|attn\.tcgen05\.(?:commit|fence)"
    r"|attn\.tmem\.(?:wait|store_wait|reserve|dealloc))\b"
)
ACCESS = re.compile(
    r"^\s*(?:%\S+ = )?attn\.(wgmma|tma\.load|tma\.store|local_\w+|scalar_\w+|cp_async|mma|copy_out"
    r"|tcgen05\.mma|tmem\.load|tmem\.store)\b"
)
#: On the channel rung (mutate-channels.py).
CHANNEL = re.compile(
    r"^\s*(?:%\S+ = |%\S+, %\S+ = )?(attn\.channel\.(?:acquire|release)|attn\.cursor\.advance|attn\.wgmma\.wait|attn\.tma\.wait)\b"
)
#: Stops whoever comes to it: a kernel that is none the worse for it never comes there.
TRAP = '"llvm.intr.trap"() : () -> ()'
#: The name of a mutant, its line (from 1, 0 for the kernel itself), its text, and the kernel with a
#: trap in that place.
Mutant = collections.namedtuple("Mutant", "name line text probe")

XOR = ["%mutant_c = arith.constant 1 : i32", "%mutant = arith.xori VALUE, %mutant_c : i32"]
ZERO = ["%mutant = arith.constant 0 : i32"]
MORE = ["%mutant_c = arith.constant 1 : i32", "%mutant = arith.addi VALUE, %mutant_c : i32"]
LESS = ["%mutant_c = arith.constant 1 : i32", "%mutant = arith.subi VALUE, %mutant_c : i32"]


def renumbered(line: str, key: str, change) -> str | None:
    """The line with another number in place of `key = N`."""
    match = re.search(rf"\b{key} = (\d+)", line)
    if not match:
        return None
    value = change(int(match.group(1)))
    return line[: match.start(1)] + str(value) + line[match.end(1) :] if value >= 0 else None


def with_operand(line: str, pattern: str, ops: list[str]) -> list[str] | None:
    """The line behind `ops`, which compute %mutant from the operand that `pattern` finds."""
    match = re.search(pattern, line)
    if not match:
        return None
    value = match.group(1)
    changed = line[: match.start(1)] + "%mutant" + line[match.end(1) :]
    return [op.replace("VALUE", value) for op in ops] + [changed]


def without(line: str, *names: str) -> str:
    """The line without these attributes."""
    match = re.search(r" \{([^{}]*)\}", line)
    if not match:
        return line
    kept = [each for each in match.group(1).split(", ") if each.split(" = ")[0] not in names]
    return line[: match.start()] + (f" {{{', '.join(kept)}}}" if kept else "") + line[match.end() :]


def cluster_changes(line: str, size: int) -> list[tuple[str, list[str]]]:
    """Signals to all CTAs of a cluster, or to some, become signals to the own one, and the other way
    round; those to a leader of some become signals to that of others."""
    found = []
    if re.search(r"[{ ]ctas = ", line):
        found.append(("own CTA for all", [without(line, "ctas", "rank_bits")]))
    elif size > 1 and "attn.mbarrier.arrive" in line and "{" not in line:
        found.append(("all CTAs for own", [re.sub(r" : <", f" {{ctas = {size} : i64}} : <", line)]))
    if re.search(r"[{ ]leader\b", line):
        found.append(("own CTA for leader", [without(line, "leader", "rank_bits")]))
        if size > 2:
            bits = [f"rank_bits = {other} : i64" for other in range(1, size)]
            now = re.search(r"rank_bits = \d+ : i64", line)
            found += [
                (f"leader of {other} for that of others", [line.replace(now.group(0), other)])
                for other in bits if now and other != now.group(0)
            ]  # fmt: skip
    if " {cluster}" in line:
        found.append(("wait of the CTA alone", [line.replace(" {cluster}", "")]))
    return found


def changes_of(line: str, size: int) -> list[tuple[str, list[str]]]:
    """What becomes of one line."""
    found = []
    if " = " not in line.split("attn.")[0]:
        found += [("double", [line, line]), ("delete", [])]
    for key, name, change in (
        ("count", "count + 1", lambda n: n + 1),
        ("count", "count - 1", lambda n: n - 1),
        ("bytes", "half the bytes", lambda n: n // 2),
        ("threads", "threads + 32", lambda n: n + 32),
        ("threads", "threads - 32", lambda n: n - 32),
        ("pending", "pending + 1", lambda n: n + 1),
        ("pending", "pending - 1", lambda n: n - 1),
    ):
        if changed := renumbered(line, key, change):
            found.append((name, [changed]))
    if "parity" in line and (lines := with_operand(line, r"parity (%\w+)", XOR)):
        found.append(("other parity", lines))
    signals = re.search(r"mbarrier\.|tcgen05\.commit|cp_async\.arrive", line)
    if signals and (lines := with_operand(line, r"\[(%\w+)\]", ZERO)):
        found.append(("slot 0", lines))
    return found + cluster_changes(line, size)


def peers_of(text: str) -> dict[str, list[str]]:
    """Other mbarriers of the same number of slots, by name."""
    sizes = dict(re.findall(r"(%\S+) = attn\.mbarrier\.alloc .*: <(\d+)>", text))
    return {name: [n for n in sizes if n != name and sizes[n] == sizes[name]] for name in sizes}


def depth_changes(lines: list[str]) -> list[tuple[int, list[tuple[int, list[str]]]]]:
    """Cursors that turn one slot too early: where a cursor's slot is compared with the depth, and
    what is put in place of that line and of the one that turns slot and parity."""
    found = []

    def constant(name: str, before: int) -> int:
        """The constant that `name` stands for, by its last definition; 0 for none."""
        for line in reversed(lines[:before]):
            if match := re.match(rf"\s*{re.escape(name)} = arith\.constant (\d+) : i32", line):
                return int(match.group(1))
        return 0

    for number, line in enumerate(lines):
        if not (match := re.match(r"\s*%\S+ = arith\.cmpi eq, %\S+, (%\w+) : i32", line)):
            continue
        depth = constant(match.group(1), number)
        for behind in range(number + 1, min(number + 4, len(lines))):
            turn = re.match(r"\s*%\S+ = arith\.xori %\S+, (%\w+) : i32", lines[behind])
            if depth < 2 or not turn or constant(turn.group(1), behind) != (depth | 1 << 16):
                continue
            small = [f"%mutant_d = arith.constant {depth - 1} : i32",
                     line.replace(f", {match.group(1)} :", ", %mutant_d :")]  # fmt: skip
            wrap = [f"%mutant_x = arith.constant {depth - 1 | 1 << 16} : i32",
                    lines[behind].replace(f", {turn.group(1)} :", ", %mutant_x :")]  # fmt: skip
            found.append((number, [(number, small), (behind, wrap)]))
    return found


def move(lines: list[str], number: int, step: int, sync: re.Pattern = SYNC) -> tuple[int, list[str], int] | None:
    """A line moved past the next op (`step` 1) or the last one (-1) that synchronises or touches
    memory: where the change begins, what stands there, and in place of how many lines."""
    indent = len(lines[number]) - len(lines[number].lstrip())
    other = number + step
    while 0 <= other < len(lines):
        near = lines[other]
        depth = len(near) - len(near.lstrip())
        if depth < indent or near.lstrip().startswith("}"):
            return None
        if depth == indent and (sync.match(near) or ACCESS.match(near)):
            low, high = min(number, other), max(number, other)
            between = lines[low + 1 : high]
            moved = (
                [*between, lines[high], lines[low]] if step == 1
                else [lines[high], lines[low], *between]
            )  # fmt: skip
            return low, moved, high - low + 1
        other += step
    return None


def mutants_of(text: str) -> list[Mutant]:
    lines = text.split("\n")
    mutants = []
    size = re.search(r"known_cluster_size = array<i32: (\d+)", text)
    cluster = int(size.group(1)) if size else 1
    peers = peers_of(text)

    def add(name: str, number: int, new: list[str], begin: int = -1, count: int = 1) -> None:
        begin = number if begin < 0 else begin
        body = lines[:begin] + new + lines[begin + count :]
        probe = [*lines[:number], TRAP, *lines[number:]]
        mutants.append(Mutant(name, number + 1, "\n".join(body), "\n".join(probe)))

    for number, changes in depth_changes(lines):
        (first, small), (last, wrap) = changes
        add("depth - 1", number, [*small, *lines[first + 1 : last], *wrap], first, last - first + 1)
    for number, line in enumerate(lines):
        if "scf.for" in line and "to %" in line and "iter_args" in line:
            for name, ops in (("one more trip", MORE), ("one trip less", LESS)):
                if new := with_operand(line, r"to (%\S+)", ops):
                    add(name, number, new)
        if "attn.cluster_leader" in line and line.rstrip().endswith("{"):
            all_ctas = ["%mutant = arith.constant true", re.sub(r"attn\.cluster_leader.*", "scf.if %mutant {", line)]
            add("all CTAs for the leader", number, all_ctas)
        if "attn.tma.load" in line and re.search(r"[{ ]leader\b", line):
            add("bytes at the own CTA", number, [without(line, "leader")])
        if re.search(r"= attn\.slot %", line) and (new := with_operand(line, r"\[(%\w+)\]", ZERO)):
            add("data of slot 0", number, new)
        if not SYNC.match(line):
            continue
        for name, new in changes_of(line, cluster):
            add(name, number, new)
        barrier = re.search(r"(%\w+\.\w+)\[", line)
        for peer in peers.get(barrier.group(1), [])[:2] if barrier else ():
            add(f"{peer} for {barrier.group(1)}", number, [line.replace(barrier.group(1) + "[", peer + "[")])
        for step, name in ((1, "behind the next"), (-1, "before the last")):
            if moved := move(lines, number, step):
                add(name, number, moved[1], moved[0], moved[2])
    return mutants
