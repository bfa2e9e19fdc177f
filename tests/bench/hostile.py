"""Hostile texts of many kinds and any size: they take long where a rule is careless."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from string import ascii_letters, digits, printable, punctuation

Make = Callable[[int], str]
"""A text of about this many bytes."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A kind of text, made to any size."""

    family: str
    name: str
    make: Make

    def text(self, size: int) -> str:
        """So many bytes of it, but for a character that would be cut."""
        return self.make(size).encode()[:size].decode(errors="ignore")

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


REPEATED: dict[str, tuple[str, ...]] = {
    "separators": (
        " ", "\n", "\t", "\r\n", ".", ",", ";", ":", "-", "--", "_", "/", "\\", "|", "=",
        "·", "•", "…", "\u2028", "\u00a0", "\u3000", ". ", "? ", "! ",
        "a.", "a-", "a_", "a/", "a ", "a\n", "1 ", "1,", "0,", "0 0.0\n", "- - ", "* * ",
        "\n\n\n a", "a\n\n", "\v\f",
    ),
    "quotes and brackets": (
        "'", '"', "`", "``` ", "```\n", "“", "”", "«a»", "„a“", "「", "(",
        "[", "{", "<", "()", "[]", "{}", "<>", "((a", "[a](", "![](", "[[a]]", "{{a}}", "<a><b>",
        "</a>", "<!--", "&amp;", '\\"', "'a' ", '"a" ', "it's ", "a'b'", '"yesterday" ', "> ",
        "> > a\n",
    ),
    "codes": (
        "QX-48213 ", "QX-1-", "1%1%", "a1", "1a", "v1.2.3-", "1.2.3.4 ", "1.1.", "::1 ", "0x1f ",
        "deadbeef", "3f2504e0-4f89-11d3-9a0c-0305e82c3301 ", "#123 ", "A1B2-", "x1x2", "$1 ",
        "€1,00 ", "1e9 ", "-1-1", "+49 30 1234567 ", "(555) 555-",
        "12:34:56 ", "99% ", "№1", "①", "\u0661",
    ),
    "dates": (
        "2026-03-09 ", "2026-03-09T14:30:00Z ", "0001-01-01T00:00:00Z ", "9999-12-31 ", "1/1/1 ",
        "5/8/2023 ", "May 5th, 2023 ", "May ", "5 May ", "yesterday ", "tomorrow ", "last week ",
        "3 days ago ", "vor 3 Tagen ", "hace 2 semanas ", "il y a 3 jours ", "last ", "in May ",
        "Monday ", "2 2 2 May ", "on Monday, May ", "last 1 last 2 ",
        "2026年3月9日", "next month ", "yesterday `",
        "gestern um 14:30 Uhr ",
    ),
    "addresses": (
        "a@b.c ", "a@", "@b", "a.a@a.a.", "http://a.b/c ", "http://", "https://a:b@c ", "://a:",
        "www.", "file:///a/b ", "/usr/lib/a ", "~/a/", "C:\\a\\b ", "../", "a/b/c.py:12 ",
        "urn:a:b:", "git@a:b/c.git ", "http://[::1]:80/", "mailto:a@b.c?", "a.b.c.d.e.",
    ),
    "secrets": (
        "token=", "token=1", "password: ", "password is ", "the password is a1B2 ", "api key=a1",
        "key=", "secret_", "sk-", "ghp_a1", "eyJ-", "eyJa.eyJa.", "AKIA",
        "-----BEGIN PRIVATE KEY-----\n", "Bearer ", "bearer aaaaaaaaaaaaaaaa1=",
        "postgres://u:p@h/", "passwort lautet ", "contraseña es ",
        "пароль: ", "密码是", "パスワードは", "Authorization: Basic ", "pwd;",
        "xoxb-1-",
    ),
    "instructions": (
        "Always use tabs. ", "Never do it. ", "From now on, ", "always ", "I prefer x. ",
        "Call me x. ", "Immer Tabs verwenden. ", "Ab jetzt nur noch ", "Ich bevorzuge x. ",
        "Toujours utiliser x. ", "Ne jamais faire ", "Je préfère x. ",
        "Siempre usa x. ", "Nunca hagas x. ", "Prefiero x. ", "Usa sempre x. ", "D'ora in poi ",
        "Sempre use x. ", "Prefiro x. ", "Gebruik altijd x. ",
        "Zawsze używaj x. ", "Всегда используй x. ", "Никогда не ",
        "总是使用x。", "以后都用", "いつもxを使って。", "今後は", "항상 x를 사용해. ",
        "don't ever not always never ", "please remember to always ", "Remember: ",
        "my name is x. ", "decided: ", "TODO: ", "I like x but not y, ",
    ),
    "markup": (
        "# a\n", "###### ", "* a\n", "1. a\n", "- [ ] a\n", "| a | b |\n", "|---|\n", "**a** ",
        "*", "__a", "~~a~~", "<b>a</b>", "<memory time=", "</memory>", "<|im_start|>", "[INST]",
        "<think>", "\\frac{", "$a$ ", "```py\nx\n```\n", "---\n", "a\n===\n", "[1]: http://a\n",
        '<summary part="1">', "[Summary: ",
    ),
    "data": (
        '{"a":', '{"a": 1}, ', "[[", "[1,", '"a": "b", ', "a: b\n", "  a:\n", "a=b&", "a,b,c\n",
        "<a b='c'/>", "0,0,0,0\n", "null,", "\\u0041", "key: value; ", "%20", "x-y: z\r\n",
        "INSERT INTO a VALUES (", '{"role": "user"} ', "a AND b OR ", "NEAR(a b) ", 'a" OR "b',
        "Traceback (most recent call last):\n", "+++ a/b\n--- a/b\n@@ -1 +1 @@\n", "fooBar",
        "FooBarBaz ", "foo_bar_baz ",
    ),
    "scripts": (
        "鑫", "鑫淼 ", "あア", "한국어 ", "ไทย", "русский ", "ёлка", "αιαι",
        "άέ ", "Σς", "İi", "ß", "ﬁ", "שלום ", "مرحبا ", "हिन्दी ",
        "e\u0301", "a\u0300\u0301\u0302", "\u0301", "\u200b", "a\u200b",
        "\u200d👩", "👍", "👩‍👩‍👧 ", "🇩🇪", "\u202ea\u202c", "\u2066",
        "\ufeff", "Å ", "ǅ", "𝒜", "\U000e0041", "。", "！？", "、", "鑫1",
        "鑫a ",
    ),
    "names": (
        "Ada ", "Ada Lovelace ", "A. B. ", "Dr. ", "O'Neil-", "McA", "user: ", "Ada said ",
        "von der ", "Ada's ", "IBM ", "i.e. ", "e.g. ", "U.S.A. ", "Mr. Mr. ", "Ada and Bob and ",
        "x says y says ", "@ada ", "#tag ",
    ),
    "words": (
        "the ", "not ", "a b ", "buffalo ", "running runs ran ", "ab abc abcd ", "row ", "er ",
        "und ", "ing", "ational", "ness ", "because because, ", "word word. ", "I I'm I'd ",
        "he she it ", "? a", "why? ",
    ),
}  # fmt: skip
"""What is repeated, by family."""


