"""Requests for every verb and path, made from the structs that define them: valid, nearly so, or wild."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes, urlencode

from fuzz.room import any_path
from fuzz.surfaces import Surfaces
from fuzz.values import NUMBERS, any_text, any_time, anything, encoded, nested
from msgspec import inspect

from mnemosyned.verbs.exchange import Export
from mnemosyned.verbs.facade import ALIASES, VERBS

Fields = dict[str, Any]

IDS = ("id", "supersedes", "cycle", "after", "mark", "id_prefix")
LEARNED = ("id", "cycle", "episode", "call", "next", "mark")
"""Names of what later requests ask for again."""
TAGS = ("work", "tea time", "Ünïcödé", "x" * 64)
SELECTING = ("forget", "edit", "tag", "untag", "pin", "unpin")
FILTERS = ("query", "tag", "since", "until", "person", "session", "source")
SURFACES = ("mcp", "hooks", "export", "import")
"""What is no verb and has a path of its own."""
KNOWN_MAX = 300
PEOPLE = ("Ada", "Grace", "Zoë Müller", "李雷")
WORDS = ("user", "assistant", "tool", "system", "Ada", "")


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: for a POST its fields, or bytes that are not JSON."""

    method: str
    verb: str
    fields: Any
    body: bytes | None
    path: str


def by_post(verb: str, fields: Any, *, path: str = "") -> Sent:  # noqa: ANN401 what JSON can hold
    """A call with a JSON body."""
    return Sent("POST", verb, fields, encoded(fields).encode(), path or f"/v1/{verb}")


def by_get(verb: str, fields: Fields) -> Sent:
    """A call of a verb with everything in the URL."""
    pairs = [
        (name, item if isinstance(item, str) else encoded(item))
        for name, value in fields.items()
        for item in (value if isinstance(value, list) else [value])
    ]
    return Sent(
        "GET",
        verb,
        fields,
        None,
        f"/v1/{verb}?{urlencode(pairs, errors='surrogatepass')}",
    )


