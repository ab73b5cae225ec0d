"""Integer expressions over tensor sizes: grids and workspaces of launch records.

The grammar, the values and the messages are those of the compiler's reader
(include/attn/Launch/SizeExpr.h); python/tests/test_size_expr.py compares them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Optional

from ..errors import RecordError

#: Value of NAME.dimI (tensor, False, I) or NAME.strideI (tensor, True, I), or
#: of `sms` ("", False, 0); None where there is none.
Lookup = Callable[[str, bool, int], Optional[int]]
_Node = Callable[[Lookup], int]

#: Nested expressions that are read.
_MOST_NESTED = 64
#: Dimensions beyond it are as good as this one.
_MOST_DIMENSION = 1 << 20
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_BLANKS = re.compile(r"[ \t\n\v\f\r]*")
_DIGITS = re.compile(r"[0-9]*")
_NAME = re.compile(r"[0-9A-Za-z_]*")
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a // b,
    # The quotient of the two overflows, and so does what comes of it.
    "%": lambda a, b: a % b if (a, b) != (_INT64_MIN, -1) else _INT64_MAX + 1,
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}


class SizeExpr:
    """An integer expression over tensor sizes. `/` floors."""

    def __init__(self, text: str) -> None:
        """Parses `text`; RecordError with the column and what was expected."""
        self.text = text
        #: Whether its value depends on the device, by its multiprocessors.
        self.uses_device = False
        self._position = 0
        self._depth = 0
        self._node = self._sum()
        self._skip_blanks()
        if self._position != len(text):
            raise self._fail("expected an operator or the end")

    def evaluate(self, lookup: Lookup) -> int:
        """Its value; RecordError for a symbol without value, division by zero and
        overflow of 64 bits."""
        return self._node(lookup)

    def _fail(self, expected: str) -> RecordError:
        rest = self.text[self._position : self._position + 16]
        got = f'"{rest}"' if rest else "the end"
        column = self._position + 1
        return RecordError(f'in "{self.text}" at column {column}: {expected}, got {got}')

    def _error(self, message: str) -> RecordError:
        return RecordError(f'{message} in "{self.text}"')

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self._position)
        assert match is not None
        self._position = match.end()
        return match.group()

    def _skip_blanks(self) -> None:
        self._take(_BLANKS)

    def _consume(self, symbols: str) -> str:
        """The next character if it is one of `symbols`."""
        self._skip_blanks()
        symbol = self.text[self._position : self._position + 1]
        if not symbol or symbol not in symbols:
            return ""
        self._position += 1
        return symbol

    def _expect(self, symbol: str) -> None:
        if not self._consume(symbol):
            raise self._fail(f"expected '{symbol}'")

    def _sum(self) -> _Node:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise self._fail(f"expected at most {_MOST_NESTED} nested expressions")
        node = self._product()
        while symbol := self._consume("+-"):
            node = self._combine(symbol, node, self._product())
        self._depth -= 1
        return node

    def _product(self) -> _Node:
        node = self._factor()
        while symbol := self._consume("*/%"):
            node = self._combine(symbol, node, self._factor())
        return node

    def _factor(self) -> _Node:
        negative = False
        while self._consume("-"):
            negative = not negative
        node = self._primary()
        if not negative:
            return node
        return lambda lookup: self._check(-node(lookup))

    def _integer(self) -> int:
        start = self._position
        digits = self._take(_DIGITS)
        # Python refuses to read thousands of digits.
        value = digits.lstrip("0")[:20] or "0"
        if not digits or int(value) > _INT64_MAX:
            self._position = start
            raise self._fail("expected an integer below 2^63")
        return int(value)

    def _primary(self) -> _Node:
        if self._consume("("):
            node = self._sum()
            self._expect(")")
            return node
        start = self._position
        if "0" <= self.text[start : start + 1] <= "9":
            value = self._integer()
            return lambda lookup: value
        name = self._take(_NAME)
        if not name:
            raise self._fail("expected an integer, a size, a function or '('")
        if self._consume("."):
            return self._symbol(name)
        if self._consume("("):
            return self._call(name, start)
        if name == "sms":
            self.uses_device = True
            return self._read(name, "", False, 0)
        raise self._fail(f"expected '.' or '(' after \"{name}\"")

    def _symbol(self, tensor: str) -> _Node:
        for kind in ("stride", "dim"):
            if self.text.startswith(kind, self._position):
                self._position += len(kind)
                index = min(self._integer(), _MOST_DIMENSION)
                return self._read(f"{tensor}.{kind}{index}", tensor, kind == "stride", index)
        raise self._fail("expected 'dim' or 'stride' and a number")

    def _read(self, name: str, tensor: str, is_stride: bool, index: int) -> _Node:
        def node(lookup: Lookup) -> int:
            value = lookup(tensor, is_stride, index)
            if value is None:
                raise self._error(f'no value for "{name}"')
            return value

        return node

    def _call(self, name: str, start: int) -> _Node:
        if name not in ("ceildiv", "min", "max"):
            self._position = start
            raise self._fail("expected 'ceildiv', 'min' or 'max'")
        left = self._sum()
        self._expect(",")
        right = self._sum()
        self._expect(")")
        return self._combine(name, left, right)

    def _check(self, value: int) -> int:
        if not _INT64_MIN <= value <= _INT64_MAX:
            raise self._error("overflow of a 64-bit integer")
        return value

    def _combine(self, operation: str, left: _Node, right: _Node) -> _Node:
        function = _FUNCTIONS[operation]

        def node(lookup: Lookup) -> int:
            a, b = left(lookup), right(lookup)
            if b == 0 and operation in ("/", "%", "ceildiv"):
                raise self._error("division by zero")
            return self._check(function(a, b))

        return node