def repeated(unit: str) -> Make:
    def make(size: int) -> str:
        return unit * (size // len(unit.encode()) + 1)

    return make


def _counted(form: str) -> Make:
    """The form with a number that goes up."""

    def make(size: int) -> str:
        parts: list[str] = []
        while size > 0:
            parts.append(form.format(len(parts)))
            size -= len(parts[-1].encode())
        return "".join(parts)

    return make


def _drawn(letters: str, *, least: int = 0, most: int = 0, between: str = "") -> Make:
    """Words of letters drawn by chance, the same each time; one word where no length is given."""

    def make(size: int) -> str:
        rng = random.Random(4)
        parts: list[str] = []
        while size > 0:
            length = rng.randint(least, most) if most else size
            parts.append("".join(rng.choices(letters, k=min(length, size))) + between)
            size -= len(parts[-1].encode())
        return "".join(parts)

    return make


def _two(first: str, second: str) -> Make:
    """One half of one thing, then one half of another."""

    def make(size: int) -> str:
        return repeated(first)(size // 2) + repeated(second)(size // 2)

    return make


def _nested(opening: str, closing: str) -> Make:
    def make(size: int) -> str:
        depth = size // len((opening + closing).encode()) + 1
        return opening * depth + closing * depth

    return make


def _mixed(size: int) -> str:
    """Something of everything, in turn."""
    units = [unit for family in REPEATED.values() for unit in family]
    sizes = len("".join(units).encode())
    return "".join(islice(cycle(units), len(units) * (size // sizes + 1)))


_B64 = ascii_letters + digits + "+/"
MADE: dict[str, Make] = {
    "counted instructions": _counted("Always use x{}. "),
    "counted preferences": _counted("I prefer a{0} over b{0}. "),
    "counted codes": _counted("QX-{} "),
    "counted dates": _counted("on {} May 2023, "),
    "counted names": _counted("Ada{} Byron{} said so. ".replace("{}", "{0}")),
    "counted assignments": _counted("token{0}=a1B2c3D4e5F6{0} "),
    "counted passwords": _counted("the password is Xq{}zK9! "),
    "counted passwords and sums": _counted("the password is Xq{0}zK9! and ${0} to u{0}@h.org. "),
    "counted addresses": _counted("user{0}@host{0}.example.org "),
    "counted lines": _counted("line {} of the log\n"),
    "counted headings": _counted("## Chapter {}\n\n"),
    "counted keys": _counted('"key{}": {{'),
    "counted sentences": _counted("Sentence {} decides nothing. "),
    "one long word": _drawn("a"),
    "long words": _drawn("abcdefgh", least=5_000, most=5_000, between=" "),
    "base64 in lines": _drawn(_B64, least=76, most=76, between="\n"),
    "base64 without a break": _drawn(_B64),
    "hexadecimal": _drawn("0123456789abcdef", least=64, most=64, between=" "),
    "digits": _drawn(digits, least=1, most=6, between=" "),
    "digits without a break": _drawn(digits),
    "different words": _drawn("abcdefghij", least=3, most=9, between=" "),
    "different capitals": _drawn("ABCDEFGHIJ", least=3, most=9, between=" "),
    "punctuation": _drawn(punctuation, least=10, most=80, between=" "),
    "everything printable": _drawn(printable, least=10, most=80, between=" "),
    "different Chinese": _drawn(
        "".join(map(chr, range(0x4E00, 0x5E00))), least=5, most=60, between="。"
    ),
    "different Greek": _drawn("αειουάέίόύϊϋ", least=3, most=60, between=" "),
    "one Greek word": _drawn("αειου"),
    "one Russian word": _drawn("её"),
    "marks on marks": _drawn("\u0300\u0301\u0308\u0327"),
    "flags and joints": _drawn("🇩🇪👩\u200d\ufe0f🏽", least=50, most=50, between=" "),
    "any of Unicode": _drawn(
        "".join(chr(code) for code in range(1, 0x3000) if not 0xD800 <= code < 0xE000),
        least=20, most=60, between=" ",
    ),
    "b before a": _two("bee ", "ant "),
    "a before b": _two("ant ", "bee "),
    "tokens, then dots": _two("token=", "."),
    "keys, then letters": _two("key=1", "a"),
    "spaces, then a word": _two(" ", "x"),
    "marks, then letters": _two("\u0301", "e"),
    "quotes, then words": _two('"', "a "),
    "digits, then letters": _two("1", "a"),
    "nested brackets": _nested("[", "]"),
    "nested objects": _nested('{"a":', "}"),
    "nested quotations": _nested("“a ", "”"),
    "nested mark-up": _nested("<div>", "</div>"),
    "nested code": _nested("``` ", " ```"),
    "something of everything": _mixed,
}  # fmt: skip
PATTERNS = (
    *(
        Pattern(family, repr(unit), repeated(unit))
        for family, units in REPEATED.items()
        for unit in units
    ),
    *(Pattern("made", name, make) for name, make in MADE.items()),
)
