"""A language model on this machine that always answers the same, over every tool's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "I would look into the calendar."
Json = dict[str, Any]


@dataclass
class AnsweringModel:
    """Its address, and what it was asked."""

    url: str = ""
    asked: list[str] = field(default_factory=list)

    def was_told(self, words: str) -> bool:
        """Whether these words were in a request."""
        return any(words in request for request in self.asked)


@contextmanager
def answering_model() -> Iterator[AnsweringModel]:
    """Run the model while the block runs."""
    known = AnsweringModel()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self._send(b"", "application/json")

        def do_GET(self) -> None:
            self._send(b'{"data": [], "models": []}', "application/json")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            known.asked.append(body)
            self._send(*_answer(self.path, json.loads(body or "{}")))

        def _send(self, content: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    known.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield known
    finally:
        server.shutdown()
        server.server_close()


def _answer(path: str, request: Json) -> tuple[bytes, str]:
    """The answer in the form of the API that the path names."""
    if "enerateContent" in path:
        return _gemini(streams="stream" in path)
    if "/messages" in path:
        return _anthropic(streams=bool(request.get("stream")))
    events = _responses() if "/responses" in path else _chat()
    return _stream(events), "text/event-stream"


def _stream(events: list[Json]) -> bytes:
    lines = []
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        lines.append(f"{name}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


def _chat() -> list[Json]:
    about = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first: Json = {"role": "assistant", "content": ANSWER}
    deltas: list[tuple[Json, str | None]] = [(first, None), ({}, "stop")]
    return [
        {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in deltas
    ]


def _responses() -> list[Json]:
    text = {"type": "output_text", "text": ANSWER}
    item = {"type": "message", "role": "assistant", "id": "m1", "content": [text]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.done", "item": item},
        {"type": "response.completed", "response": {"id": "r1", "usage": usage}},
    ]


def _anthropic(*, streams: bool) -> tuple[bytes, str]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    text = {"type": "text", "text": ANSWER}
    message: Json = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
        "content": [],
    }
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    if not streams:
        whole = {**message, **ended, "content": [text]}
        return json.dumps(whole).encode(), "application/json"
    delta = {"type": "text_delta", "text": ANSWER}
    block = {"type": "text", "text": ""}
    events: list[Json] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    return _stream(events), "text/event-stream"


def _gemini(*, streams: bool) -> tuple[bytes, str]:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    answer = {"candidates": [candidate], "usageMetadata": {"totalTokenCount": 2}}
    if streams:
        return _stream([answer]), "text/event-stream"
    return json.dumps(answer).encode(), "application/json"
