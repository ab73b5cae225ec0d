"""What is here, and small tools.

usage: python -m attn                      versions, GPU, ptxas, cache, targets
       python -m attn bench --q=4x32x4096x128xbf16 --causal
                                           plan and speed of one attention, beside torch's SDPA
       python -m attn completion bash|zsh  completion of attn-compile and attn-sim
       python -m attn man attn-compile     a manual page, for man -l -
"""

from __future__ import annotations

import argparse
import sys

from .errors import AttnError


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; the exit status. Errors are sentences on standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m attn", description="What is here: versions, GPU, ptxas, cache, targets."
    )
    commands = parser.add_subparsers(dest="command")
    from .tuning import bench, completion, machine_report, manual

    commands.add_parser("bench", help="plan and speed of one attention; flags as attn-compile's")
    shells = commands.add_parser("completion", help="shell completion of the commands")
    shells.add_argument("shell", choices=completion.SHELLS)
    pages = commands.add_parser("man", help="manual page of a command, for man -l -")
    pages.add_argument("page", choices=completion.COMMANDS)
    options, rest = parser.parse_known_args(arguments)
    if rest and options.command != "bench":
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        if options.command == "bench":
            bench.run(rest)
        elif options.command == "completion":
            from .compiler import builds

            print(completion.make(options.shell, [each.chip for each in builds.targets()]), end="")
        elif options.command == "man":
            print(manual.make(options.page), end="")
        else:
            machine_report.print_report()
    except AttnError as error:
        # Messages of the compiler begin with "error: " already.
        text = str(error).removeprefix("error: ")
        print(f"python -m attn: error: {text}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
