"""The image, its steps run in chroots: what is in it, and a daemon in it on a PostgreSQL server."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from email import message_from_string
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.chroots import CHECKOUT, archive, require_programs
from deploy.containerfile import Stage, build, read
from deploy.containers import Container
from support.openssl import HAVE_OPENSSL, self_signed

from mnemosyned.version import __version__

pytestmark = [pytest.mark.deploy, HAVE_OPENSSL]

CONTEXT = CHECKOUT / "build" / "image"
CONTAINERS = CHECKOUT / "config" / "containers"
FILE = (CONTAINERS / "Containerfile").read_text()
DEBIAN = re.compile(r"docker\.io/library/debian:(\w+)-slim")
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
WRITABLE = ("/run/mnemosyned", "/var/lib/mnemosyned", "/tmp")  # noqa: S108


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stage]]:
    require_programs("mmdebstrap", "nsenter", "unshare")
    suite = DEBIAN.search(FILE)
    assert suite
    context = tmp_path_factory.mktemp("context")
    shutil.copytree(CONTEXT, context, dirs_exist_ok=True)
    # A network may have an authority of its own, which an image is not to know.
    (context / "authorities.pem").write_bytes(AUTHORITIES.read_bytes())
    begin = "FROM ${BASE} AS build\n"
    own = "COPY authorities.pem /authorities.pem\nENV PIP_CERT=/authorities.pem\n"
    assert begin in FILE
    text = FILE.replace(begin, begin + own)
    folder = tmp_path_factory.mktemp("image")
    yield build(text, context, archive(suite[1]), folder)
    shutil.rmtree(folder)  # a gigabyte


@pytest.fixture(scope="module")
def image(stages: dict[str, Stage]) -> Stage:
    return stages["final"]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())[
        "services"
    ]
    return found


def test_no_tool_of_the_build_is_left(image: Stage) -> None:
    root = image.root.root
    programs = {
        path.name
        for folder in ("usr/bin", "opt/mnemosyned/bin")
        for path in (root / folder).iterdir()
    }

    assert {"mnemosyned", "mnem", "mnem-hook", "python3"} <= programs
    assert not programs & {"gcc", "cc", "make", "curl", "wget", "git"}
    assert not {name for name in programs if name.startswith("pip")}
    assert not list(root.glob("opt/mnemosyned/lib/*/site-packages/pip"))
    assert not (root / "build").exists()


def test_its_user_owns_nothing_but_two_empty_folders(image: Stage) -> None:
    user = int(image.user.partition(":")[0])
    own = []
    for folder, folders, files in os.walk(image.root.root):
        for name in (*folders, *files):
            state = os.lstat(os.path.join(folder, name))  # noqa: PTH118
            if state.st_uid == user or (
                state.st_mode & 0o002 and stat.S_ISREG(state.st_mode)
            ):
                own.append(name)

    assert sorted(own) == ["mnemosyned", "mnemosyned"]


def test_only_packages_of_the_lock_are_in_it(image: Stage) -> None:
    text = (CONTAINERS / "requirements.lock").read_text()
    locked = set(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))
    installed = set()
    for file in image.root.root.glob(
        "opt/mnemosyned/lib/*/site-packages/*.dist-info/METADATA"
    ):
        fields = message_from_string(file.read_text())
        installed.add((re.sub(r"[_.]", "-", fields["Name"]).lower(), fields["Version"]))

    assert {"psycopg-binary", "numpy"} <= {name for name, _ in installed}
    assert installed - locked == {("mnemosyned", __version__)}


class Stack:
    """What compose.yaml starts, as far as the kernel can: a server, and containers of the image."""

    def __init__(self, image: Stage, services: dict[str, Any], folder: Path) -> None:
        # Loaded here: without psycopg only the other tests are collected.
        from support.postgres import Server, programs  # noqa: PLC0415

        self._image, self._services = image, services
        self.server = Server()
        self.server.start()
        self.server.folder.chmod(0o755)
        self.secrets = folder / "secrets"
        self.secrets.mkdir()
        for login in ("owner", "serving"):
            (self.secrets / f"{login}_password").write_text("p'w$d")
        script = folder / "init-database.sh"
        text = (CONTAINERS / "init-database.sh").read_text()
        script.write_text(text.replace("/run/secrets", str(self.secrets)))
        environ = {
            "PGHOST": str(self.server.folder),
            "PGUSER": "postgres",
            "PATH": f"{programs()}:{os.environ['PATH']}",
        }
        subprocess.run(["sh", script], check=True, env=environ)
        for login, user in (("owner", "mnemosyne_owner"), ("serving", "mnemosyne")):
            (self.secrets / f"{login}_url").write_text(
                f"postgresql://{user}@/memory?host=/mnt\n"
            )
        certificate, key = self_signed(self.secrets, "own", names="DNS:localhost")
        certificate.rename(self.secrets / "certificate")
        key.rename(self.secrets / "key")
        for file in self.secrets.iterdir():
            os.chown(file, 0, int(image.user.partition(":")[2]))
            file.chmod(0o440)
        (image.root.root / "run/secrets").mkdir(exist_ok=True)

    def container(self, service: str, **environ: str) -> Container:
        own = self._services[service]
        places = [place.split(":")[0] for place in own["tmpfs"]]
        places += [place.split(":")[1] for place in own["volumes"]]
        assert {*places} == {*WRITABLE}
        return Container(
            self._image,
            folders={self.secrets: "/run/secrets", self.server.folder: "/mnt"},
            writable=WRITABLE,
            environment={**own["environment"], **environ},
        )


@pytest.fixture
def stack(image: Stage, services: dict[str, Any], tmp_path: Path) -> Iterator[Stack]:
    if not find_spec("psycopg"):
        pytest.skip("NOT RUN: needs psycopg, as `make test-deploy` has it")
    stack = Stack(image, services, tmp_path)
    yield stack
    stack.server.remove()


def test_it_migrates_serves_owners_on_a_read_only_root_and_drains(
    stack: Stack, services: dict[str, Any], tmp_path: Path
) -> None:
    migrate = stack.container("migrate")
    for words in (services["migrate"]["command"], ["mnem", "owner", "add", "anna"]):
        done = migrate.run(*words)
        assert done.returncode == 0, done.stderr
    done = migrate.run("mnem", "owner", "token", "add", "anna", "--name", "laptop")
    token = done.stdout.strip()
    assert token.startswith("mnt_"), done.stderr

    log = tmp_path / "log"
    daemon = stack.container("daemon", MNEMOSYNE_SHUTDOWN_DRAIN_S="1")
    with daemon.started(log) as process:
        assert daemon.await_health(process), log.read_text()
        assert daemon.await_health(process, "/readyz"), log.read_text()
        client = {
            "MNEMOSYNE_URL": "https://localhost:7464",
            "MNEMOSYNE_CA": "/run/secrets/certificate",
            "MNEMOSYNE_TOKEN": token,
        }

        def mnem(*words: str) -> str:
            done = daemon.execute(process, "mnem", *words, HOME="/tmp", **client)  # noqa: S108
            assert done.returncode == 0, done.stderr
            return done.stdout

        mnem("remember", "The spare key hangs behind the flour.")
        assert "flour" in mnem("recall", "key")
        refused = daemon.execute(process, "touch", "/opt/mnemosyned/x")
        assert "Read-only file system" in refused.stderr
        code = daemon.stop(process)

    assert code == 0, log.read_text()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert not [each for each in events if each["level"] in {"error", "critical"}]
    assert "encoder_file_made" not in {each["event"] for each in events}


def test_without_its_database_it_is_not_ready(stack: Stack, tmp_path: Path) -> None:
    stack.server.stop()
    daemon = stack.container("daemon")

    with daemon.started(tmp_path / "log") as process:
        assert daemon.await_health(process), (tmp_path / "log").read_text()
        check = [word.replace("/livez", "/readyz") for word in daemon.image.health]
        assert "503" in daemon.execute(process, *check).stderr
        assert daemon.stop(process) == 0


def test_a_package_that_is_not_that_of_the_lock_is_refused(
    stages: dict[str, Stage],
) -> None:
    (install,) = (
        step.text
        for step in read(FILE)
        if step.name == "RUN" and "--require-hashes" in step.text
    )
    root = stages["build"].root
    lock = root.root / "build" / "requirements.lock"
    lock.write_text(re.sub(r"sha256:[0-9a-f]{8}", "sha256:00000000", lock.read_text()))

    said = root.run(
        install.replace("/opt/mnemosyned", "/opt/again"),
        works=False,
        environ={"PIP_CERT": "/authorities.pem"},
    )

    assert "DO NOT MATCH THE HASHES" in said