class Requests:
    """Makes requests by chance; what answers named is asked for again."""

    def __init__(
        self, seed: str, *, without: Sequence[str] = (), room: Path = Path("/none")
    ) -> None:
        self._chance = random.Random(seed)
        self._room = room
        self._known = ["m1"]
        often = ["remember", "compact", *SURFACES] * 2
        names = [*VERBS, *ALIASES, *SURFACES, *often, "mcp", "hooks"]
        self._verbs = [name for name in names if name not in without]
        self._types = {
            name: inspect.type_info(VERBS[ALIASES.get(name, name)])
            for name in self._verbs
            if name not in SURFACES
        }
        self._exported = inspect.type_info(Export)
        self._surfaces = Surfaces(
            self._chance, fields=self._fields, path=self._path, id=self._id
        )

    def learn(self, answer: object) -> None:
        """Note the ids in an answer, or the lines of an export."""
        if isinstance(answer, str) and answer.startswith("{"):
            self._surfaces.learn(answer)
        stack = [answer]
        while stack:
            value = stack.pop()
            if isinstance(value, dict):
                ids = (value.get(name) for name in LEARNED)
                self._known += [id for id in ids if isinstance(id, str) and id]
                stack += list(value.values())[:20]
            elif isinstance(value, list):
                stack += value[:20]
        del self._known[:-KNOWN_MAX]

    def next(self) -> Sent:
        """A request."""
        verb = self._chance.choice(self._verbs)
        if verb in SURFACES:
            return self._of_surface(verb)
        fields = self._fields(self._types[verb])
        if verb in SELECTING and self._chance.random() < 0.7:
            self._select(fields)
        kind = self._chance.random()
        if kind < 0.25:
            self._spoil(fields, self._types[verb])
        elif kind < 0.28:
            fields = {name: anything(self._chance) for name in fields} | {
                "id": self._id()
            }
        if self._chance.random() < 0.15:
            return by_get(verb, fields)
        sent = by_post(verb, fields)
        if kind > 0.95:
            return self._mangled(sent)
        return sent

    def _of_surface(self, name: str) -> Sent:
        if name == "export":
            fields = self._fields(self._exported)
            if self._chance.random() < 0.3:
                self._spoil(fields, self._exported)
            return by_get(name, fields)
        if name == "import":
            lines = self._surfaces.lines()
            body = "\n".join(lines).encode("utf-8", "surrogatepass")
            return Sent("POST", name, None, body, f"/v1/{name}")
        fields = self._surfaces.mcp() if name == "mcp" else self._surfaces.hook()
        sent = by_post(name, fields, path=f"/{name}")
        return self._mangled(sent) if self._chance.random() < 0.03 else sent

    # ------------------------------------------------------------------ fields

    def _fields(self, type_: inspect.Type) -> Fields:
        """Fields of the types they should have, the optional ones now and then."""
        if not isinstance(type_, inspect.StructType):
            raise TypeError(f"{type_} is no struct")
        dense = self._chance.choice((0.1, 0.3, 0.7))
        return {
            field.encode_name: self._named(field.encode_name, field.type)
            for field in type_.fields
            if field.required or self._chance.random() < dense
        }

    def _named(self, name: str, type_: inspect.Type) -> Any:  # noqa: ANN401 of that type
        chance = self._chance
        always: dict[str, Callable[[], Any]] = {
            "person": lambda: chance.choice(PEOPLE),
            "message": self._message,
            "messages": lambda: [
                self._message() for _ in range(chance.choice((1, 3, 12, 40)))
            ],
            "file": self._path,
            "paths": lambda: [self._path() for _ in range(chance.choice((0, 1, 1, 3)))],
        }
        mostly: dict[str, Callable[[], Any]] = {
            **dict.fromkeys(IDS, self._id),
            "session": lambda: f"s{chance.randint(0, 9)}",
            "source": lambda: chance.choice(("chat", "mail", "photo")),
            "tag": lambda: chance.sample(TAGS, chance.randint(1, 2)),
            "tags": lambda: chance.sample(TAGS, chance.randint(1, 2)),
        }
        if name in always:
            return always[name]()
        if name in mostly and chance.random() < 0.8:
            return mostly[name]()
        return self._typed(type_)

    def _typed(self, type_: inspect.Type) -> Any:  # noqa: ANN401 of that type
        chance = self._chance
        makers: dict[type[inspect.Type], Callable[[Any], Any]] = {
            inspect.Metadata: lambda given: self._typed(given.type),
            inspect.UnionType: lambda given: self._typed(chance.choice(given.types)),
            inspect.EnumType: lambda given: chance.choice(
                [choice.value for choice in given.cls]
            ),
            inspect.LiteralType: lambda given: chance.choice(given.values),
            inspect.ListType: lambda given: [
                self._typed(given.item_type) for _ in range(chance.choice((0, 1, 2, 5)))
            ],
            inspect.StructType: self._fields,
            inspect.DictType: lambda _: {
                any_text(chance)[:30]: anything(chance)
                for _ in range(chance.randint(0, 3))
            },
            inspect.IntType: lambda given: int(self._number(given)),
            inspect.FloatType: self._number,
            inspect.StrType: lambda _: any_text(chance),
            inspect.BoolType: lambda _: chance.random() < 0.5,
            inspect.DateTimeType: lambda _: any_time(chance),
            inspect.NoneType: lambda _: None,
        }
        return makers.get(type(type_), lambda _: anything(chance))(type_)

    def _number(self, type_: inspect.IntType | inspect.FloatType) -> float:
        """A number at an end of the range or in the middle."""
        low, high = type_.ge or 0, type_.le or 1_000
        return self._chance.choice((low, high, (low + high) / 2, low + 1))

    def _path(self) -> str:
        return any_path(self._chance, self._room)

    def _id(self) -> str:
        if self._chance.random() < 0.8:
            return self._chance.choice(self._known)
        return self._chance.choice(
            (f"m{self._chance.randint(0, 500)}", "last", "c-0", "m-0")
        )

    def _message(self) -> Any:  # noqa: ANN401 some are no messages
        chance = self._chance
        text = any_text(chance)
        call = {
            "id": "call-1",
            "type": "function",
            "function": {"name": "sh", "arguments": text},
        }
        block = {
            "type": chance.choice(("text", "image", "tool_use", "tool_result")),
            "text": text,
        }
        forms: tuple[Any, ...] = (
            {"role": chance.choice(WORDS), "content": text},
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call-1", "content": text},
            {"role": "user", "content": [block, anything(chance)]},
            {"role": anything(chance), "content": anything(chance), "id": self._id()},
            {"role": "user", "content": text, "created_at": any_time(chance)},
            {
                "role": "system",
                "content": text,
                "metadata": {"kind": "summary", "x": nested(chance)},
            },
        )
        return chance.choices(forms, (4, 4, 2, 2, 2, 1, 1, 0.2))[0]

    def _select(self, fields: Fields) -> None:
        """Select by ids or by filters, as these verbs want it."""
        if self._chance.random() < 0.6:
            others = [*FILTERS, "after", "mark"]
            fields["id"] = self._id()
        else:
            others = ["id", "after", "mark"]
            fields["query"] = any_text(self._chance)
        for name in others:
            fields.pop(name, None)

    # ---------------------------------------------------------------- spoiling

    def _spoil(self, fields: Fields, type_: inspect.Type) -> None:
        """Break one thing: a type, a range, a name, or a length."""
        chance = self._chance
        if not isinstance(type_, inspect.StructType):
            return
        name = chance.choice(
            [field.encode_name for field in type_.fields] or ["nothing"]
        )
        kind = chance.random()
        if kind < 0.5:
            fields[name] = anything(chance)
        elif kind < 0.65:
            fields[name] = chance.choice(NUMBERS)
        elif kind < 0.75:
            fields.pop(name, None)
        elif kind < 0.85:
            fields[any_text(chance)[:40]] = anything(chance)
        elif kind < 0.9:
            fields[name] = [fields.get(name)] * chance.choice((2, 1_001))
        elif kind < 0.95:
            fields[name] = nested(chance)
        else:
            fields[name] = {"a": fields.get(name)}

    def _mangled(self, sent: Sent) -> Sent:
        """Bytes that may be JSON no longer, or another path."""
        chance = self._chance
        body = bytearray(sent.body or b"{}")
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(body) + 1)
            change = chance.randrange(4)
            if change == 0:
                del body[at : at + chance.randint(1, 5)]
            elif change == 1:
                body[at:at] = bytes(chance.choices(range(256), k=chance.randint(1, 4)))
            elif change == 2:
                body[at:at] = chance.choice(
                    (b"\xef\xbb\xbf", b"\\ud800", b"\\u0000", b"\xff", b"[[")
                )
            else:
                body = body[:at]
            if not body:
                break
        path = sent.path
        if chance.random() < 0.1:
            path = f"/{quote_from_bytes(bytes(chance.choices(range(256), k=6)))}"
        return Sent("POST", sent.verb, None, bytes(body), path)
