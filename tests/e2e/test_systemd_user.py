"""The user unit under a real `systemd --user` of an ordinary user, as an installer leaves it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from e2e import systemd_user
from e2e.systemd_user import CHECKOUT, drop_in, make_home

pytestmark = [pytest.mark.e2e, pytest.mark.systemd]

DUE = "2026-03-13T17:38:00Z"
FUNCTIONS = """
pid() { systemctl --user show -P MainPID mnemosyned; }
back_with_another_pid() {
    systemctl --user is-active --quiet mnemosyned && [ "$(pid)" != "$before" ] && mnem status >&2
}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path)


def beside_systemd(home: Path, script: str) -> list[str]:
    return systemd_user.beside_systemd(home, FUNCTIONS + script)


def test_the_unit_serves_alone_and_consolidates_at_its_stop(home: Path) -> None:
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_ed25519").write_text("not for the daemon")

    printed = beside_systemd(
        home,
        f"""
        systemctl --user start mnemosyned
        systemctl --user show -P StatusText mnemosyned
        stat -c '%a %A' ~/.local/state/mnemosyned ~/.local/state/mnemosyned/memory.db \
            "$XDG_RUNTIME_DIR"/mnemosyned "$XDG_RUNTIME_DIR"/mnemosyned/mnemosyned.sock
        root=/proc/$(pid)/root
        awk '$5 == "/home" || $5 == "/" {{ print $6 }}' /proc/$(pid)/mountinfo | cut -d, -f1 | sort -u
        tail -n +3 /proc/$(pid)/net/dev | cut -d: -f1 | xargs
        ls $root/home/tester/.ssh 2>/dev/null | wc -l
        for word in key box sauna; do
            mnem remember "the $word of the cabin" --source mail --created-at {DUE} >&2
        done
        systemctl --user stop mnemosyned
        systemctl --user show -p ActiveState -p Result -p ExecMainStatus mnemosyned | sort
        sqlite-utils ~/.local/state/mnemosyned/memory.db \
            'select trigger, status, items_consolidated as items from consolidation_log'
        """,
    )

    *shown, logged = printed
    assert shown == [
        "serving on /run/user/60321/mnemosyned/mnemosyned.sock",
        *("700 drwx------", "600 -rw-------", "700 drwx------", "600 srw-------"),
        *("ro", "lo", "0"),
        *("ActiveState=inactive", "ExecMainStatus=0", "Result=success"),
    ]
    slept = {"trigger": "shutdown", "status": "promoted", "items": 3}
    assert json.loads(logged) == [slept]


def test_a_killed_daemon_is_started_again_and_remembers(home: Path) -> None:
    *hits, restarts = beside_systemd(
        home,
        """
        systemctl --user start mnemosyned
        mnem remember "the code of the key box is 4096" >&2
        before=$(pid)
        kill -KILL "$before"
        wait_until back_with_another_pid
        mnem recall "key box"
        systemctl --user show -P NRestarts mnemosyned
        """,
    )

    assert "the code of the key box is 4096" in "\n".join(hits)
    assert restarts == "1"


def test_a_hung_daemon_is_started_again(home: Path) -> None:
    drop_in(home, "impatient.conf", "WatchdogSec=2")

    restarts, *log = beside_systemd(
        home,
        """
        systemctl --user start mnemosyned
        sleep 3  # longer than the watchdog waits: a healthy daemon outlives it
        before=$(pid)
        systemctl --user show -P NRestarts mnemosyned
        kill -STOP "$before"
        wait_until back_with_another_pid
        systemctl --user show -P NRestarts mnemosyned
        """,
    )

    assert [restarts, *log] == ["0", "1"]


def test_reload_reads_the_settings_again(home: Path) -> None:
    settings = home / ".config" / "mnemosyned" / "mnemosyned.yaml"
    settings.parent.mkdir(mode=0o700)
    settings.write_text("wm_max: 400\n")

    caps = beside_systemd(
        home,
        """
        systemctl --user start mnemosyned
        mnem status --json | grep -o '"wm_max":[0-9]*'
        echo 'wm_max: 500' >~/.config/mnemosyned/mnemosyned.yaml
        systemctl --user reload mnemosyned
        wait_until grep config_reloaded ~/daemon.log >&2
        mnem status --json | grep -o '"wm_max":[0-9]*'
        """,
    )

    assert caps == ['"wm_max":400', '"wm_max":500']


