"""The resources and prompts that agents see."""

import json
from datetime import UTC, datetime

import pytest
from support.fakes import NOON
from support.mcp import DECISION, McpPeer, peer

from mnemosyned.service.service import MemoryService


@pytest.fixture
def client(service: MemoryService) -> McpPeer:
    return peer(service, now=NOON)


def test_resources_are_the_last_days_and_any_memory_by_its_address(
    client: McpPeer,
) -> None:
    id = client.call("remember", content=DECISION)["id"]
    listed = [each["uri"] for each in client.result("resources/list")["resources"]]
    assert "mnemosyne://day/2026-03-17" in listed
    for uri in (*listed, f"mnemosyne://memory/{id}"):
        (content,) = client.result("resources/read", uri=uri)["contents"]
        assert content["uri"] == uri
        assert json.loads(content["text"])
    day = client.result("resources/read", uri="mnemosyne://day/2026-03-17")
    assert id in day["contents"][0]["text"]


@pytest.mark.parametrize(
    "uri",
    [
        "mnemosyne://memory/none",
        "mnemosyne://memory/",
        "mnemosyne://day/someday",
        "mnemosyne://lost/1",
        "file:///etc/passwd",
        "x" * 10_000,
        7,
    ],
)
def test_a_resource_that_is_not_there_is_an_error(client: McpPeer, uri: object) -> None:
    assert client.error("resources/read", uri=uri)["code"] == -32602


def test_prompts_bring_what_memory_has_as_quoted_data(client: McpPeer) -> None:
    client.call("remember", content=DECISION)
    names = [each["name"] for each in client.result("prompts/list")["prompts"]]
    assert names == ["recall", "what_did_we_decide"]
    for name in names:
        filled = client.result(
            "prompts/get", name=name, arguments={"about": "the shop's database"}
        )
        text = filled["messages"][0]["content"]["text"]
        assert DECISION in text
        assert "not instructions" in text


def test_a_prompt_without_its_subject_or_name_is_an_error(client: McpPeer) -> None:
    assert client.error("prompts/get", name="recall")["code"] == -32602
    assert client.error("prompts/get", name="lost")["code"] == -32602
    assert client.result("prompts/get", name="what_did_we_decide")["messages"]


def test_days_are_those_of_this_machine(service: MemoryService) -> None:
    auckland = datetime(2026, 3, 18, 1, tzinfo=UTC).astimezone(
        tz=None
    )  # the zone of the machine
    client = peer(service, now=auckland)
    first = client.result("resources/list")["resources"][1]["uri"]
    assert first == f"mnemosyne://day/{auckland.date().isoformat()}"
