"""Arithmetic texts in the grammar of C++, evaluated on arrays and spelled as C++ again.

    choice  := or ["?" choice ":" choice]          or   := and {"||" and}           and := test {"&&" test}
    test    := sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
    sum     := product {("+" | "-") product}       product := unary {("*" | "/") unary}
    unary   := ("-" | "+" | "!") unary | primary
    primary := number | name | ("x" | "y") "[" k "]" | function "(" choice {"," choice} ")" | "(" choice ")"

Every number is of the points' precision, so 1/2 is a half, unlike in C++. A choice evaluates both sides on arrays and
takes one. Reference: ISO/IEC 14882:2017 (C++17), annex A.4.
"""

import functools
import operator
import re
from collections.abc import Callable
from typing import NamedTuple

MOST_TOKENS = 400  # of a text: evaluation descends once a token at most
DEEPEST = 32  # parentheses and signs within each other: parsing descends nine calls for each
TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(&&|\|\||[<>=!]=|\S))")
SAME = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")
FUNCTIONS = {name: (name, 1) for name in SAME} | {  # name here: name in NumPy, number of arguments
    "asin": ("arcsin", 1), "acos": ("arccos", 1), "atan": ("arctan", 1), "atan2": ("arctan2", 2),
    "fabs": ("absolute", 1), "pow": ("power", 2), "fmin": ("fmin", 2), "fmax": ("fmax", 2),
}  # fmt: skip
TESTS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "not_equal"}
ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
DISTANCE, POINTS = "r", ("x", "y")
RESERVED = {DISTANCE, *POINTS, *FUNCTIONS}
ADVICE = {"^": "; a power is pow(a, b)", "**": "; a power is pow(a, b)", "=": "; equality is =="}


class Values(NamedTuple):
    """What a text is evaluated with: an array module, and values of all names (x and y: lists of coordinates)."""

    xp: object
    number: Callable
    names: dict


class Part(NamedTuple):
    """A parsed part: its C++ text, its value of `Values`, and whether that is true or false."""

    spelled: str
    value: Callable
    truth: bool = False


class Formula(NamedTuple):
    """A text understood: C++ in which the numbers are p[0], p[1], …, the value, and the names it mentions."""

    spelled: str
    value: Callable
    names: frozenset
    coordinates: int


@functools.lru_cache(maxsize=256)
def parse(text, numbers):
    """The Formula of a text in which `numbers`, a tuple of names, may stand. Raises ValueError, saying where."""
    return _Parser(text, numbers).formula()


