"""Bugs that chance draws: an operator of a table at a place of a function.

scripts/mutate-source.py --random plants them. A function is drawn first, then an operator
that it has a place for, then the place, so that long functions do not get all of them. The
same sources, seed and number give the same bugs.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import random
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "test/mutants-equivalent.toml"

# What bugs are drawn from, with the tests nearest to it and what these need built.
AREAS = {
    "lib/Analysis/": (
        ["unittests/Analysis", "test/Analysis", "test/Dialect/Attn/Transforms"],
        ["AttnAnalysisTests", "attn-opt", "attn-compile", "attn-sim", "attn-test-opt"],
    ),
    "lib/Simulator/Async/": (["unittests/Simulator", "test/Simulator"], ["AttnUnitTests", "attn-sim"]),
    "lib/Simulator/Sanitizer/": (["unittests/Simulator", "test/Simulator"], ["AttnUnitTests", "attn-sim"]),
    "lib/Simulator/Clocks/": (["unittests/Simulator", "test/Simulator"], ["AttnUnitTests", "attn-sim"]),
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Site:
    """What an operator makes of the text between two offsets of a file."""

    operator: str
    file: str
    function: str
    start: int
    old: str
    new: str
    statement: bool

    @property
    def end(self) -> int:
        return self.start + len(self.old)


def blank(text: str) -> str:
    """Without what comments, strings and directives say, at the same offsets."""
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|R\"\(.*?\)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'|^#[^\n]*",
        re.S | re.M,
    )
    return pattern.sub(lambda m: re.sub(r"[^\n]", "\0", m[0]), text)


FUNCTION = re.compile(
    r"^(?!namespace\b|class\b|struct\b|enum\b|using\b)(?P<header>\w[^;{}=]*?"
    r"(?P<name>~?[\w:]+)\([^;{}]*\)[^;{}=]*)\{\n(?P<body>.*?)^\}$",
    re.S | re.M,
)
# Text that is swapped within a full expression, each way.
SWAPS = [
    ("comparison", r" (<|<=|>|>=) ", {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}),
    ("equality", r" (==|!=) ", {"==": "!=", "!=": "=="}),
    ("and or", r" (&&|\|\|) ", {"&&": "||", "||": "&&"}),
    ("sum", r" ([+-]) (?=[\w(])", {"+": "-", "-": "+"}),
    ("one", r"(?<=[+-] )(1)\b(?!\.)", {"1": "0"}),
    ("bound", r"\bstd::(min|max)\b", {"min": "max", "max": "min"}),
    ("quantifier", r"\bllvm::(any_of|all_of)\b", {"any_of": "all_of", "all_of": "any_of"}),
    ("end", r"\.(front|back)\(\)", {"front": "back", "back": "front"}),
    ("truth", r"\b(true|false)\b", {"true": "false", "false": "true"}),
    ("negation", r"(?<=[\s(])(!)(?=[\w(])", {"!": ""}),
]
# The same in a statement.
STATEMENT_SWAPS = [
    ("set", r"(?:\.|->)(set|reset)\(", {"set": "reset", "reset": "set"}),
    ("union", r"(?:\.|->)(join|intersect)\(", {"join": "intersect", "intersect": "join"}),
    ("assignment", r" ([|&]=) ", {"|=": "=", "&=": "="}),
    ("step", r" ([+-]=) ", {"+=": "-=", "-=": "+="}),
    ("count", r"(?<![\w)])(\+\+|--)(?=\w)", {"++": "--", "--": "++"}),
]
STATEMENT = re.compile(
    r"(?<=[;{})\n])\n[ ]+(?P<text>(?:(?:\+\+|--)[^\s;{}]+|(?P<head>[\w.>\[\]:()*-]+)"
    r"(?:\((?P<args>[^;{}]*)\)| (?:=|[+|&-]=) [^;{}]+)|break|continue);)(?=\n)"
)
NO_STATEMENT = re.compile(r"(return|assert|static_assert|llvm_unreachable|if|while|for|switch|case)\b")
EXPRESSION = re.compile(
    r"(?P<before>\b(?:if|while) \(|\breturn |(?<=[\w>\])]) = )(?P<text>[^;{}]*?)(?P<after>\)\s*(?:\{|\n)|;)"
)


def balanced(text: str) -> bool:
    depth = 0
    for c in text:
        depth += (c in "([") - (c in ")]")
        if depth < 0:
            return False
    return depth == 0


def has_comma(text: str) -> bool:
    depth = 0
    for c in text:
        depth += (c in "([<{") - (c in ")]>}")
        if c == "," and depth == 0:
            return True
    return False


def swapped(text: str, masked: str, table: list) -> list[tuple[str, str]]:
    """All texts with one part of it exchanged, with the operator."""
    return [
        (name, text[: m.start(1)] + change[m[1]] + text[m.end(1) :])
        for name, pattern, change in table
        for m in re.finditer(pattern, masked)
    ]


def expressions(masked: str) -> list[tuple[int, int, bool]]:
    """Whole expressions of a function's body: where, and whether each is a condition."""
    found = []
    for m in EXPRESSION.finditer(masked):
        line = masked[masked.rfind("\n", 0, m.start()) + 1 : m.start()]
        text = m["text"]
        is_condition = m["before"].startswith(("if", "while"))
        is_initial = m["before"].endswith("= ")
        if not text.strip() or not balanced(text) or has_comma(text) or "[&]" in text:
            continue
        # A declaration within a condition, a constant, a default argument.
        if (is_condition and re.search(r"(?<![=!<>])=(?!=)", text)) or "constexpr" in line:
            continue
        if is_initial and (line.count("(") != line.count(")") or "for (" in line):
            continue
        found.append((m.start("text"), m.end("text"), is_condition))
    return found


