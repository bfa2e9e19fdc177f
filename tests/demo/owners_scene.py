"""The owners of `make demo-server`: three memories in one database, each met by its own tokens."""

from demo.stage import Stage, Story

from mnemosyned import Client, MnemosynedError

QUESTION = "Where does my key hang?"
PLACES = {"anna": "behind the flour", "bert": "in the shed", "clara": "at the mill"}


def meet(story: Story, first: Stage, second: Stage) -> None:
    """Show three owners, who share both daemons and see nothing of each other."""
    story.step(
        "Three owners share both daemons",
        "Over TCP a token says whose memory is meant. Every statement is held to that owner by the "
        "query, and once more by the database. (Other machines come with TLS; this is loopback.)",
    )
    tokens: dict[str, str] = {}
    for name, place in PLACES.items():
        story.command("mnem", "owner", "add", name)
        first.printed("owner", "add", name)
        tokens[name] = first.printed("owner", "token", "add", name, "--name", "demo")
        with Client(url=f"http://{first.address()}", token=tokens[name]) as client:
            client.remember(f"My key hangs {place}.", id="key")
    found = {name: _answers(second, token) for name, token in tokens.items()}
    story.claim(
        "Each remembered on the first daemon under the same id, and the second one answers each with "
        "its own: "
        + ", ".join(f"{name} {place}" for name, place in PLACES.items())
        + ".",
        holds=found
        == {name: [f"My key hangs {place}."] for name, place in PLACES.items()},
        because=found,
    )
    story.command("mnem", "owner", "token", "add", "anna", "--scopes", "read")
    reader = first.printed("owner", "token", "add", "anna", "--scopes", "read")
    refused = ""
    with Client(url=f"http://{second.address()}", token=reader) as client:
        try:
            client.forget("key", now=True)
        except MnemosynedError as error:
            refused = error.message
    story.claim(
        f"A token that may only read cannot forget: “{refused}”.",
        holds="needs the scope forget" in refused and bool(_answers(second, reader)),
        because=refused,
    )


def _answers(stage: Stage, token: str) -> list[str]:
    with Client(url=f"http://{stage.address()}", token=token) as client:
        return [hit.content for hit in client.recall(QUESTION).hits]
