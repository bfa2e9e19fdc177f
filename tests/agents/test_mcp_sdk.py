"""The official SDK's client drives every tool, resource and prompt: each transport, both eras."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp
import pytest
from agents.outside import tcp_port, token_of
from e2e.daemons import Daemon, environment
from e2e.programs import BIN
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

pytestmark = [
    pytest.mark.agents,
    # Of the SDK's own: its legacy mode is deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
TRANSPORTS = ("stdio", "socket", "tcp")


@asynccontextmanager
async def connected(
    daemon: Daemon, transport: str, mode: str, **options: Any
) -> AsyncIterator[Any]:
    """A client of the SDK, connected by a transport in an era."""
    if transport == "stdio":
        server = StdioServerParameters(
            command=str(BIN / "mnem"),
            args=["mcp"],
            env=environment(daemon.home, MNEMOSYNE_SOCKET=str(daemon.socket)),
            cwd=daemon.home,
        )
        async with mcp.Client(server, mode=mode, **options) as client:
            yield client
        return
    if transport == "socket":
        http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=str(daemon.socket)), timeout=30
        )
        url = "http://localhost/mcp"
    else:
        http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token_of(daemon)}"}, timeout=30
        )
        url = f"http://127.0.0.1:{tcp_port(daemon)}/mcp"
    async with (
        http,
        mcp.Client(
            streamable_http_client(url, http_client=http), mode=mode, **options
        ) as client,
    ):
        yield client


async def use_everything(client: Any, mark: str) -> None:
    """Call each tool, read each resource and get each prompt; the SDK checks every form."""
    tools = {tool.name for tool in (await client.list_tools()).tools}
    assert tools == set("recall remember get expand learn forget status".split())

    async def call(name: str, **arguments: Any) -> Any:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result.content
        text = json.loads(result.content[0].text)
        assert result.structured_content == text
        return text

    stored = await call("remember", content=f"The {mark} lamp was bought in Riga.")
    hits = (await call("recall", query=f"where was the {mark} lamp bought?"))["hits"]
    assert stored["id"] in {hit["id"] for hit in hits}
    assert mark in (await call("get", id=stored["id"]))["text"]
    expanded = await client.call_tool("expand", {"id": stored["id"]})
    assert expanded.is_error
    assert "is an original" in expanded.content[0].text
    rule = await call("learn", rule=f"Always call it the {mark} lamp.")
    assert (await call("status"))["session"] == stored["session"]

    for resource in (await client.list_resources()).resources:
        assert json.loads((await client.read_resource(resource.uri)).contents[0].text)
    templates = (await client.list_resource_templates()).resource_templates
    assert len(templates) == 3
    memory = await client.read_resource(f"mnemosyne://memory/{stored['id']}")
    assert mark in memory.contents[0].text
    for prompt in (await client.list_prompts()).prompts:
        filled = await client.get_prompt(prompt.name, {"about": f"{mark} lamp"})
        assert "Riga" in filled.messages[0].content.text

    seen: list[float] = []

    async def progress(value: float, _: float | None, __: str | None) -> None:
        seen.append(value)

    for id in (stored["id"], rule["id"]):
        assert (await call("forget", id=id))["deleted"] is False
        result = await client.call_tool(
            "forget", {"id": id, "confirm": True}, progress_callback=progress
        )
        assert result.structured_content["deleted"] is True
    assert seen
    again = await call("recall", query=f"where was the {mark} lamp bought?")
    assert stored["id"] not in {hit["id"] for hit in again["hits"]}


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_sdk_uses_all_there_is(daemon: Daemon, transport: str, mode: str) -> None:
    async def drive() -> None:
        async with connected(daemon, transport, mode) as client:
            assert client.protocol_version == ERAS[mode]
            await use_everything(client, f"{transport}{mode}".replace("-", ""))

    asyncio.run(asyncio.wait_for(drive(), 60))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_faults_reach_the_sdk(daemon: Daemon, transport: str, mode: str) -> None:
    async def drive() -> None:
        async with connected(daemon, transport, mode) as client:
            with pytest.raises(mcp.MCPError, match="Unknown tool"):
                await client.call_tool("lost", {})
            with pytest.raises(mcp.MCPError, match="not found"):
                await client.read_resource("mnemosyne://lost/1")
            with pytest.raises(mcp.MCPError, match="Unknown prompt"):
                await client.get_prompt("lost")
            result = await client.call_tool("recall", {"query": "x", "limit": 1_000})
            assert result.is_error
            assert "at most 25" in result.content[0].text

    asyncio.run(asyncio.wait_for(drive(), 60))


def test_the_sdk_answers_for_its_roots(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    asked = asyncio.Event()

    async def roots(_: Any) -> Any:
        asked.set()
        return mcp.types.ListRootsResult(roots=[mcp.types.Root(uri=tmp_path.as_uri())])

    async def drive() -> str:
        async with connected(
            daemon, "stdio", "legacy", list_roots_callback=roots
        ) as client:
            await asyncio.wait_for(asked.wait(), 10)
            for _ in range(20):
                status = (await client.call_tool("status", {})).structured_content
                if status["project"]:
                    break
            return str(status["project"])

    assert asyncio.run(asyncio.wait_for(drive(), 60)) == str(tmp_path)


def test_many_calls_at_once_do_not_mix(daemon: Daemon) -> None:
    async def drive() -> None:
        async with connected(daemon, "stdio", "auto") as client:
            texts = [f"Shelf number {n} holds jars." for n in range(40)]
            results = await asyncio.gather(
                *(client.call_tool("remember", {"content": text}) for text in texts)
            )
            ids = [result.structured_content["id"] for result in results]
            got = await asyncio.gather(
                *(client.call_tool("get", {"id": id}) for id in ids)
            )
            assert [each.structured_content["text"] for each in got] == texts

    asyncio.run(asyncio.wait_for(drive(), 60))


def test_versions_of_the_sdk_are_those_that_the_lock_names() -> None:
    lock = (Path(__file__).parent / "requirements.lock").read_text()
    assert re.search(r"^mcp==2\.3\.0 ", lock, re.MULTILINE)
