"""Manual pages of the commands, from what their --help says and the table of options that
`attn-compile --list-options` prints."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import ArgumentError
from . import completion

_SECTION = re.compile(r"^(\S.*):$")
_FLAG = re.compile(r"^  (-{1,2}[A-Za-z].*?)(?:\s+- (.*))?$")
_MORE = re.compile(r"^\s{20,}(?:- )?(\S.*)$")


class Flag(NamedTuple):
    """A flag as a help text has it."""

    #: With the form of its value, such as `--window=<LEFT,RIGHT[,ALIGN]>`.
    usage: str
    text: str


def read_sections(help_text: str) -> dict[str, list[Flag]]:
    """The flags of a help text by their sections."""
    sections: dict[str, list[Flag]] = {}
    flags: list[Flag] = []
    for line in help_text.partition("OPTIONS:")[2].splitlines():
        if found := _SECTION.match(line):
            flags = sections.setdefault(found[1], [])
        elif found := _FLAG.match(line):
            flags.append(Flag(found[1].strip(), found[2] or ""))
        elif (found := _MORE.match(line)) and flags:
            last = flags[-1]
            flags[-1] = last._replace(text=f"{last.text} {found[1]}".strip())
    return {name: found for name, found in sections.items() if found}


def _escape(text: str) -> str:
    """Text that roff takes as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + escaped if escaped[:1] in (".", "'") else escaped


def _write_flag(flag: Flag, constraints: list[str]) -> list[str]:
    told = f" ({', '.join(constraints)} of the specification)" if constraints else ""
    return [".TP", f".B {_escape(flag.usage)}", _escape((flag.text or "No more is said.") + told)]


def make(command: str) -> str:
    """The page of a command in the language of man(7), as for `man -l`. Raises ArgumentError for
    another command than these."""
    if command not in completion.COMMANDS:
        raise ArgumentError(
            f"man: expected one of {', '.join(completion.COMMANDS)}, got {command!r}"
        )
    text = completion.read_help(command)
    overview, usage = re.findall(r"^(?:OVERVIEW|USAGE): (.*)$", text, re.M)[:2]
    table = {each["flag"]: each for each in completion.list_options() if each["flag"]}
    lines = [
        f'.TH {command.upper()} 1 "" attn "attn"',
        ".SH NAME", _escape(overview),
        ".SH SYNOPSIS", f".B {_escape(usage)}",
    ]  # fmt: skip
    for section, flags in read_sections(text).items():
        lines.append(f'.SH "{_escape(section.upper())}"')
        for flag in flags:
            name = re.match(r"-+([\w-]+)", flag.usage)
            known = table.get(name[1], {}) if name and command == "attn-compile" else {}
            lines += _write_flag(flag, known.get("constraints", []))
    return "\n".join(lines) + "\n"
