"""Hook calls of each agent as one kind of event, and answers in each agent's form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mnemosyned.agents.hooks.client import find_directory, find_text, find_transcript
from mnemosyned.importers import transcripts
from mnemosyned.text.rule_files import compile_on_use, read_tables

NAME_CHARS_MAX = 120
PATH_CHARS_MAX = 4_096

Json = dict[str, Any]
Payload = Mapping[str, Any]
Environment = Mapping[str, str]


class HookEvent(StrEnum):
    """A kind of event, the same for every tool."""

    START = "start"
    PROMPT = "prompt"
    STOP = "stop"
    COMPACT = "compact"
    END = "end"
    OTHER = "other"


_TABLES: Json = read_tables(__file__, "events.toml")
_FIELDS = _TABLES["fields"]
EVENTS = {
    name: HookEvent(event)
    for event, names in _TABLES["events"].items()
    for name in names.split()
}
"""Kinds of events by the tools' names for them, in lower case, letters alone."""
CLIENTS = frozenset(_TABLES["clients"])
_WINDSURF_STEP = compile_on_use(_TABLES["windsurf_step"].replace("\n", ""))
_OWN_CLIENT = re.compile(r"[a-z][a-z0-9-]{0,39}")
"""Form of a name that a tool gives itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """A call of a hook, in one form for every tool."""

    client: str
    event: HookEvent
    name: str = ""
    """The tool's own name of the event."""
    conversation: str = ""
    directory: str = ""
    transcript: str = ""
    source: str = ""
    """Reason of a session's start, such as `resume`."""
    prompt: str = ""
    reply: str = ""
    """The last message of the agent."""
    messages: tuple[Payload, ...] = ()
    """Messages that the tool's plugin sent."""
    project: str = ""
    """The project named by the environment."""

    @property
    def session(self) -> str:
        """The session id of the call's memories: `client:conversation`; empty without one."""
        return f"{self.client}:{self.conversation}" if self.conversation else ""

    @property
    def is_fresh_start(self) -> bool:
        """Whether the event starts a session without earlier context, unlike a resumed session."""
        return self.event is HookEvent.START and self.source not in _TABLES["continued"]


def parse_call(
    payload: Payload,
    environment: Environment,
    *,
    directory: str = "",
    arguments: tuple[str, ...] = (),
) -> HookCall:
    """Return a tool's hook call in the common form.

    `directory` and `arguments` are the hook process's own. A name with a NUL character becomes empty, as no
    store takes it; a transcript with one in its path is refused later.
    """
    transcript = find_transcript(payload, environment)[:PATH_CHARS_MAX]
    client = client_of(payload, environment, transcript, arguments)
    name = _find_event_name(payload, arguments)
    letters = re.sub(r"[^a-z]", "", name.lower())
    messages = payload.get("messages")
    named = find_text(payload, _FIELDS["conversation"]) or find_text(
        environment, ("CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID")
    )
    in_path = transcript.rpartition("/")[2].partition(".")[0]
    variables = _TABLES["project_variables"].get(client, ())
    project = find_text(environment, variables) or find_directory(payload)
    return HookCall(
        client=client,
        event=EVENTS.get(letters, HookEvent.OTHER),
        name=name,
        conversation=_empty_if_nul(named[:300] or in_path),
        directory=_empty_if_nul(project[:PATH_CHARS_MAX]) or _empty_if_nul(directory),
        transcript=transcript,
        source=_empty_if_nul(find_text(payload, _FIELDS["source"])[:NAME_CHARS_MAX]),
        prompt=_find_message_text("prompt", payload, letters),
        reply=_find_message_text("reply", payload, letters),
        messages=tuple(
            message
            for message in (messages if isinstance(messages, list) else ())
            if isinstance(message, Mapping)
        ),
        project=_empty_if_nul(environment.get("MNEMOSYNE_PROJECT", "")),
    )


def client_of(
    payload: Payload,
    environment: Environment,
    transcript: str,
    arguments: tuple[str, ...] = (),
) -> str:
    """Return the name of the tool that called the hook, such as "cursor".

    Several tools run the hooks of one settings file, so typical keys and variables come first. Then
    come the first argument or the payload's `client`, the transcript's path, and less certain keys.
    """
    marks = _find_marked_clients("marks", payload, environment)
    if client := next(marks, ""):
        return client
    named = arguments[0] if arguments else payload.get("client")
    if isinstance(named, str) and (
        named in CLIENTS or (not arguments and _OWN_CLIENT.fullmatch(named))
    ):
        return named
    if client := transcripts.client_of_path(transcript):
        return client
    marks = _find_marked_clients("late_marks", payload, environment)
    return next(marks, "agent")


