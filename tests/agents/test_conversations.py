"""Agents' own programs in a conversation, with our hooks and server as setup wrote them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from agents.answering_model import ANSWER, answering_model
from agents.users import User
from e2e.daemons import eventually, running

from mnemosyned.agents.setup.parts import Programs
from mnemosyned.agents.setup.targets import template_text

pytestmark = pytest.mark.agents

QUESTION = "When do we deploy?"
CONVERSATIONS_MAX = 3
"""A busy machine may take longer than a tool lets a prompt wait."""
HOOK = """#!/bin/sh
read -r call
printf '%s\\n' "$call" >> calls.jsonl
name=${call#*'"hook_event_name":"'}
name=${name%%'"'*}
printf '{"hookSpecificOutput":{"hookEventName":"%s","additionalContext":"told by %s"}}' \\
    "$name" "$name"
"""
"""A hook that begins at once: the plugin leaves one that is late."""
TWO_SESSIONS = """
import { mnem } from "./plugin.mjs";

const parts = [{ type: "text", text: "Look into it." }];
const info = { id: "m1", role: "user", time: { created: 0 } };
const session = {
  get: async ({ path: { id } }) => ({ data: { id, parentID: id === "part" ? "main" : undefined } }),
  messages: async () => ({ data: [{ info, parts }] }),
};
const { event } = await mnem({ client: { session }, directory: "/w" });
for (const sessionID of ["part", "main"])
  await event({ event: { type: "session.idle", properties: { sessionID } } });
"""

FIRST_PROMPT = """
import { mnem } from "./plugin.mjs";

const output = { message: {}, parts: [{ type: "text", text: "Look into it." }] };
const hooks = await mnem({ client: {}, directory: "/w" });
await hooks["chat.message"]({ sessionID: "main" }, output);
"""


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def claude_code(user: User, url: str) -> list[str]:
    user.environment |= {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-x",
        "IS_SANDBOX": "1",
    }
    return ["claude", "-p", QUESTION]


def codex(user: User, url: str) -> list[str]:
    config = f"""model = "m"
model_provider = "fake"

[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
wire_api = "responses"
"""
    user.write(".codex/config.toml", config)
    return ["codex", "exec", "--dangerously-bypass-hook-trust", QUESTION]


def copilot(user: User, url: str) -> list[str]:
    user.environment |= {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_MODEL": "m",
        "COPILOT_OFFLINE": "true",
    }
    return ["copilot", "-p", QUESTION, "--allow-all-tools"]


def gemini(user: User, url: str) -> list[str]:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    user.write(".gemini/settings.json", json.dumps(settings))
    user.environment |= {
        "GEMINI_API_KEY": "x",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return ["gemini", "-m", "gemini-2.5-flash", "-p", QUESTION]


def opencode(user: User, url: str) -> list[str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"m": {"name": "m"}},
    }
    config = {"provider": {"fake": provider}, "model": "fake/m"}
    user.write(".config/opencode/opencode.json", json.dumps(config))
    return ["opencode", "run", QUESTION]


AGENTS: dict[str, Callable[[User, str], list[str]]] = {
    "claude-code": claude_code,
    "codex": codex,
    "copilot": copilot,
    "gemini": gemini,
    "opencode": opencode,
}


@pytest.mark.parametrize("tool", AGENTS)
def test_a_tool_is_told_what_was_said_in_another_and_is_remembered(
    user: User, tool: str
) -> None:
    runtime = user.home / "mnemosyned"
    runtime.mkdir(mode=0o700)
    user.environment["XDG_RUNTIME_DIR"] = str(user.home)
    shop = user.write("shop/.git/HEAD", "ref: refs/heads/main\n").parents[1]
    user.go(shop)
    message = {"id": "m1", "role": "user", "content": "We decided: deploy on Tuesdays."}
    said = {
        "client": "cursor",
        "hook_event_name": "Stop",
        "session_id": "c1",
        "cwd": str(shop),
        "messages": [message],
    }
    call = user.write("call.json", json.dumps(said))
    address = str(runtime / "mnemosyned.sock")
    with running(user.home, "--socket", address), answering_model() as model:
        user.run("sh", "-c", f"mnem-hook < {call}")
        command = AGENTS[tool](user, model.url)
        user.run("mnem", "setup", tool, "--yes")
        for _ in range(CONVERSATIONS_MAX):
            assert ANSWER in user.run(*command)
            if model.was_told("on Tuesdays"):
                break

        assert model.was_told("on Tuesdays")
        # Tools write the end of a turn after its hook; the daemon then looks again.
        recall = ("mnem", "recall", "calendar", "--json")
        eventually(lambda: ANSWER in user.tried(*recall).stdout, "it is remembered")
        checked = json.loads(
            user.tried("mnem", "setup", "--check", tool, "--json").stdout
        )
        activity = checked["tools"][0]["activity"]
        assert activity["stored"] >= 2
        assert activity["characters"] > 0


def test_the_plugin_of_opencode_hands_over_each_event_once(user: User) -> None:
    hook = user.write("mnem-hook", HOOK)
    hook.chmod(0o755)
    programs = Programs(mnem=hook.with_name("mnem"), hook=hook)
    plugin = template_text("opencode_plugin.js", programs)
    user.write(".config/opencode/plugins/mnem.js", plugin)
    with answering_model() as model:
        shown = user.run(*opencode(user, model.url))

    lines = (user.home / "calls.jsonl").read_text().splitlines()
    calls = [json.loads(line) for line in lines]
    by_name = {call["hook_event_name"]: call for call in calls}
    assert ANSWER in shown
    assert len(calls) == 3
    assert QUESTION in by_name["UserPromptSubmit"]["prompt"]
    assert by_name["SessionStart"]["cwd"] == str(user.home)
    said = [(each["role"], each["content"]) for each in by_name["Stop"]["messages"]]
    assert said[1] == ("assistant", ANSWER)
    assert QUESTION in said[0][1]
    assert all(each["id"] and each["timestamp"] for each in by_name["Stop"]["messages"])
    for name in ("SessionStart", "UserPromptSubmit"):
        assert model.was_told(f"told by {name}")


def test_the_plugin_of_opencode_leaves_out_what_is_said_to_a_subagent(
    user: User,
) -> None:
    hook = user.write("mnem-hook", HOOK)
    hook.chmod(0o755)
    programs = Programs(mnem=hook.with_name("mnem"), hook=hook)
    user.write("plugin.mjs", template_text("opencode_plugin.js", programs))
    user.run("node", str(user.write("sessions.mjs", TWO_SESSIONS)))

    (line,) = (user.home / "calls.jsonl").read_text().splitlines()
    assert json.loads(line)["session_id"] == "main"


def test_the_plugin_of_opencode_asks_for_a_prompt_after_the_start_has_answered(
    user: User,
) -> None:
    slow_start = "read -r call\ncase $call in *SessionStart*) sleep 0.3;; esac"
    hook = user.write("mnem-hook", HOOK.replace("read -r call", slow_start))
    hook.chmod(0o755)
    programs = Programs(mnem=hook.with_name("mnem"), hook=hook)
    user.write("plugin.mjs", template_text("opencode_plugin.js", programs))
    user.run("node", str(user.write("prompt.mjs", FIRST_PROMPT)))

    lines = (user.home / "calls.jsonl").read_text().splitlines()
    names = [json.loads(line)["hook_event_name"] for line in lines]
    assert names == ["SessionStart", "UserPromptSubmit"]