def sites_of(file: str, text: str) -> list[Site]:
    found = []
    whole = blank(text)
    for function in FUNCTION.finditer(whole):
        header, name, base = function["header"], function["name"], function.start("body")
        body, masked = text[base : function.end("body")], function["body"]

        def add(operator: str, start: int, end: int, new: str, statement: bool) -> None:
            found.append(Site(operator, file, name, base + start, body[start:end], new, statement))

        for start, end, is_condition in expressions(masked):
            if is_condition:
                add("condition", start, end, f"!({body[start:end]})", False)
            for operator, new in swapped(body[start:end], masked[start:end], SWAPS):
                add(operator, start, end, new, False)
        kind = header.split(name + "(")[0]
        returns = [""] if re.search(r"\bvoid\b", kind) else []
        returns += [" true", " false"] if re.search(r"\bbool\b", kind) else []
        for m in STATEMENT.finditer(masked):
            old, start, end = m["text"], m.start("text"), m.end("text")
            if not balanced(old) or NO_STATEMENT.match(old):
                continue
            if old in ("break;", "continue;"):
                add("jump", start, end, "continue;" if old == "break;" else "break;", True)
                continue
            add("dropped", start, end, "", True)
            for value in returns:
                add("early return", start, end, f"return{value};", True)
            for operator, new in swapped(body[start:end], masked[start:end], STATEMENT_SWAPS):
                add(operator, start, end, new, True)
    return found


def draw(count: int, seed: int, under: str) -> list[Site]:
    """So many bugs in functions of files that `under` matches, no two at one place."""
    functions = collections.defaultdict(lambda: collections.defaultdict(list))
    for area in AREAS:
        for path in sorted((ROOT / area).rglob("*.cpp")):
            file = str(path.relative_to(ROOT))
            if re.search(under, file):
                for site in sites_of(file, path.read_text()):
                    functions[file, site.function][site.operator].append(site)
    if not functions:
        raise SystemExit(f"expected --under to match a source file of {', '.join(AREAS)}, got '{under}'")
    rng, taken = random.Random(seed), []
    names = sorted(functions)
    while len(taken) < count and names:
        operators = functions[rng.choice(names)]
        sites = operators[rng.choice(sorted(operators))]
        site = rng.choice(sites)
        sites.remove(site)
        for operator in [o for o in operators if not operators[o]]:
            del operators[operator]
        names = [name for name in names if functions[name]]
        if not any(s.file == site.file and s.start < site.end and site.start < s.end for s in taken):
            taken.append(site)
    return taken


def compact(text: str) -> str:
    return " ".join(text.split())


def read_equivalent() -> dict[tuple[str, str, str, str], str]:
    """Bugs that change nothing that anybody can see, and why."""
    return {
        (e["file"], e["function"], compact(e["old"]), compact(e["new"])): e["why"]
        for e in tomllib.loads(EQUIVALENT.read_text()).get("equivalent", [])
    }


def problems_of_equivalent() -> list[str]:
    """Entries whose place is gone."""
    problems, texts = [], {}
    for file, function, old, _ in read_equivalent():
        if file not in texts:
            path = ROOT / file
            texts[file] = compact(path.read_text()) if path.exists() else ""
        if old not in texts[file]:
            problems.append(f"{EQUIVALENT.name}: expected '{old}' of {function} in {file}, got none")
    return problems


def name_of(site: Site, number: int) -> str:
    return f"{number}-{site.function.split('::')[-1]}-{site.operator.replace(' ', '-')}"