def _find_marked_clients(
    table: str, payload: Payload, environment: Environment
) -> Iterator[str]:
    """Yield the tools whose typical keys or variables, listed in `table`, are in the payload or environment."""
    for row in _TABLES[table]:
        is_marked = payload.keys() >= {*row.get("keys", ())}
        is_marked &= environment.keys() >= {*row.get("variables", ())}
        if is_marked and row.get("without") not in payload:
            yield row["client"]


def _find_event_name(payload: Payload, arguments: tuple[str, ...]) -> str:
    """Return the event's name in the tool's own words; empty if unknown."""
    if named := find_text(payload, _FIELDS["name"]):
        return named[:NAME_CHARS_MAX]
    if len(arguments) > 1:
        return arguments[1][:NAME_CHARS_MAX]
    if "invocationNum" in payload:  # a tool that names no events
        return "PreInvocation"
    is_silent_stop = "conversationId" in payload and "toolCall" not in payload
    return "Stop" if is_silent_stop else ""


def _find_message_text(table: str, payload: Payload, event: str) -> str:
    """Return the user's prompt or the agent's reply in a payload, by the rows of `table`; empty without one."""
    for row in _TABLES[table]:
        holder = payload.get(row["inside"]) if "inside" in row else payload
        text = holder.get(row["key"]) if isinstance(holder, Mapping) else None
        is_meant = row.get("event", event) == event
        is_meant &= row.get("without") not in payload
        if (
            isinstance(text, str)
            and is_meant
            and {*row.get("beside", ())} <= {*payload}
        ):
            return text
    return ""


def _empty_if_nul(text: str) -> str:
    """Return the text, or an empty text if a NUL character is in it."""
    return "" if "\0" in text else text


# -------------------------------------------------------------------- answers


def takes_context(call: HookCall) -> bool:
    """Return True if the calling tool shows the answer's text to its agent at this event."""
    if call.client in _TABLES["observers"]:
        return False
    if call.event is HookEvent.PROMPT:
        return call.client not in _TABLES["start_alone"]
    return call.event is HookEvent.START


def make_answer(call: HookCall, context: str = "") -> Json:
    """Return the JSON object for a hook to print, with the `context` for the tool to inject, if any."""
    if not context:
        return {"continue": True} if call.name == "beforeSubmitPrompt" else {}
    match call.client:
        # Cursor also runs hooks of Claude Code's settings, whose names begin with a capital letter.
        case "cursor" if not call.name[:1].isupper():
            goes_on = {"continue": True} if call.event is HookEvent.PROMPT else {}
            return {**goes_on, "additional_context": context}
        case "copilot":
            return {"additionalContext": context}
        case "antigravity":
            return {"injectSteps": [{"ephemeralMessage": context}]}
    # Claude Code's form, which most tools take.
    output = {"hookEventName": call.name, "additionalContext": context}
    return {"hookSpecificOutput": output}


# ------------------------------------------------------------------- messages

MESSAGES_MAX = 1_000
"""Maximum messages read of one call, the newest ones."""


def hook_messages(call: HookCall) -> tuple[transcripts.TranscriptMessage, ...]:
    """Return the cleaned messages of a call: `messages`, or if empty the prompt and the reply.

    The prompt and reply of OpenCode are left out, as its plugin sends them again as `messages`.
    """
    said: list[transcripts.TranscriptMessage] = []
    for message in call.messages[-MESSAGES_MAX:]:
        said += transcripts.parse_message(
            message.get("role"),
            message.get("content", message.get("text")),
            message.get("timestamp", message.get("created_at")),
            id=str(message.get("id") or ""),
        ).messages
    # The plugin of OpenCode sends prompt and reply again, with ids.
    if not call.messages and call.client != "opencode":
        prompt = call.prompt if call.event is HookEvent.PROMPT else ""
        is_windsurf = call.client == "windsurf"
        reply = _WINDSURF_STEP.sub("", call.reply) if is_windsurf else call.reply
        said = [
            transcripts.TranscriptMessage(role="user", text=prompt),
            transcripts.TranscriptMessage(role="assistant", text=reply),
        ]
    return tuple(transcripts.clean_messages(said))
