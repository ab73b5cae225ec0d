"""Examples in the documentation: op examples and pass doctests.

An op's description in ODS holds its example in a fence marked `mlir`. Such an
example is a complete file, which a test compiles. A pass's description names a lit file on a
line `Example: test/doc/<pass>.mlir`; its command, input and expected output
appear in the pass's page.
"""

import dataclasses
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
TBLGEN = pathlib.Path("/usr/lib/llvm-22/bin/mlir-tblgen")
RECORDS_TBLGEN = TBLGEN.with_name("llvm-tblgen")
INCLUDES = [ROOT / "include", "/usr/lib/llvm-22/include"]
DIALECT_TD = ROOT / "include/attn/Dialect/Attn/IR/AttnOps.td"
PASS_TDS = (
    ROOT / "include/attn/Dialect/Attn/Transforms/Passes.td",
    ROOT / "include/attn/Analysis/Passes.td",
    ROOT / "include/attn/Conversion/Passes.td",
    ROOT / "include/attn/Target/PTX/Passes.td",
)

FENCE = re.compile(r"^```mlir\n(?P<body>.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^#+ +(?P<title>.*)$", re.M)


@dataclasses.dataclass
class Example:
    """A compilable example: the heading that it stands under, and its text."""

    title: str
    code: str


def tblgen(td: pathlib.Path, *arguments: str, tool: pathlib.Path = TBLGEN) -> str:
    """The output of a TableGen tool; raises RuntimeError with its message."""
    command = [str(tool), *arguments, str(td)]
    for folder in INCLUDES:
        command += ["-I", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{tool.name} {td}: {result.stderr}")
    return result.stdout


@dataclasses.dataclass
class Op:
    """What ODS says about an op beyond what mlir-tblgen prints."""

    name: str
    since: str
    # (kind, name, sentence) of operands, attributes and results; the sentence
    # is empty where ODS has none.
    variables: list[tuple[str, str, str]]
    described: bool


def ops() -> list[Op]:
    """The dialect's ops, by name."""
    records = json.loads(tblgen(DIALECT_TD, "--dump-json", tool=RECORDS_TBLGEN))
    found = []
    for name in records["!instanceof"]["Attn_Op"]:
        record = records[name]
        variables = []
        for field, kind in (("arguments", "operand"), ("results", "result")):
            for value, variable in record[field]["args"]:
                wrapper = records[value["def"]]
                sentence = ""
                if "OpVariable" in wrapper["!superclasses"]:
                    sentence = wrapper["summary"] or ""
                is_attribute = any("Attr" in b or "Prop" in b for b in wrapper["!superclasses"])
                variables.append(("attribute" if is_attribute else kind, variable, sentence))
        found.append(Op(f"attn.{record['opName']}", record["sinceVersion"], variables,
                        bool((record["description"] or "").strip())))
    return sorted(found, key=lambda op: op.name)


def examples(page: str) -> list[Example]:
    """The examples of a page."""
    found = []
    for match in FENCE.finditer(page):
        titles = HEADING.findall(page[: match.start()])
        found.append(Example(titles[-1] if titles else "", match["body"]))
    return found


def doctest_page(text: str, name: str) -> str:
    """A lit file as documentation: its command, input and expected output."""
    text = re.sub(r"\\\n//[ \t]*(?:RUN:)?[ \t]*", "", text)
    commands, checks, body = [], [], []
    for line in text.split("\n"):
        if match := re.match(r"//\s*RUN:\s*(.*)", line):
            shell = match.group(1).split("|")[0].strip()
            commands.append(shell.replace("%s", name))
        elif match := re.match(r"\s*//\s*CHECK([A-Z-]*)(?:\{LITERAL\})?:(?: (.*))?$", line):
            if match.group(1) in ("", "-NEXT", "-SAME", "-LABEL", "-DAG"):
                checks.append(_plain_check(match.group(2) or ""))
        else:
            body.append(line)
    parts = ["```shell\n" + "\n".join(commands) + "\n```"]
    parts.append("Input:\n\n```mlir\n" + "\n".join(body).strip("\n") + "\n```")
    if checks:
        parts.append("Output (the lines that the test checks):\n\n```\n" + "\n".join(checks) + "\n```")
    return "\n\n".join(parts)


def _plain_check(line: str) -> str:
    """A FileCheck pattern for readers: names for variables, `...` for regexes."""
    line = re.sub(r"\[\[#?(?:%\w+,)?(\w+)[^\]]*\]\]", lambda m: m.group(1).lower(), line)
    return re.sub(r"\{\{.*?\}\}", "...", line)
