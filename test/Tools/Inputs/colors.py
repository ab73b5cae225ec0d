"""Looks whether programs print in colours where they should.

colors.py -- PROGRAM [ARGUMENT...] [-- PROGRAM ...]

Each command prints at least one message. It runs on a terminal, on one with
NO_COLOR, with NO_COLOR and --color, and with its output in a pipe.
"""

import os
import pty
import subprocess
import sys


def run_on_terminal(command: list[str], environment: dict[str, str]) -> bytes:
    """What a command prints on a terminal of its own."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=other, stderr=other, env=environment
    )
    os.close(other)
    output = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # the last one has closed it
            break
        if not chunk:
            break
        output += chunk
    process.wait()
    os.close(main)
    return output


def main() -> int:
    commands: list[list[str]] = []
    for argument in sys.argv[1:]:
        if argument == "--":
            commands.append([])
        else:
            commands[-1].append(argument)
    plain = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    plain["TERM"] = "xterm-256color"
    quiet = {**plain, "NO_COLOR": "1"}
    empty = {**plain, "NO_COLOR": ""}
    wrong = 0
    for command in commands:
        piped = subprocess.run(command, capture_output=True, env=plain, check=False)
        rows = [
            ("a terminal", run_on_terminal(command, plain), True),
            ("an empty NO_COLOR", run_on_terminal(command, empty), True),
            ("NO_COLOR", run_on_terminal(command, quiet), False),
            ("NO_COLOR and --color", run_on_terminal([*command, "--color"], quiet), True),
            ("a terminal and --color=false",
             run_on_terminal([*command, "--color=false"], plain), False),
            ("a pipe", piped.stdout + piped.stderr, False),
        ]  # fmt: skip
        for where, output, expected in rows:
            if b"error: " not in output.replace(b"\x1b[0m", b""):
                print(f"{' '.join(command)}: {where}: expected an error, got {output!r}")
                wrong += 1
            elif (b"\x1b[" in output) != expected:
                wanted = "colours" if expected else "no colours"
                print(f"{' '.join(command)}: {where}: expected {wanted}, got {output!r}")
                wrong += 1
    print(f"{len(commands)} commands, {wrong} wrong")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
