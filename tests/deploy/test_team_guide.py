"""The guide for a team, followed command by command on an empty Debian, from its first line to its last."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from deploy.chroots import CHECKOUT, NEEDED, Chroot, archive, own_suite
from support.pages import blocks

pytestmark = pytest.mark.deb

GUIDE = CHECKOUT / "docs" / "team.md"
BUILT = CHECKOUT / "build" / "deb"
USUAL = "adduser ca-certificates openssl sudo"
"""Packages that a Debian has that was installed as usual, and a minimal root has not."""
COMMANDS_MAX = 15
PSQL = "sudo -u postgres psql"
START_CLUSTERS = (
    "pg_lsclusters -h | while read v name _; do pg_ctlcluster $v $name start; done\n"
)
"""What systemd does after the installation."""
AS_ANNA = "setpriv --reuid anna --regid anna --clear-groups"
SECTIONS = (
    "Database", "Daemon and TLS", "People", "Laptops", "Upgrade", "Backup and nightly tasks"
)  # fmt: skip

# There is no systemd in a chroot: the unit's environment, credentials and command are taken from it.
SYSTEMCTL = r"""#!/bin/bash
unit=/usr/lib/systemd/system/mnemosyned-server.service
[ -e "$unit" ] || unit=/lib/systemd/system/mnemosyned-server.service
pid=$(cat /run/mnemosyned.pid 2>/dev/null)
if [ "$1" = restart ]; then kill "$pid"; tail --pid="$pid" -f /dev/null; fi
case "$1" in enable|restart) ;; *) exit 0 ;; esac
case "$*" in *mnemosyned-server*) ;; *) exit 0 ;; esac
: >/var/log/mnemosyned.log; rm -rf /run/credentials
install -d -m 700 -o nobody /run/credentials /run/mnemosyned-server
sed -n 's/^LoadCredential=\(.*\):%E\(.*\)/\1 \/etc\2/p' "$unit" | while read -r name file; do
    install -m 400 -o nobody "$file" "/run/credentials/$name"
done
mapfile -t variables < <(sed -n 's/^Environment=//p' "$unit" | sed 's|%E|/etc|; s|%d|/run/credentials|')
setpriv --reuid nobody --clear-groups env -i "${variables[@]}" HOME=/nonexistent \
    XDG_STATE_HOME=/run/mnemosyned-server XDG_RUNTIME_DIR=/run/mnemosyned-server \
    $(sed -n 's/^ExecStart=//p' "$unit") >>/var/log/mnemosyned.log 2>&1 &
echo $! >/run/mnemosyned.pid
for _ in $(seq 300); do grep -q '"event": *"ready"' /var/log/mnemosyned.log && exit 0; sleep 0.1; done
cat /var/log/mnemosyned.log; exit 1
"""


def commands(section: str) -> str:
    """The commands of a section of the guide, as they stand there."""
    text = GUIDE.read_text("utf-8")
    part = text.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    found = re.findall(r"```sh\n(.*?)```", part, re.DOTALL)
    assert found, section
    return "".join(found)


def count(script: str) -> int:
    """The commands of a script, of which one may have several lines."""
    script = re.sub(r"<<'SQL'.*?\nSQL\n", "\n", script, flags=re.DOTALL)
    return len(script.replace("\\\n", " ").strip().splitlines())


def test_a_laptops_agent_remembers_after_at_most_fifteen_commands() -> None:
    upto = [commands(section) for section in SECTIONS[: SECTIONS.index("Upgrade")]]

    assert sum(map(count, upto)) <= COMMANDS_MAX


def test_the_guide_has_no_commands_that_nobody_follows() -> None:
    shown = {block.text for block in blocks(GUIDE) if block.language == "sh"}
    followed = "".join(map(commands, SECTIONS))

    assert [text for text in shown if text not in followed] == []


def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    debian = Chroot(tmp_path / "root", archive(own_suite(), *NEEDED))
    debs = debian.root / "debs"
    debs.mkdir()
    for package in BUILT.glob("*.deb"):
        shutil.copy(package, debs)
    shim = debian.root / "usr/local/bin/systemctl"
    shim.write_text(SYSTEMCTL)
    shim.chmod(0o755)
    with (debian.root / "etc/hosts").open("a") as hosts:
        hosts.write("127.0.0.1 localhost memory.example\n")
    database, daemon, people, laptops, upgrade, nightly = map(commands, SECTIONS)
    # What a person types where a command asks.
    laptops = laptops.replace("--ca memory.pem", "--ca memory.pem <code")
    laptops = laptops.replace("setup claude-code", "setup claude-code --yes")
    _, _, at_home = laptops.partition("\n")
    said = {
        "client": "claude-code", "session_id": "one", "cwd": "/home/anna/shop",
        "hook_event_name": "Stop",
        "messages": [{"id": "m1", "role": "user", "content": "We decided: VAT is rounded per line.",
                      "timestamp": "2026-11-23T09:00:00Z"}],
    }  # fmt: skip
    later = {**said, "session_id": "two", "hook_event_name": "SessionStart"}
    del later["messages"]
    (debian.root / "anna.sh").write_text(
        f"""
        set -eux; export HOME=/home/anna; cd; mkdir .claude shop
        {at_home}
        echo '{json.dumps(said)}' | mnem-hook
        echo '{json.dumps(later)}' | mnem-hook | tee /tmp/told
        mnem recall when do we deploy | tee /tmp/recalled
        grep -q mnem-hook .claude/settings.json
        """
    )
    (debian.root / "guide.sh").write_text(
        f"""
set -eux; useradd -m anna; cd /debs
echo 'APT::Get::Assume-Yes "1";' >/etc/apt/apt.conf.d/yes; apt-get -qq update
apt-get -qq install --no-install-recommends {USUAL}
{database.replace(PSQL, START_CLUSTERS + PSQL)}
{daemon}
{people.strip()} | tee /tmp/codes
sed -n 's/^anna,//p' /tmp/codes | tr -d '\\r' >/home/anna/code
cp /etc/mnemosyned/credentials/certificate.pem /home/anna/memory.pem
chown anna: /home/anna/*
{AS_ANNA} bash /anna.sh
{upgrade}
{AS_ANNA} env HOME=/home/anna mnem recall when do we deploy | grep Tuesdays
{nightly}
"""
    )

    shown = debian.run("bash /guide.sh 2>&1")

    room = debian.root / "tmp"
    assert "VAT is rounded per line." in (room / "told").read_text(), shown
    assert "We deploy on Tuesdays" in (room / "recalled").read_text(), shown
