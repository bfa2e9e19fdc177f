"""Hook calls of each agent as one kind of event, and answers in each agent's form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from enum import StrEnum
from typing import Any

from mnemosyned.importers.importer import moment_from
from mnemosyned.importers.transcript_formats import (
    ROLES,
    Role,
    TranscriptMessage,
    client_of_path,
    text_of,
)
from mnemosyned.importers.transcripts import clean

NAME_CHARS_MAX = 120
CONVERSATION_CHARS_MAX = 300
PATH_CHARS_MAX = 4_096

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


EVENTS: Mapping[str, HookEvent] = {
    "sessionstart": HookEvent.START,
    "preinvocation": HookEvent.START,
    "userpromptsubmit": HookEvent.PROMPT,
    "userpromptsubmitted": HookEvent.PROMPT,
    "beforesubmitprompt": HookEvent.PROMPT,
    "beforeagent": HookEvent.PROMPT,
    "preuserprompt": HookEvent.PROMPT,
    "chatmessage": HookEvent.PROMPT,
    "stop": HookEvent.STOP,
    "stopfailure": HookEvent.STOP,
    "agentstop": HookEvent.STOP,
    "afteragent": HookEvent.STOP,
    "afteragentresponse": HookEvent.STOP,
    "postcascaderesponse": HookEvent.STOP,
    "sessionidle": HookEvent.STOP,
    "precompact": HookEvent.COMPACT,
    "precompress": HookEvent.COMPACT,
    "sessioncompacting": HookEvent.COMPACT,
    "sessionend": HookEvent.END,
    "sessiondeleted": HookEvent.END,
}
"""Kinds of events by the tools' names for them, in lower case, letters alone."""
CONTINUED = frozenset({"resume", "compact", "fork"})
"""Sources of a start with the earlier context still in place."""
CLIENTS = frozenset(
    "claude-code codex cursor vscode copilot gemini antigravity opencode devin windsurf goose qwen "
    "agent".split()
)
UNKNOWN_CLIENT = "agent"

_MARKS: tuple[tuple[str, Callable[[Payload, Environment], bool]], ...] = (
    ("cursor", lambda payload, _: "cursor_version" in payload),
    ("windsurf", lambda payload, _: "agent_action_name" in payload),
    ("devin", lambda _, environment: "DEVIN_PROJECT_DIR" in environment),
    ("goose", lambda payload, _: _is_from_goose(payload)),
)
_MARKS_LAST: tuple[tuple[str, Callable[[Payload, Environment], bool]], ...] = (
    ("vscode", lambda payload, _: "hookEventName" in payload),
    ("antigravity", lambda payload, _: "conversationId" in payload),
    ("copilot", lambda payload, _: "sessionId" in payload),
    ("codex", lambda payload, _: "turn_id" in payload),
    ("gemini", lambda _, environment: "GEMINI_SESSION_ID" in environment),
    ("gemini", lambda _, environment: "GEMINI_PROJECT_DIR" in environment),
    ("claude-code", lambda _, environment: "CLAUDE_PROJECT_DIR" in environment),
    ("codex", lambda payload, _: "model" in payload and "transcript_path" in payload),
)

_DIRECTORIES = ("cwd", "working_dir", "directory")
_WORKSPACES = ("workspace_roots", "workspacePaths")
_PROJECT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "claude-code": ("CLAUDE_PROJECT_DIR",),
    "cursor": ("CURSOR_PROJECT_DIR", "CLAUDE_PROJECT_DIR"),
    "devin": ("DEVIN_PROJECT_DIR",),
    "gemini": ("GEMINI_PROJECT_DIR",),
    "qwen": ("QWEN_PROJECT_DIR", "GEMINI_PROJECT_DIR"),
}


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
        """Session id of the memories, `client:conversation`; empty without a conversation."""
        return f"{self.client}:{self.conversation}" if self.conversation else ""

    @property
    def is_fresh_start(self) -> bool:
        """Whether the event is the start of a session without earlier context."""
        return self.event is HookEvent.START and self.source not in CONTINUED


