"""The description of the API against the running daemon: random requests, a generated client.

`make test-http` installs the tools in build. EXAMPLES is how many requests are made of each operation
and kind of data; 5 make over 2,000 requests, 20 about 6,000, 250 over 10,000. HTTP_SEED repeats a run:
it is printed.
"""

import compileall
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.daemons import Daemon, running
from support.seeds import seed_of

pytestmark = pytest.mark.http

HERE = Path(__file__).parent
TOOLS = Path(os.environ.get("HTTP_TOOLS", "build/http/bin")).absolute()
EXAMPLES = int(os.environ.get("EXAMPLES", "5"))
REQUESTS_MIN = int(os.environ.get("REQUESTS_MIN", "2000"))
TIME_LIMIT_S = 3_600
CODES = {
    "invalid_request",
    "malformed_json",
    "empty_content",
    "invalid_time",
    "not_found",
    "method_not_allowed",
    "cannot_undo",
}
"""Codes that random requests meet; `tests/e2e/test_http_api.py` has the others."""
EXCLUDED = ("/v1/backup", "/v1/events", "/v1/watch")
"""One would write its files wherever a random name leads, one does not end, and one is not offered
over TCP."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[tuple[Daemon, str, str]]:
    """A daemon on TCP, its address and its token."""
    with running(
        tmp_path,
        MNEMOSYNE_LISTEN="127.0.0.1:0",
        MNEMOSYNE_LIMITS_CONTENT_BYTES_MAX="2000",
        MNEMOSYNE_SECRETS="refuse",
    ) as daemon:
        (line,) = daemon.events("listening")
        token = Path(line["token_file"]).read_text().strip()
        yield daemon, f"http://{line['address']}", token


def described(daemon: Daemon, folder: Path) -> Path:
    """The description in a file."""
    file = folder / "openapi.json"
    file.write_text(json.dumps(daemon.request("GET", "/openapi.json").body))
    return file


def test_random_requests_are_answered_as_described(
    daemon: tuple[Daemon, str, str], tmp_path: Path
) -> None:
    served, url, token = daemon
    seen_file = tmp_path / "seen.json"
    seed = seed_of("HTTP_SEED")
    command: list[str | Path] = [
        *(TOOLS / "schemathesis", "--config-file", HERE / "schemathesis.toml"),
        *("run", described(served, tmp_path), "--url", url, "--no-color"),
        *("--seed", str(seed)),
        *("--header", f"Authorization: Bearer {token}"),
        *("--max-examples", str(EXAMPLES), "--continue-on-failure"),
        # A request may fit its schema and break a rule between fields: "after needs dry_run".
        *("--exclude-checks", "positive_data_acceptance"),
        *(word for path in EXCLUDED for word in ("--exclude-path", path)),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "SCHEMATHESIS_HOOKS": "seen",
        "SEEN_FILE": str(seen_file),
    }

    run = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )

    counts = Counter(json.loads(seen_file.read_text())) if seen_file.exists() else {}
    statuses = {key.split()[2] for key in counts}
    codes = {key.split()[3] for key in counts if len(key.split()) > 3}
    total = sum(counts.values())
    print(
        f"seed {seed}: {total} requests; statuses {sorted(statuses)}; codes {sorted(codes)}"
    )
    assert run.returncode == 0, run.stdout[-20_000:] + run.stderr[-2_000:]
    assert not any(status.startswith("5") for status in statuses)
    assert codes >= CODES
    assert total >= REQUESTS_MIN
    assert served.events("request_failed") == []


def test_a_generated_client_works(
    daemon: tuple[Daemon, str, str], tmp_path: Path
) -> None:
    served, url, token = daemon
    client = tmp_path / "generated"
    generator: list[str | Path] = [
        *(TOOLS / "openapi-python-client", "generate", "--meta", "none"),
        *("--path", described(served, tmp_path), "--output-path", client),
    ]
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    generated = subprocess.run(
        generator,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )

    assert "Unable" not in generated.stdout + generated.stderr
    assert compileall.compile_dir(client, quiet=1)
    called = subprocess.run(
        [TOOLS / "python", HERE / "call_client.py", url, token],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert called.stdout == "all calls were answered as described\n", called.stderr
