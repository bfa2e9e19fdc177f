"""Hook calls of each agent as one kind of event, and answers in each agent's form."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mnemosyned.importers.transcript_formats import (
    ROLES,
    Role,
    TranscriptMessage,
    client_of_path,
    moment_of,
    text_of,
)
from mnemosyned.importers.transcripts import clean

NAME_CHARS_MAX = 120
CONVERSATION_CHARS_MAX = 300
PATH_CHARS_MAX = 4_096

Payload = Mapping[str, Any]
Environment = Mapping[str, str]


class Event(StrEnum):
    """An event, whatever the tool calls it."""

    START = "start"
    PROMPT = "prompt"
    STOP = "stop"
    COMPACT = "compact"
    END = "end"
    OTHER = "other"


EVENTS: Mapping[str, Event] = {
    "sessionstart": Event.START,
    "preinvocation": Event.START,
    "userpromptsubmit": Event.PROMPT,
    "userpromptsubmitted": Event.PROMPT,
    "beforesubmitprompt": Event.PROMPT,
    "beforeagent": Event.PROMPT,
    "preuserprompt": Event.PROMPT,
    "chatmessage": Event.PROMPT,
    "stop": Event.STOP,
    "stopfailure": Event.STOP,
    "agentstop": Event.STOP,
    "afteragent": Event.STOP,
    "afteragentresponse": Event.STOP,
    "postcascaderesponse": Event.STOP,
    "sessionidle": Event.STOP,
    "precompact": Event.COMPACT,
    "precompress": Event.COMPACT,
    "sessioncompacting": Event.COMPACT,
    "sessionend": Event.END,
    "sessiondeleted": Event.END,
}
"""Events by their names in all tools, in lower case, letters alone."""
CONTINUED = frozenset({"resume", "compact", "fork"})
"""Starts of a session that has its context already."""
CLIENTS = frozenset(
    "claude-code codex cursor vscode copilot gemini antigravity opencode devin windsurf goose qwen "
    "agent".split()
)
UNKNOWN_CLIENT = "agent"

_MARKS: tuple[tuple[str, Callable[[Payload, Environment], bool]], ...] = (
    ("cursor", lambda payload, _: "cursor_version" in payload),
    ("windsurf", lambda payload, _: "agent_action_name" in payload),
    ("devin", lambda _, environment: "DEVIN_PROJECT_DIR" in environment),
    ("goose", lambda payload, _: _is_gooses(payload)),
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
    """A call of a hook, the same for every tool."""

    client: str
    event: Event
    name: str = ""
    """The event as the tool calls it."""
    conversation: str = ""
    directory: str = ""
    transcript: str = ""
    source: str = ""
    """How a session starts."""
    prompt: str = ""
    reply: str = ""
    """The last message of the agent."""
    turn: str = ""
    messages: tuple[Payload, ...] = ()
    """The messages of a tool whose plugin sends them."""
    project: str = ""
    """The project, where the environment names it."""
    fields: Payload = field(default_factory=dict)

    @property
    def session(self) -> str:
        """The session of its memories; empty without a conversation."""
        return f"{self.client}:{self.conversation}" if self.conversation else ""

    @property
    def starts_anew(self) -> bool:
        """Whether a session starts that has no context yet."""
        return self.event is Event.START and self.source not in CONTINUED


def parse_call(
    payload: Payload,
    environment: Environment,
    *,
    directory: str = "",
    arguments: tuple[str, ...] = (),
) -> HookCall:
    """Read what a tool sent; `directory` is the hook's own, and counts where nothing else does.

    A name with a NUL character is none, as no store keeps it; of a transcript it is refused later.
    """
    transcript = _first_text_of(
        payload, "transcript_path", "transcriptPath", limit=PATH_CHARS_MAX
    ) or environment.get("CURSOR_TRANSCRIPT_PATH", "")
    client = client_of(payload, environment, transcript, arguments)
    name = _event_name(payload, arguments)
    letters = re.sub(r"[^a-z]", "", name.lower())
    return HookCall(
        client=client,
        event=EVENTS.get(letters, Event.OTHER),
        name=name,
        conversation=_name(_conversation_id(payload, environment, transcript)),
        directory=_name(_directory(client, payload, environment)) or _name(directory),
        transcript=transcript,
        source=_name(_first_text_of(payload, "source")),
        prompt=_prompt(payload),
        reply=_reply(payload, letters),
        turn=_name(
            _first_text_of(
                payload, "prompt_id", "turn_id", "generation_id", "execution_id"
            )
        ),
        messages=_plugin_messages(payload),
        project=_name(environment.get("MNEMOSYNE_PROJECT", "")),
        fields=payload,
    )


def client_of(
    payload: Payload,
    environment: Environment,
    transcript: str,
    arguments: tuple[str, ...] = (),
) -> str:
    """Return the tool that called; several read the same file, so that its place says nothing."""
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


def _event_name(payload: Payload, arguments: tuple[str, ...]) -> str:
    named = _first_text_of(
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


def _conversation_id(
    payload: Payload, environment: Environment, transcript: str
) -> str:
    named = _first_text_of(
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


def _directory(client: str, payload: Payload, environment: Environment) -> str:
    """Return where the conversation takes place: the tool's project before its present folder."""
    for variable in _PROJECT_VARIABLES.get(client, ()):
        if environment.get(variable):
            return environment[variable][:PATH_CHARS_MAX]
    if named := _first_text_of(payload, *_DIRECTORIES, limit=PATH_CHARS_MAX):
        return named
    for key in _WORKSPACES:
        roots = payload.get(key)
        if isinstance(roots, list) and roots and isinstance(roots[0], str):
            return roots[0].removeprefix("file://")[:PATH_CHARS_MAX]
    return ""