def parse_call(
    payload: Payload,
    environment: Environment,
    *,
    directory: str = "",
    arguments: tuple[str, ...] = (),
) -> HookCall:
    """Parse a tool's payload into a call in the common form.

    `directory` is the hook's own, used if the payload names none. `arguments` are those of the
    hook's command line. Names with a NUL character become empty, as no store takes them, except
    a transcript's, which is refused later.
    """
    transcript = _find_first_text(
        payload, "transcript_path", "transcriptPath", limit=PATH_CHARS_MAX
    ) or environment.get("CURSOR_TRANSCRIPT_PATH", "")
    client = client_of(payload, environment, transcript, arguments)
    name = _find_event_name(payload, arguments)
    letters = re.sub(r"[^a-z]", "", name.lower())
    messages = payload.get("messages")
    return HookCall(
        client=client,
        event=EVENTS.get(letters, HookEvent.OTHER),
        name=name,
        conversation=_empty_if_nul(
            _find_conversation_id(payload, environment, transcript)
        ),
        directory=_empty_if_nul(_find_directory(client, payload, environment))
        or _empty_if_nul(directory),
        transcript=transcript,
        source=_empty_if_nul(_find_first_text(payload, "source")),
        prompt=_find_prompt(payload),
        reply=_find_reply(payload, letters),
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
    """Return the name of the tool that called the hook.

    Marks in the payload come first: several tools run the hooks of one settings file.
    """
    for client, is_marked in _MARKS:
        if is_marked(payload, environment):
            return client
    named = arguments[0] if arguments else payload.get("client")
    if isinstance(named, str) and named in CLIENTS:
        return named
    if client := client_of_path(transcript):
        return client
    for client, is_marked in _MARKS_LAST:
        if is_marked(payload, environment):
            return client
    return UNKNOWN_CLIENT


def _find_event_name(payload: Payload, arguments: tuple[str, ...]) -> str:
    """Return the tool's own name of the event, or an empty text.

    It is in the payload, in the arguments, or follows from the payload's other keys.
    """
    named = _find_first_text(
        payload, "hook_event_name", "hookEventName", "agent_action_name", "event"
    )
    if named:
        return named
    if len(arguments) > 1:
        return arguments[1][:NAME_CHARS_MAX]
    if "invocationNum" in payload:  # a tool that names no events
        return "PreInvocation"
    is_silent_stop = "conversationId" in payload and "toolCall" not in payload
    return "Stop" if is_silent_stop else ""


def _find_conversation_id(
    payload: Payload, environment: Environment, transcript: str
) -> str:
    """Return the conversation's id: from payload, environment or the transcript's name."""
    named = _find_first_text(
        payload,
        *("conversation_id", "session_id", "sessionId", "conversationId"),
        *("sessionID", "trajectory_id"),
        limit=CONVERSATION_CHARS_MAX,
    )
    if named:
        return named
    for variable in ("CLAUDE_CODE_SESSION_ID", "GEMINI_SESSION_ID"):
        if environment.get(variable):
            return environment[variable][:CONVERSATION_CHARS_MAX]
    return transcript.rpartition("/")[2].partition(".")[0]


def _find_directory(client: str, payload: Payload, environment: Environment) -> str:
    """Return the conversation's directory: the tool's project, or its current folder."""
    for variable in _PROJECT_VARIABLES.get(client, ()):
        if environment.get(variable):
            return environment[variable][:PATH_CHARS_MAX]
    if named := _find_first_text(payload, *_DIRECTORIES, limit=PATH_CHARS_MAX):
        return named
    for key in _WORKSPACES:
        roots = payload.get(key)
        if isinstance(roots, list) and roots and isinstance(roots[0], str):
            return roots[0].removeprefix("file://")[:PATH_CHARS_MAX]
    return ""


def _is_from_goose(payload: Payload) -> bool:
    """Return True if Goose sent the payload: only Goose names the event `event` alone."""
    return "event" in payload and "hook_event_name" not in payload


def _find_prompt(payload: Payload) -> str:
    """Return the user's prompt in a payload, or an empty text."""
    if isinstance(payload.get("prompt"), str):
        return str(payload["prompt"])
    info = payload.get("tool_info")
    if isinstance(info, Mapping) and isinstance(info.get("user_prompt"), str):
        return str(info["user_prompt"])
    message = payload.get("message") if _is_from_goose(payload) else None
    initial = payload.get("initialPrompt")
    return next((each for each in (message, initial) if isinstance(each, str)), "")


def _find_reply(payload: Payload, letters: str) -> str:
    """Return the agent's last message in a payload, or an empty text.

    `letters` are the lower-case letters of the event's name.
    """
    for key in ("last_assistant_message", "lastAssistantMessage", "prompt_response"):
        if isinstance(payload.get(key), str):
            return str(payload[key])
    if letters == "afteragentresponse" and isinstance(payload.get("text"), str):
        return str(payload["text"])
    info = payload.get("tool_info")
    if isinstance(info, Mapping) and isinstance(info.get("response"), str):
        return str(info["response"])
    return ""


def _empty_if_nul(text: str) -> str:
    """Return an empty text for a text with a NUL character, else the text."""
    return "" if "\0" in text else text


def _find_first_text(payload: Payload, *keys: str, limit: int = NAME_CHARS_MAX) -> str:
    """Return the first non-empty text under these keys, cut at `limit` characters; else empty."""
    for key in keys:
        value = payload.get(key)
        if isinstance(value, str) and value:
            return value[:limit]
    return ""


# -------------------------------------------------------------------- answers

Json = dict[str, Any]

OBSERVERS = frozenset({"goose", "windsurf"})
"""Tools whose hooks cannot inject context."""
START_ALONE = frozenset({"vscode", "copilot"})
"""Tools that take context only at the start of a session."""


def takes_context(call: HookCall) -> bool:
    """Return True if the tool injects the answer to this event into the agent's context."""
    if call.client in OBSERVERS:
        return False
    if call.event is HookEvent.PROMPT:
        return call.client not in START_ALONE
    return call.event is HookEvent.START


def make_answer(call: HookCall, context: str = "") -> Json:
    """Return the JSON object to print: with the context to inject, or one without any effect."""
    if not context:
        return {"continue": True} if call.name == "beforeSubmitPrompt" else {}
    return _ANSWER_FORMS.get(call.client, _make_claude_answer)(call, context)


def _make_claude_answer(call: HookCall, context: str) -> Json:
    """Return the answer with the context in Claude Code's form, which most tools take."""
    return {
        "hookSpecificOutput": {
            "hookEventName": call.name,
            "additionalContext": context,
        }
    }


def _make_cursor_answer(call: HookCall, context: str) -> Json:
    """Return the answer in Cursor's form; Claude Code's for hooks of Claude Code's settings."""
    if call.name[:1].isupper():
        return _make_claude_answer(call, context)
    if call.event is HookEvent.PROMPT:
        return {"continue": True, "additional_context": context}
    return {"additional_context": context}


_ANSWER_FORMS: Mapping[str, Callable[[HookCall, str], Json]] = {
    "cursor": _make_cursor_answer,
    "copilot": lambda _, context: {"additionalContext": context},
    "antigravity": lambda _, context: {"injectSteps": [{"ephemeralMessage": context}]},
}


# ------------------------------------------------------------------- messages

MESSAGES_MAX = 1_000
"""Messages read of one call, the newest."""


def hook_messages(call: HookCall) -> tuple[TranscriptMessage, ...]:
    """Return the messages sent by a tool's plugin, or else the event's prompt and reply."""
    if call.messages:
        return tuple(_parse_messages(call.messages[-MESSAGES_MAX:]))
    if call.client == "opencode":  # its plugin sends the same again, with ids
        return ()
    said: tuple[tuple[Role, str], ...] = (
        ("user", call.prompt if call.event is HookEvent.PROMPT else ""),
        ("assistant", call.reply),
    )
    return tuple(
        TranscriptMessage(role=role, text=text)
        for role, words in said
        if (text := clean(words))
    )


def _parse_messages(messages: tuple[Payload, ...]) -> Iterator[TranscriptMessage]:
    """Yield a plugin's messages with a known role and words, without tags of tools."""
    for message in messages:
        kind = message.get("role")
        role = ROLES.get(kind) if isinstance(kind, str) else None
        text = clean(text_of(message.get("content", message.get("text"))))
        if role and text:
            time = message.get("timestamp", message.get("created_at"))
            yield TranscriptMessage(
                role=role,
                text=text,
                created_at=moment_from(time, zone=UTC),
                unique_id=str(message.get("id") or ""),
            )
