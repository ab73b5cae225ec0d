"""Follows docs/HowTo/add-option.md: adds its row to a copy of the table, compiles
what has to do without MLIR, and prints what has become of the row.

usage: add-option.py SOURCES BUILD FOLDER
"""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

PROGRAM = r"""
#include "ProblemJSON.h"
#include "llvm/Support/raw_ostream.h"
using namespace mlir::attn;

static void read(llvm::StringRef label, llvm::StringRef fields) {
  std::string text = ("{\"scale\": 1, \"mask\": {\"kind\": \"none\"}, \"heads\": 1, "
                      "\"kv_heads\": 1, \"d\": 64, \"dv\": 64" + fields + "}").str();
  llvm::json::Value value = llvm::cantFail(llvm::json::parse(text));
  Failure failure;
  AttentionProblem problem = readProblem(value, failure);
  llvm::json::Value written = writeProblem(problem);
  if (failure)
    llvm::outs() << "refused: " << llvm::toString(failure.takeError()) << "\n";
  else if (auto *number = written.getAsObject()->get("temperature"))
    llvm::outs() << label << ": " << *number << "\n";
  else
    llvm::outs() << label << ": none\n";
}

int main() {
  llvm::errs() << describeOptions();
  read("record", ", \"temperature\": 2");
  read("without it", "");
  read("", ", \"temperature\": -1");
}
"""


def add_row(sources: pathlib.Path, folder: pathlib.Path) -> None:
    """The table with the page's row in front of the first switch."""
    page = (sources / "docs/HowTo/add-option.md").read_text(encoding="utf-8")
    row = re.search(r"// row of the table\n(.*?)```", page, re.S)[1]
    table = (sources / "include/attn/Problem/Options.def").read_text(encoding="utf-8")
    before, first, after = table.partition('ATTN_SWITCH(sinks, "sinks"')
    assert first, "the table has no switch 'sinks'"
    target = folder / "attn/Problem/Options.def"
    target.parent.mkdir(parents=True)
    target.write_text(before + row + first + after, encoding="utf-8")


def get_flags(build: pathlib.Path) -> list[str]:
    """How the build compiles a file that needs no MLIR."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    for each in commands:
        if "AttnProblem.dir" in each["command"]:
            words = shlex.split(each["command"])
            kept = [word for word in words if word.startswith(("-I", "-D", "-std", "-f"))]
            system = words[words.index("-isystem") + 1]
            compiler = next(word for word in words if "clang++" in word or word.endswith("g++"))
            return [compiler, "-O0", *kept, "-isystem", system]
    raise LookupError("no command of the library AttnProblem")


def main() -> None:
    sources, build, folder = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(folder, ignore_errors=True)
    add_row(sources, folder)
    program = folder / "main.cpp"
    program.write_text(PROGRAM, encoding="utf-8")
    flags = get_flags(build)
    libraries = pathlib.Path(flags[-1]).parent / "lib"
    files = ("Problem/Mask", "Problem/Options", "Launch/ProblemJSON", "Launch/SizeExpr")
    subprocess.run(
        [
            flags[0],
            f"-I{folder}",
            f"-I{sources / 'lib/Launch'}",
            *flags[1:],
            *[str(sources / "lib" / f"{file}.cpp") for file in files],
            str(program),
            f"-L{libraries}",
            f"-Wl,-rpath,{libraries}",
            "-lLLVM",
            *["-o", str(folder / "program")],
        ],
        check=True,
    )
    result = subprocess.run(
        [folder / "program"], check=True, capture_output=True, text=True
    )
    rows = json.loads(result.stderr)
    row = next(row for row in rows if row["name"] == "temperature")
    print("listed:", row["name"], row["kind"], row["value"], row["doc"])
    print(result.stdout, end="")

    sys.path.insert(0, str(sources / "scripts"))
    import option_pages
    import serving_pages

    data = option_pages.make_data_module(rows)
    functions = option_pages.make_signature_module(rows)
    compile(functions, "_signatures.py", "exec")
    print("module:", re.search(r'"temperature": .*', data)[0])
    for each in re.findall(r"^    (temperature: .*)", functions, re.M):
        print("argument:", each)
    schema = (sources / "docs/launch-record.schema.json").read_text(encoding="utf-8")
    made = json.loads(option_pages.make_schema(rows, schema))
    print("record schema:", json.dumps(made["$defs"]["problem"]["properties"]["temperature"]))
    print("schema:", re.search(r"float\? temperature=None", data)[0])
    calls = serving_pages.make_serving_module(rows)
    compile(calls, "serving_signatures.py", "exec")
    names = re.findall(r"^(?:def|class) (\w+)(?:(?!^def |^class ).)*?^ +temperature: float", calls, re.M | re.S)
    print("calls of servers:", *names)
    for name, call in serving_pages.CALLS.items():
        if name in serving_pages.OPERATORS:
            print("operator:", serving_pages.write_schema(name, call, rows).split(", ")[-1])
    settings = serving_pages.make_settings_module(rows)
    print("attribute:", re.search(r"FACTORS = (.*)", settings)[1])


if __name__ == "__main__":
    main()