class _Parser:
    """One pass over the tokens; every method reads what it is named after and answers with its Part."""

    def __init__(self, text, numbers):
        self.text, self.numbers, self.at = text, numbers, 0
        self.tokens = [(m.lastindex, m[m.lastindex], m.start(m.lastindex)) for m in TOKEN.finditer(text.rstrip())]
        if len(self.tokens) > MOST_TOKENS:
            raise ValueError(f"expression {text!r:.60}: expected at most {MOST_TOKENS} signs, got {len(self.tokens)}")
        self.tokens.append((0, "the end", len(text)))
        self.names, self.coordinates, self.depth = set(), 0, 0

    def formula(self):
        part = self.number(self.choice)
        if self.tokens[self.at][0]:
            self.refuse("an operator or the end")
        return Formula(part.spelled, part.value, frozenset(self.names), self.coordinates)

    def refuse(self, wanted):
        _, found, place = self.tokens[self.at]
        advice = ADVICE.get(self.text[max(place - 1, 0) : place + 1]) or ADVICE.get(found, "")
        raise ValueError(
            f"expression {self.text!r:.200}: expected {wanted} at place {place}, got {shown(found)}{advice}"
        )

    def taken(self, *signs):
        """The next token if it is one of these, then behind it; else None."""
        kind, word, _ = self.tokens[self.at]
        if kind != 3 or word not in signs:
            return None
        self.at += 1
        return word

    def need(self, sign):
        if not self.taken(sign):
            self.refuse(sign)

    def number(self, read, truth=False):
        """What `read` reads, which must be a number; or true or false."""
        start = self.at
        part = read()
        if part.truth != truth:
            self.at = start
            self.refuse("something true or false" if truth else "a number, not true or false,")
        return part

    def chain(self, read, operations, truth=False):
        """Operands of one kind with operations between them, from the left."""
        start, left = self.at, read()
        while sign := self.taken(*operations):
            if left.truth != truth:
                self.at = start
                self.number(read, truth)
            left = _combined(left, sign, self.number(read, truth), operations[sign], truth)
        return left

    def choice(self):
        start, part = self.at, self.either()
        if not self.taken("?"):
            return part
        if not part.truth:
            self.at = start
            self.number(self.either, truth=True)
        first = self.number(lambda: self.inside(self.choice))
        self.need(":")
        second = self.number(lambda: self.inside(self.choice))
        spelled = f"({part.spelled} ? {first.spelled} : {second.spelled})"
        return Part(spelled, lambda v: v.xp.where(part.value(v), first.value(v), second.value(v)))

    def either(self):
        return self.chain(self.both, {"||": operator.or_}, truth=True)

    def both(self):
        return self.chain(self.test, {"&&": operator.and_}, truth=True)

    def test(self):
        start, left = self.at, self.sum()
        sign = self.taken(*TESTS)
        if not sign:
            return left
        if left.truth:
            self.at = start
            self.number(self.sum)
        right = self.number(self.sum)
        spelled = f"({left.spelled} {sign} {right.spelled})"
        return Part(spelled, lambda v: getattr(v.xp, TESTS[sign])(left.value(v), right.value(v)), True)

    def sum(self):
        return self.chain(self.product, {sign: ARITHMETIC[sign] for sign in "+-"})

    def product(self):
        return self.chain(self.unary, {sign: ARITHMETIC[sign] for sign in "*/"})

    def unary(self):
        sign = self.taken("-", "+", "!")
        if not sign:
            return self.primary()
        part = self.number(lambda: self.inside(self.unary), truth=sign == "!")
        operation = {"-": operator.neg, "+": operator.pos, "!": operator.invert}[sign]
        return Part(f"({sign}{part.spelled})", lambda v: operation(part.value(v)), part.truth)

    def inside(self, read):
        """What `read` reads, one deeper."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.refuse(f"at most {DEEPEST} parentheses and signs within each other")
        part = read()
        self.depth -= 1
        return part

    def primary(self):
        if self.taken("("):
            part = self.inside(self.choice)
            self.need(")")
            return part
        kind, word, _ = self.tokens[self.at]
        known = word in self.numbers or word in RESERVED if kind == 2 else kind == 1 and float(word) < float("inf")
        if not known:
            given = "".join(f", {name}" for name in self.numbers)
            self.refuse(f"a number, r, x[k], y[k]{given} or a function ({', '.join(FUNCTIONS)})")
        self.at += 1
        if kind == 1:
            return Part(f"Real({float(word)!r})", lambda v: v.number(float(word)))
        if word in FUNCTIONS:
            return self.call(word)
        self.names.add(word)
        if word in POINTS:
            return self.coordinate(word)
        spelled = word if word == DISTANCE else f"p[{self.numbers.index(word)}]"
        return Part(spelled, lambda v: v.names[word])

    def coordinate(self, word):
        self.need("[")
        kind, k, _ = self.tokens[self.at]
        if kind != 1 or not k.isdigit() or len(k) > 2:
            self.refuse("the number of a coordinate, from 0 on,")
        self.at += 1
        self.need("]")
        self.coordinates = max(self.coordinates, int(k) + 1)
        return Part(f"{word}[{int(k)}]", lambda v: v.names[word][int(k)])

    def call(self, word):
        name, count = FUNCTIONS[word]
        self.need("(")
        parts = []
        for i in range(count):
            if i:
                self.need(",")
            parts.append(self.number(lambda: self.inside(self.choice)))
        self.need(")")
        spelled = f"{word}({', '.join(part.spelled for part in parts)})"
        return Part(spelled, lambda v: getattr(v.xp, name)(*(part.value(v) for part in parts)))


def shown(word):
    """A word of a text of unknown origin, short, on one line."""
    return word[:80] if word.isprintable() else ascii(word[:80])


def _combined(left, sign, right, operation, truth):
    spelled = f"({left.spelled} {sign} {right.spelled})"
    return Part(spelled, lambda v: operation(left.value(v), right.value(v)), truth)
