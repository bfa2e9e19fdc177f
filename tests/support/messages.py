"""Messages of conversations in the forms of OpenAI and of Anthropic."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def says(content: object, role: str = "user", **more: Any) -> Json:  # noqa: ANN401
    return {"role": role, "content": content, **more}


def call(*ids: str, name: str = "sh", **more: Any) -> Json:  # noqa: ANN401
    """An assistant's message that calls a tool, once for each id."""
    calls = [{"id": id, "function": {"name": name, "arguments": "{}"}} for id in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(id: str, /, content: object = "ok", **more: Any) -> Json:  # noqa: ANN401
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def text_block(text: str) -> Json:
    return {"type": "text", "text": text}


def tool_use(id: str, **given: Any) -> Json:  # noqa: ANN401
    use = {"type": "tool_use", "id": id, "name": "sh", "input": given}
    return says([use], "assistant")


def tool_result(id: str, content: object = "ok") -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content}
