"""Gives each program standard streams that are full or closed: what does not arrive is an
error, and nothing else is written in its place. Help texts fit 80 columns.

usage: streams.py BIN
"""

import pathlib
import subprocess
import sys

BIN = pathlib.Path(sys.argv[1])
PROGRAMS = ("attn-compile", "attn-opt", "attn-reduce", "attn-sim", "attn-lint-sass",
            "attn-targets", "attn-lsp-server")  # fmt: skip
# Besides help and version.
PRINT = {"attn-compile": ["--list-options", "--list-parameters"], "attn-targets": ["--format=json"]}


def run(shell: str) -> tuple[int, str]:
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def expect(holds: bool, shell: str, got: object) -> None:
    if not holds:
        sys.exit(f"{shell}: got {got}")


def main() -> None:
    for program in PROGRAMS:
        path = BIN / program
        for flag in ["--help", "-h", "--version", *PRINT.get(program, [])]:
            for stream, reason in ((">/dev/full", "No space left on device"),
                                   (">&-", "Bad file descriptor")):  # fmt: skip
                shell = f"{path} {flag} {stream}"
                status, said = run(shell)
                wanted = f"{program}: error: cannot write 'standard output': {reason}\n"
                expect((status, said) == (1, wanted), shell, (status, said))
        shell = f"{path} --help"
        status, said = run(shell)
        long = [line for line in said.splitlines() if len(line) > 80 and " " in line.strip()]
        # A name may be longer than a line.
        long = [line for line in long if not line.strip().startswith("-")]
        expect(status == 0 and "USAGE" in said and not long, shell, (status, long))
        expect(not any(word in said for word in ("aarch64", "amdgpu", "polly")), shell, said)
        # Whether messages arrive changes no status.
        for stream in ("2>/dev/full", "2>&-"):
            shell = f"{path} --version {stream}"
            expect(run(shell)[0] == 0, shell, run(shell))
        if program not in ("attn-targets", "attn-lsp-server"):
            shell = f"{path} --no-such-flag 2>&-"
            status, said = run(shell)
            expect(status in (1, 2) and not said, shell, (status, said))
    shell = f"{BIN}/attn-opt - <&-"
    status, said = run(shell)
    expect("cannot read standard input: Bad file descriptor" in said, shell, said)
    print(f"{len(PROGRAMS)} programs")


if __name__ == "__main__":
    main()
