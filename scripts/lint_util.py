"""What the lint scripts share: the tracked files and the way to report."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Pages written by scripts/gen-docs.py, in whole.
GENERATED_PAGES = ("docs/Dialect/Attn.md", "docs/Passes.md")


def tracked_files(*patterns: str) -> list[pathlib.Path]:
    """Files that git tracks (matching the pathspecs), relative to ROOT."""
    output = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = [pathlib.Path(name) for name in output.split("\0") if name]
    return [name for name in names if (ROOT / name).is_file()]


def read_text(path: pathlib.Path) -> str | None:
    """The file's text, or None for a binary file."""
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def report(problems: list[str], what: str) -> int:
    """Prints the problems; the exit status of the script."""
    for problem in problems:
        print(problem)
    if problems:
        print(f"{what}: {len(problems)} problem(s)", file=sys.stderr)
    return 1 if problems else 0