def _is_gooses(payload: Payload) -> bool:
    """Whether Goose sent it, which names its events otherwise than all others."""
    return "event" in payload and "hook_event_name" not in payload


def _prompt(payload: Payload) -> str:
    if isinstance(payload.get("prompt"), str):
        return str(payload["prompt"])
    info = payload.get("tool_info")
    if isinstance(info, Mapping) and isinstance(info.get("user_prompt"), str):
        return str(info["user_prompt"])
    message = payload.get("message") if _is_gooses(payload) else None
    initial = payload.get("initialPrompt")
    return next((each for each in (message, initial) if isinstance(each, str)), "")


def _reply(payload: Payload, letters: str) -> str:
    for key in ("last_assistant_message", "lastAssistantMessage", "prompt_response"):
        if isinstance(payload.get(key), str):
            return str(payload[key])
    if letters == "afteragentresponse" and isinstance(payload.get("text"), str):
        return str(payload["text"])
    info = payload.get("tool_info")
    if isinstance(info, Mapping) and isinstance(info.get("response"), str):
        return str(info["response"])
    return ""


def _plugin_messages(payload: Payload) -> tuple[Payload, ...]:
    messages = payload.get("messages")
    if not isinstance(messages, list):
        return ()
    return tuple(message for message in messages if isinstance(message, Mapping))


def _name(text: str) -> str:
    return "" if "\0" in text else text


def _first_text_of(payload: Payload, *keys: str, limit: int = NAME_CHARS_MAX) -> str:
    """Return the first of these fields that is text and not empty."""
    for key in keys:
        value = payload.get(key)
        if isinstance(value, str) and value:
            return value[:limit]
    return ""


Json = dict[str, Any]

OBSERVERS = frozenset({"goose", "windsurf"})
"""Tools whose hooks cannot tell the agent anything."""
START_ALONE = frozenset({"vscode", "copilot"})
"""Tools that take context at the start of a session, and nowhere else."""


def takes_context(call: HookCall) -> bool:
    """Whether the tool passes on what a hook tells on this event."""
    if call.client in OBSERVERS:
        return False
    if call.event is Event.PROMPT:
        return call.client not in START_ALONE
    return call.event is Event.START


def answer(call: HookCall, context: str = "") -> Json:
    """Return what to print: the context, or that nothing is to be done."""
    if not context:
        return {"continue": True} if call.name == "beforeSubmitPrompt" else {}
    return _FORMS.get(call.client, _claude_answer)(call, context)


def _claude_answer(call: HookCall, context: str) -> Json:
    """Return the form that most tools take."""
    return {
        "hookSpecificOutput": {
            "hookEventName": call.name,
            "additionalContext": context,
        }
    }


def _cursor_answer(call: HookCall, context: str) -> Json:
    """Return Cursor's own form, or Claude Code's where it runs a hook of Claude Code's file."""
    if call.name[:1].isupper():
        return _claude_answer(call, context)
    if call.event is Event.PROMPT:
        return {"continue": True, "additional_context": context}
    return {"additional_context": context}


_FORMS: Mapping[str, Callable[[HookCall, str], Json]] = {
    "cursor": _cursor_answer,
    "copilot": lambda _, context: {"additionalContext": context},
    "antigravity": lambda _, context: {"injectSteps": [{"ephemeralMessage": context}]},
}


MESSAGES_MAX = 1_000
"""Messages of one call that are read, the newest."""


def messages_of(call: HookCall) -> tuple[TranscriptMessage, ...]:
    """Return what was said, by the messages of a plugin or by the prompt and the last answer."""
    if call.messages:
        return tuple(_sent(call.messages[-MESSAGES_MAX:]))
    if call.client == "opencode":  # its plugin sends the same again, with ids
        return ()
    said: tuple[tuple[Role, str], ...] = (
        ("user", call.prompt if call.event is Event.PROMPT else ""),
        ("assistant", call.reply),
    )
    return tuple(
        TranscriptMessage(role=role, text=text)
        for role, words in said
        if (text := clean(words))
    )


def _sent(messages: tuple[Payload, ...]) -> Iterator[TranscriptMessage]:
    for message in messages:
        kind = message.get("role")
        role = ROLES.get(kind) if isinstance(kind, str) else None
        text = clean(text_of(message.get("content", message.get("text"))))
        if role and text:
            yield TranscriptMessage(
                role=role,
                text=text,
                created_at=moment_of(_time(message)),
                unique_id=str(message.get("id") or ""),
            )


def _time(message: Payload) -> Any:  # noqa: ANN401 whatever the plugin sends
    return message.get("timestamp", message.get("created_at"))
