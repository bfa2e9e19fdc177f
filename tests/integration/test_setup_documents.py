"""Configuration files edited as text: exactly what was asked, and back, with layout kept."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.cases import each_case

from mnemosyned.agents.setup import documents
from mnemosyned.agents.setup.documents import Document, Unreadable, with_value
from mnemosyned.agents.setup.files import FileRefused

SERVER = {"command": "/bin/mnem", "args": ["mcp"]}
ENTRY = ("mcpServers", "mnem")

KEYS = st.sampled_from(["a", "b", "mcpServers", "hooks", "x y", 'q"uote', "ü", ""])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=6)
DATA = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, DATA, max_size=4)
BLANKS = st.sampled_from(
    ["", " ", "\n", "\t", "\r\n  ", " // note, } ]\n", "/* { [ , */", " // x\r\n\t"]
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """JSON of random data with random blanks, comments and trailing commas."""

    def shown(value: Any) -> str:  # noqa: ANN401 any JSON
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        if isinstance(value, dict):
            members = [
                f"{json.dumps(key)}{draw(BLANKS)}:{draw(BLANKS)}{shown(member)}"
                for key, member in value.items()
            ]
        else:
            members = [shown(member) for member in value]
        members = [f"{draw(BLANKS)}{member}{draw(BLANKS)}" for member in members]
        trailing = "," if bool(members) and draw(st.booleans()) else ""
        return opening + ",".join(members) + trailing + draw(BLANKS) + closing

    return draw(BLANKS) + shown(draw(OBJECTS)) + draw(BLANKS)


@given(texts())
def test_a_set_member_is_the_only_difference(text: str) -> None:
    data = documents.read_jsonc(text)
    try:
        edited = documents.set_in_jsonc(text, ENTRY, SERVER)
    except FileRefused:
        assert not isinstance(data.get("mcpServers", {}), dict)
        return

    assert documents.read_jsonc(edited) == with_value(data, ENTRY, SERVER)


@given(texts())
def test_what_was_set_and_removed_leaves_the_same_bytes(text: str) -> None:
    data = documents.read_jsonc(text)
    container = data.get("mcpServers")
    if not isinstance(container, dict) or not container or "mnem" in container:
        return

    edited = documents.set_in_jsonc(text, ENTRY, SERVER)

    assert documents.remove_from_jsonc(edited, ENTRY) == text


@given(texts())
def test_an_appended_element_is_the_only_difference(text: str) -> None:
    data = documents.read_jsonc(text)
    path = ("hooks", "Stop")
    hooks = data.get("hooks", {})
    if not isinstance(hooks, dict):
        return

    edited = documents.set_in_jsonc(text, path, SERVER, append=True)
    again = documents.set_in_jsonc(edited, path, {"second": [1]}, append=True)

    expected = with_value(data, path, [*(hooks.get("Stop") or []), SERVER])
    assert documents.read_jsonc(edited) == expected
    assert documents.read_jsonc(again)["hooks"]["Stop"] == [SERVER, {"second": [1]}]
    assert documents.remove_from_jsonc(again, (*path, 1)) == edited


@given(texts(), st.data())
def test_a_removed_member_is_the_only_change(text: str, data: st.DataObject) -> None:
    before = documents.read_jsonc(text)
    if not before:
        return
    key = data.draw(st.sampled_from(sorted(before)))

    edited = documents.remove_from_jsonc(text, (key,))

    assert documents.read_jsonc(edited) == {k: v for k, v in before.items() if k != key}


@given(st.text(alphabet='{}[]",:/*\n\\ua1 -.e', max_size=30))
def test_no_json_is_refused_or_read_otherwise(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        return

    assert documents.read_jsonc(text) == expected


@each_case(
    ("text", "place"),
    [
        ('{"a" 1}', "line 1, column 6: expecting ':'"),
        ('{\n"a": x}', "line 2, column 6: expecting value"),
        ('{"a": 1 "b": 2}', "line 1, column 9: expecting ','"),
        ("{} {}", "line 1, column 4: extra data"),
        ("{a: 1}", "line 1, column 2: expecting property name"),
        ("{", "line 1, column 2: expecting property name"),
        ("/* open", "line 1, column 1: expecting value"),
        ("[ ,]", "line 1, column 3: expecting value"),
        (
            "[1, /* */ ,]",
            "line 1, column 3: illegal trailing comma"
            if sys.version_info >= (3, 13)
            else "line 1, column 12: expecting value",
        ),
        ("[NaN]", "NaN is no JSON"),
    ],
)
def test_what_is_not_json_is_refused_with_its_place(text: str, place: str) -> None:
    with pytest.raises(Unreadable, match=f"^{re.escape(place)}"):
        documents.read_jsonc(text)


IN_TABS = """{
\t"mcpServers": {
\t\t"a": {} // mine
\t}
}
"""
IN_TABS_AFTER = """{
\t"mcpServers": {
\t\t"a": {}, // mine
\t\t"mnem": {
\t\t\t"c": 1
\t\t}
\t}
}
"""
TRAILING_COMMA = """{
    "z": 1,
}
"""
TRAILING_COMMA_AFTER = """{
    "z": 1,
    "mcpServers": {
        "mnem": {
            "c": 1
        }
    },
}
"""
NEW = """{
  "mcpServers": {
    "mnem": {
      "c": 1
    }
  }
}
"""


@each_case(
    ("before", "after"),
    [
        ('{"mcpServers": {}}', '{"mcpServers": {"mnem": {"c": 1}}}'),
        (IN_TABS, IN_TABS_AFTER),
        (TRAILING_COMMA, TRAILING_COMMA_AFTER),
        (
            TRAILING_COMMA.replace("\n", "\r\n"),
            TRAILING_COMMA_AFTER.replace("\n", "\r\n"),
        ),
        ("", NEW),
        ("// mine\n", f"// mine\n{NEW}"),
    ],
)
def test_an_edit_follows_the_layout(before: str, after: str) -> None:
    assert documents.set_in_jsonc(before, ENTRY, {"c": 1}) == after


def test_a_key_that_occurs_twice_is_not_edited() -> None:
    with pytest.raises(FileRefused, match="twice"):
        documents.set_in_jsonc(
            '{"mcpServers": {}, "mcpServers": {"a": 1}}', ENTRY, SERVER
        )


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{}"), ("a.toml", "a = {}"), ("a.yaml", "a: {}")]
)
def test_deep_nesting_is_refused(name: str, text: str) -> None:
    with pytest.raises(Unreadable, match="nest"):
        Document(Path(name), text.format("[" * 700 + "]" * 700))


TOML = [
    "",
    "# only a comment\n",
    'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "z"\n\n# the end',
    '[mcp_servers]\r\nother = { command = "z" }\r\n[tui]\r\nx = 1\r\n',
    'text = """\n[mcp_servers.mnem]\n"""\n',
]


@each_case("text", TOML)
def test_a_toml_table_is_set_renewed_and_taken_out(text: str) -> None:
    document = Document(Path("config.toml"), text)
    before = dict(document.data)
    path = ("mcp_servers", "mnem")

    document.set_value(path, SERVER)
    assert document.text.startswith(text)
    assert document.data["mcp_servers"]["mnem"] == SERVER

    if "[mcp_servers.mnem]" not in text:
        document.set_value(path, {**SERVER, "command": "/new/mnem"})
        document.remove(path)
        assert document.data == before
        assert document.text.rstrip() == text.rstrip()


def test_a_toml_table_between_others_is_taken_out_with_its_own_tables() -> None:
    text = 'a = 1\n\n[mcp_servers.mnem]\ncommand = "m"\n[mcp_servers.mnem.env]\nA = "b"\n\n[z]\n'
    document = Document(Path("config.toml"), text)

    document.remove(("mcp_servers", "mnem"))

    assert document.text == "a = 1\n\n[z]\n"


YAML = [
    ("", "extensions:\n  mnem:\n"),
    ("# mine\nGOOSE_MODEL: x", "# mine\nGOOSE_MODEL: x\nextensions:\n  mnem:\n"),
    (
        "extensions:\n    a:\n        cmd: x # mine\n\n# end\nz: 1\n",
        "extensions:\n    a:\n        cmd: x # mine\n    mnem:\n",
    ),
    ("extensions: {}\r\nz: 1\r\n", "extensions:\r\n  mnem:\r\n"),
    ("extensions:\n", "extensions:\n  mnem:\n"),
    ("extensions:\n  a:\n    l:\n    - 1\n    - 2", "    - 2\n  mnem:\n"),
]


@each_case(("text", "shown"), YAML)
def test_a_yaml_entry_is_set_renewed_and_taken_out(text: str, shown: str) -> None:
    document = Document(Path("config.yaml"), text)
    others = {k: v for k, v in document.data.items() if k != "extensions"}
    extensions = document.data.get("extensions") or {}
    path = ("extensions", "mnem")

    document.set_value(path, SERVER)
    assert shown in document.text

    document.set_value(path, {**SERVER, "command": "/new/mnem"})
    assert document.data["extensions"]["mnem"]["command"] == "/new/mnem"
    document.remove(path)
    assert document.data == {**others, "extensions": extensions}


@each_case(("name", "text"), [
    ("a.yaml", "servers: {a: {b: 1}}\n"),
    ("a.yaml", "servers: 1\n"),
    ("a.yaml", "servers:\nservers:\n"),
    ("a.toml", 'servers = { a = { command = "x" } }\n'),
])  # fmt: skip
def test_an_unusual_mapping_is_left_alone(name: str, text: str) -> None:
    document = Document(Path(name), text)

    with pytest.raises(FileRefused):
        document.set_value(("servers", "mnem"), SERVER)
