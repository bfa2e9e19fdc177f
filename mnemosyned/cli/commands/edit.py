"""`mnem edit`: changes of a memory by options or in an editor."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import click

from mnemosyned import errors, instants
from mnemosyned.cli import arguments, calls, verb_command
from mnemosyned.cli.ids import with_whole_ids
from mnemosyned.cli.output.terminal import say
from mnemosyned.memory.values import EDITABLE, MemoryRecord
from mnemosyned.verbs.memories import EditMemory, Get

WORDS = "say the new words: --text 'We deploy on Mondays.'"
RULE = "---"
"""The line between the fields and the text."""
FIELDS = {"time": "created_at"} | {
    name: name for name in EDITABLE if name != "created_at"
}
"""The names of fields in the editor, with their names in the request."""

edit = verb_command.make_verb_command("edit", EditMemory)
_send = cast("Callable[..., object]", edit.callback)
"""Sends an edit request with the given fields; returns the exit code."""


def _run_edit(context: click.Context, /, **given: Any) -> object:  # noqa: ANN401
    """Send the changes given as options, or those made in the editor; return the exit code.

    Raises `InvalidRequest` if no changes are given and there is neither a terminal nor an editor.
    """
    if given.get("text") == "-":
        given["text"] = arguments.read_standard_input(WORDS)
    changes = any(given.get(name) not in (None, ()) for name in ("text", *EDITABLE))
    ids: Sequence[str] = given.get("id") or ()
    if not changes and len(ids) == 2 and " " in ids[1]:  # words in quotes
        return _send(**{**given, "id": ids[:1], "text": ids[1]})
    if changes or given.get("drop_history") or not ids:
        return _send(**given)
    if len(ids) > 1:  # a word could be another id
        raise errors.InvalidRequest(WORDS)
    if not (sys.stdin.isatty() or "EDITOR" in os.environ or "VISUAL" in os.environ):
        raise errors.InvalidRequest(
            "say what to change, as with --text or --session, or call this at a terminal, where "
            "the editor opens"
        )
    return _edit_in_editor(context, ids[0], given)


def _edit_in_editor(context: click.Context, id: str, given: dict[str, Any]) -> object:
    """Open a memory in the editor, and send the fields that were changed; return the exit code.

    If sending fails, the edited text is kept in a file, and the path of the file is printed.
    """
    with calls.connect_to_daemon(context) as client:
        (id,) = with_whole_ids("edit", {"id": [id]}, client)["id"]
        memory = client.call(Get(id, reveal=True)).memory
    if memory is None:
        raise errors.InvalidRequest(
            f"{id} is a summary, which follows from its memories: edit one of the memories "
            "that mnem expand shows"
        )
    handle, name = tempfile.mkstemp(prefix="mnem-edit-", suffix=".md")
    file = Path(name)
    keep = True
    try:
        os.close(handle)
        file.write_text(form_text(memory), encoding="utf-8")
        click.edit(filename=name)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise errors.InvalidRequest(f"{file} cannot be read: {error}") from error
        changed = changes_in(text, memory)
        if not changed:
            keep = False
            say("nothing was changed", err=True)
            return 0
        code = _send(**{**given, **changed, "id": (id,)})
        keep = False
    except (errors.MnemosynedError, click.ClickException):
        say(f"your text is kept in {file}", err=True)
        raise
    finally:
        if not keep:
            file.unlink(missing_ok=True)
    return code


def form_text(memory: MemoryRecord) -> str:
    """Return a memory as text for the editor: its fields, one a line, `RULE`, and the content."""
    fields = _form_fields(memory).items()
    lines = [f"{name}: {value}".rstrip() for name, value in fields]
    return "\n".join([*lines, RULE, memory.content, ""])


def _form_fields(memory: MemoryRecord) -> dict[str, str]:
    """Return the editable fields of a memory as text, by their names in the editor."""
    shown = {}
    for name, field in FIELDS.items():
        value = getattr(memory, field)
        if isinstance(value, datetime):
            value = instants.in_zone(value, None).isoformat(" ")
        elif isinstance(value, tuple):
            value = ", ".join(value)
        shown[name] = f"{value:g}" if isinstance(value, float) else str(value or "")
    return shown


def changes_in(edited: str, memory: MemoryRecord) -> dict[str, Any]:
    """Return the fields of a memory that were changed in the edited text, for the request.

    Raises `InvalidRequest` for an unknown field and a missing line `RULE`.
    """
    if not edited.strip():
        return {}
    head, rule, text = edited.partition(f"\n{RULE}\n")
    if not rule:
        raise errors.InvalidRequest(
            f"the line {RULE!r} between the fields and the text is missing"
        )
    shown = _form_fields(memory)
    changed: dict[str, Any] = {}
    for line in filter(str.strip, head.splitlines()):
        name, colon, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        if not colon or name not in FIELDS:
            raise errors.InvalidRequest(
                f"there is no field {name!r}; the fields are {', '.join(FIELDS)}"
            )
        if value != shown[name]:
            changed[FIELDS[name]] = value
    if "tags" in changed:
        changed["tags"] = (changed["tags"],)
    text = text.removesuffix("\n")
    if text != memory.content and text.strip():
        changed |= {"text": text, "if_text": memory.content}
    return changed


for _option in edit.params:
    if _option.name == "created_at":
        _option.opts.insert(0, "--time")
edit.callback = click.pass_context(_run_edit)
