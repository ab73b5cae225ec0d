"""Prints each registered pipeline and whether its text, read as
--pass-pipeline, gives the same text again.

usage: pipeline-text.py ATTN_OPT
"""

import re
import subprocess
import sys


def dump(attn_opt: str, argument: str) -> str:
    result = subprocess.run(
        [attn_opt, argument, "--dump-pass-pipeline", "-"],
        input="", capture_output=True, text=True, check=True,
    )
    return result.stderr.split("passes:\n")[1].strip()


def main() -> int:
    attn_opt = sys.argv[1]
    help_text = subprocess.run([attn_opt, "--help"], capture_output=True, text=True, check=True)
    section = help_text.stdout.split("Pass Pipelines:")[1]
    for name in re.findall(r"^ {6}--(attn[\w-]+)", section, re.M):
        text = dump(attn_opt, f"--{name}")
        again = dump(attn_opt, f"--pass-pipeline={text}")
        print(f"{name}: {'same' if text == again else 'differs'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
