"""Shell completion of the commands, from what their --help lists."""

from __future__ import annotations

import re
import subprocess

from .. import commands
from ..errors import ArgumentError, LibraryError

COMMANDS = ("attn-compile", "attn-sim")
SHELLS = ("bash", "zsh")
_FLAG = re.compile(r"^  (-{1,2}[A-Za-z][\w-]*)(=<[^>]*>)?", re.M)
#: Flags whose value is one of the targets.
_CHIPS = ("--chip", "--bundle-chips")


def list_flags(help_text: str) -> list[str]:
    """The flags of a help text, those that take a value with the sign that it follows."""
    return sorted({flag + ("=" if value else "") for flag, value in _FLAG.findall(help_text)})


def _read_help(command: str) -> str:
    done = subprocess.run([*commands.find(command), "--help"], capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout:
        raise LibraryError(f"{command} --help failed: {done.stderr.strip() or 'no output'}")
    return done.stdout


def make(shell: str, chips: list[str]) -> str:
    """A script that the shell reads, as by `source <(python -m attn completion bash)`."""
    if shell not in SHELLS:
        raise ArgumentError(f"completion: expected one of {', '.join(SHELLS)}, got {shell!r}")
    lines = ["autoload -U +X bashcompinit && bashcompinit"] if shell == "zsh" else []
    for command in COMMANDS:
        flags = list_flags(_read_help(command))
        name = "_" + command.replace("-", "_")
        lines += [
            f"{name}() {{",
            '  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}',
            '  [ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}',
            f"  case $before in {'|'.join(_CHIPS)}) COMPREPLY=($(compgen -W '{' '.join(chips)}' -- \"${{word#=}}\")); return ;; esac",
            f"  COMPREPLY=($(compgen -W '{' '.join(flags)}' -- \"$word\"))",
            "  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace",
            "}",
            f"complete -o default -F {name} {command}",
        ]
    return "\n".join(lines) + "\n"