def test_a_daemon_that_cannot_use_its_settings_is_not_started_again(home: Path) -> None:
    settings = home / ".config" / "mnemosyned" / "mnemosyned.yaml"
    settings.parent.mkdir(mode=0o700)
    settings.write_text("wm_maxx: 500\n")

    shown = beside_systemd(
        home,
        """
        systemctl --user start mnemosyned && exit 1
        sleep 2
        systemctl --user show -p ActiveState -p ExecMainStatus -p NRestarts mnemosyned
        """,
    )

    assert sorted(shown) == ["ActiveState=failed", "ExecMainStatus=78", "NRestarts=0"]


def test_the_drop_in_runs_it_without_a_user_namespace(home: Path) -> None:
    script = """
        systemctl --user start mnemosyned
        mnem remember "still here" >&2
        readlink /proc/self/ns/user /proc/$(pid)/ns/user
        """

    own, daemons = beside_systemd(home, script)
    assert own != daemons

    text = (CHECKOUT / "systemd" / "without-user-namespaces.conf").read_text()
    drop_in(home, "without.conf", *text.partition("[Service]\n")[2].splitlines())
    own, daemons = beside_systemd(home, script)
    assert own == daemons


def test_mnem_starts_stops_and_restarts_the_unit(home: Path) -> None:
    said = beside_systemd(
        home,
        """
        exec 2>&1
        systemctl --user enable mnemosyned &>/dev/null
        mnem start
        before=$(pid)
        mnem doctor | grep ' unit '
        mnem config set wm_max 500
        wait_until grep config_reloaded ~/daemon.log >/dev/null
        mnem status --json | grep -o '"wm_max":[0-9]*'
        mnem restart
        [ "$(pid)" != "$before" ] && echo another process
        mnem remember --id tea "tea at four"
        mnem backup ~/copy.db | cut -d: -f1
        mnem backup /tmp/copy.db | cut -d: -f1
        ls ~/.local/state/mnemosyned/backups
        mnem restore-db /tmp/copy.db --restart | head -n 1 | cut -d: -f2
        mnem get tea | tail -n 1
        mnem stop
        systemctl --user is-active mnemosyned || true
        mnem doctor | grep -A1 ' unit '
        true
        """,
    )

    shown = [re.sub(r"\d+(\.\d+)?", "N", line) for line in said]
    assert shown == [
        "started by systemd, as process N",
        "ok       unit        the unit is enabled and active",
        "wm_max is N in /home/tester/.config/mnemosyned/mnemosyned.yaml",
        "settings reloaded by process N",
        '"wm_max":N',
        "stopped process N in N s",
        "started by systemd, as process N",
        "another process",
        "tea",
        "/home/tester/copy.db",
        "/tmp/copy.db",  # noqa: S108 a namespace of its own
        "forgotten.list",
        "stopped process N in N s",
        "started by systemd, as process N",
        " N memory, N summaries; verified",
        "tea at four",
        "stopped process N in N s",
        "inactive",
        "warning  unit        the unit is inactive",
        "                     mnem start",
    ]


def test_the_unit_is_stopped_and_gone_after_uninstall(home: Path) -> None:
    *said, left = beside_systemd(
        home,
        f"""
        systemctl --user --quiet enable mnemosyned
        mnem start
        drop_ins=~/.config/systemd/user/mnemosyned.service.d
        for _ in 1 2; do make --directory {CHECKOUT} PREFIX=$HOME/.local uninstall 2>&1; done
        ls ~/.local/bin $drop_ins
        systemctl --user show -P LoadState mnemosyned
        """,
    )

    text = "\n".join(said)
    assert text.count("stopped process") == 1
    assert text.count("uninstalled. Your memory stays in") == 2
    assert "not reachable" not in text
    assert "sqlite-utils" in text
    assert "checkout.conf" in text
    assert left == "not-found"
