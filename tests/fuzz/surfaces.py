"""Requests for what is no verb: agents' protocol, hooks, exports and exact imports."""

import json
import random
from collections.abc import Callable
from itertools import chain, islice
from typing import Any

from fuzz.values import NUMBERS, any_text, any_time, anything, encoded
from msgspec import inspect

from mnemosyned.agents.hooks.events import CLIENTS, EVENTS
from mnemosyned.agents.mcp.protocol import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    SUPPORTED_VERSIONS,
    VERSION_KEY,
)
from mnemosyned.agents.mcp.server import METHODS, PROMPTS, SCHEME
from mnemosyned.agents.mcp.tools import TOOLS

Fields = dict[str, Any]

GROUPS_KEPT = 100
GROUPS_MAX = 5
BATCH_MAX = 3
EVENT_NAMES = (*EVENTS, "SessionStart", "UserPromptSubmit", "Stop", "session.idle", "")
PATH_NAMES = (
    "cwd", "working_dir", "directory", "transcript_path", "transcriptPath", "workspace_roots",
    "workspacePaths",
)  # fmt: skip
TEXT_NAMES = (
    "prompt", "source", "turn_id", "prompt_id", "client", "model", "last_assistant_message", "response",
    "reason", "trigger",
)  # fmt: skip
CONVERSATIONS = ("session_id", "sessionId", "conversation_id", "conversationId")
VARIABLES = (
    "CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CURSOR_TRANSCRIPT_PATH",
    "MNEMOSYNE_PROJECT", "GEMINI_SESSION_ID",
)  # fmt: skip


class Surfaces:
    """Makes such requests by chance; exports are imported again with a fault in them."""

    def __init__(
        self,
        chance: random.Random,
        *,
        fields: Callable[[inspect.Type], Fields],
        path: Callable[[], str],
        id: Callable[[], str],
    ) -> None:
        self._chance = chance
        self._fields = fields
        self._path = path
        self._id = id
        self._groups: list[list[str]] = []
        self._forms = {
            name: inspect.type_info(form) for name, (form, _) in TOOLS.items()
        }

    def learn(self, exported: str) -> None:
        """Keep the lines of an export, each summary together with its originals."""
        _, *lines, _ = exported.rstrip("\n").split("\n")
        following = iter(lines)
        for line in following:
            record = json.loads(line)
            # The newer one of a superseded learning may be in a line that is not chosen.
            if not record.get("superseded_by"):
                originals = islice(following, record.get("originals", 0))
                self._groups.append([line, *originals])
        del self._groups[:-GROUPS_KEPT]

    def mcp(self) -> Any:  # noqa: ANN401 some are no messages
        """A message of an agent, or a batch of them."""
        if self._chance.random() < 0.05:
            return [self._message() for _ in range(self._chance.randint(0, BATCH_MAX))]
        return (
            anything(self._chance) if self._chance.random() < 0.03 else self._message()
        )

    def hook(self) -> Fields:
        """A call of a hook."""
        chance = self._chance
        payload = {
            chance.choice(("hook_event_name", "event")): chance.choice(EVENT_NAMES),
            chance.choice(CONVERSATIONS): f"s{chance.randint(0, 9)}",
        }
        for name in chance.sample(PATH_NAMES, 2):
            payload[name] = self._path()
        for name in chance.sample(TEXT_NAMES, 3):
            payload[name] = any_text(chance)
        if chance.random() < 0.2:
            payload[chance.choice(list(payload))] = anything(chance)
        if chance.random() < 0.1:
            payload["messages"] = anything(chance)
        call: Fields = {
            "payload": payload,
            "environment": {chance.choice(VARIABLES): self._path()},
            "directory": self._path(),
            "arguments": [chance.choice(sorted(CLIENTS))],
            "time": chance.choice((0, 1.7e9, 1e308, -1, 253402300800, 5e-324)),
            "late": chance.random() < 0.2,
        }
        if chance.random() < 0.1:
            call[chance.choice(list(call))] = anything(chance)
        return call

    def lines(self) -> list[str]:
        """Lines of an export, one with a fault in it."""
        chance = self._chance
        chosen = chance.choices(
            self._groups or [["{}"]], k=chance.randint(1, GROUPS_MAX)
        )
        if chance.random() < 0.7 and len(chosen[-1]) == 1:
            chosen[-1] = [self._spoiled(chosen[-1][0])]
        return list(chain.from_iterable(chosen))

    # -------------------------------------------------------------------- parts

    def _message(self) -> Fields:
        chance = self._chance
        method = chance.choice([*METHODS, *["tools/call"] * 6, *["resources/read"] * 2])
        params = self._params(method)
        if chance.random() < 0.3:
            params["_meta"] = self._meta()
        message: Fields = {"jsonrpc": "2.0", "method": method, "params": params}
        if chance.random() < 0.95:
            message["id"] = chance.choice((1, "a", 0, -1, ""))
        if chance.random() < 0.15:
            name = chance.choice(list(message))
            message[name] = chance.choice((anything(chance), chance.choice(NUMBERS)))
        return message

    def _params(self, method: str) -> Fields:
        chance = self._chance
        if method == "tools/call":
            name = chance.choice(list(TOOLS))
            arguments = self._fields(self._forms[name])
            if chance.random() < 0.3:
                arguments[chance.choice([*arguments, "x"])] = anything(chance)
            return {"name": name, "arguments": arguments}
        if method == "resources/read":
            kind = chance.choice(("status", "memory/", "episode/", "day/", "", "x"))
            name = chance.choice((self._id(), any_time(chance)[:10], any_text(chance)))
            return {"uri": f"{SCHEME}{kind}{name}"}
        if method == "prompts/get":
            name = chance.choice([*PROMPTS, any_text(chance)])
            return {"name": name, "arguments": {"about": any_text(chance)}}
        if method == "initialize":
            return {
                "protocolVersion": chance.choice(
                    (*SUPPORTED_VERSIONS, any_text(chance))
                ),
                "clientInfo": {"name": any_text(chance)},
                "capabilities": chance.choice(({}, {"roots": {}}, anything(chance))),
            }
        return chance.choice(({}, {"cursor": any_text(chance)}))

    def _meta(self) -> Fields:
        chance = self._chance
        meta: Fields = {
            VERSION_KEY: chance.choice((*SUPPORTED_VERSIONS, any_text(chance))),
            CAPABILITIES_KEY: {},
            CLIENT_KEY: {"name": any_text(chance)},
            "progressToken": chance.choice((1, "p", None, anything(chance))),
        }
        return {
            name: meta[name] for name in chance.sample(list(meta), chance.randint(1, 4))
        }

    def _spoiled(self, line: str) -> str:
        chance = self._chance
        record = json.loads(line)
        if isinstance(record, dict) and record and chance.random() < 0.7:
            name = chance.choice([each for each in record if each != "superseded_by"])
            record[name] = chance.choice(
                (any_text(chance), any_time(chance), anything(chance))
            )
            if chance.random() < 0.3:
                record["id"] = self._id()
        return encoded(record) if chance.random() < 0.95 else line[: len(line) // 2]
