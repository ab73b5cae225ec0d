"""Shell completion of the commands, from what their --help lists and, for the values of a
problem's options, from the table that `attn-compile --list-options` prints."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

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


def read_help(command: str) -> str:
    """What a command says of its flags. Raises LibraryError where it does not run."""
    done = subprocess.run(
        [*commands.find(command), "--help"], capture_output=True, text=True, check=False
    )
    if done.returncode or not done.stdout:
        raise LibraryError(f"{command} --help failed: {done.stderr.strip() or 'no output'}")
    return done.stdout


def list_options() -> list[dict[str, Any]]:
    """The options of a problem, as the compiler's table has them."""
    done = subprocess.run(
        [*commands.find("attn-compile"), "--list-options"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LibraryError(
            f"attn-compile --list-options failed: {done.stderr.strip() or 'no output'}"
        )
    options: list[dict[str, Any]] = json.loads(done.stdout)
    return options


def _list_values() -> dict[str, str]:
    """The values of flags that have few, in one line."""
    options = list_options()
    return {
        f"--{each['flag']}": each["value"].replace("|", " ")
        for each in options
        if "|" in each["value"] and ":" not in each["value"]
    }


def make(shell: str, chips: list[str]) -> str:
    """A script that the shell reads, as by `source <(python -m attn completion bash)`."""
    if shell not in SHELLS:
        raise ArgumentError(f"completion: expected one of {', '.join(SHELLS)}, got {shell!r}")
    lines = ["autoload -U +X bashcompinit && bashcompinit"] if shell == "zsh" else []
    values = {**dict.fromkeys(_CHIPS, " ".join(chips)), **_list_values()}
    cases = " ".join(
        f"{flag}) COMPREPLY=($(compgen -W '{words}' -- \"${{word#=}}\")); return ;;"
        for flag, words in values.items()
    )
    for command in COMMANDS:
        flags = list_flags(read_help(command))
        name = "_" + command.replace("-", "_")
        lines += [
            f"{name}() {{",
            "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}",
            '  [ "$before" = = ] && before=${COMP_WORDS[COMP_CWORD-2]}',
            f"  case $before in {cases} esac",
            f"  COMPREPLY=($(compgen -W '{' '.join(flags)}' -- \"$word\"))",
            "  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace",
            "}",
            f"complete -o default -F {name} {command}",
        ]
    return "\n".join(lines) + "\n"
