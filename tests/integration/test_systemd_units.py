"""The unit files, judged by systemd itself: valid, hardened, and private."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.systemd

SYSTEMD = Path(__file__).parents[2] / "systemd"
DROP_IN = "without-user-namespaces.conf"
LOCAL = {"mnemosyned.service": "--user", "mnemosyned-system.service": "--system"}
SERVER = "mnemosyned-server.service"
UNITS = {**LOCAL, SERVER: "--system"}
EXPOSURE_MAX = 2.0
TIMEOUT_S = 60

each_unit = pytest.mark.parametrize("unit", UNITS)
each_local_unit = pytest.mark.parametrize("unit", LOCAL)


@pytest.fixture(scope="session")
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None and "CI" not in os.environ:
        pytest.skip("systemd-analyze is not installed")
    assert found, "systemd-analyze is not installed, and CI must not go without it"
    return found


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Copy the unit files to where the manager that judges them has nothing else to read."""
    return shutil.copytree(SYSTEMD, tmp_path / "units")


def run(*command: str, units: Path) -> str:
    """Run a command on the copied units; whatever it says on either stream."""
    runtime = units.parent / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=units,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "LC_ALL": "C.UTF-8"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=TIMEOUT_S,
        check=False,
    )
    return (
        done.stdout
        if done.returncode == 0
        else f"exit {done.returncode}\n{done.stdout}"
    )


def verify(analyze: str, unit: str, units: Path) -> str:
    return run(analyze, UNITS[unit], "verify", "--man=no", f"./{unit}", units=units)


def settings(unit: str) -> dict[str, list[str]]:
    """Every `Key=value` of a unit, each key with all of its values."""
    found: dict[str, list[str]] = {}
    for line in (SYSTEMD / unit).read_text().splitlines():
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            found.setdefault(match[1], []).append(match[2])
    return found


@each_unit
def test_systemd_has_nothing_to_say_about_a_unit_and_would_notice_a_misspelled_key(
    analyze: str, unit: str, units: Path
) -> None:
    assert verify(analyze, unit, units) == ""

    with (units / unit).open("a") as file:
        file.write("[Service]\nWacthdogSec=60\n")
    assert "WacthdogSec" in verify(analyze, unit, units)


def test_the_drop_in_for_machines_without_user_namespaces_is_valid(
    analyze: str, units: Path
) -> None:
    folder = units / "mnemosyned.service.d"
    folder.mkdir()
    (units / DROP_IN).rename(folder / DROP_IN)
    assert verify(analyze, "mnemosyned.service", units) == ""

    (folder / DROP_IN).write_text("[Service]\nPrivateUser=no\n")
    assert "PrivateUser" in verify(analyze, "mnemosyned.service", units)


@each_unit
def test_a_unit_is_little_exposed(analyze: str, unit: str, units: Path) -> None:
    said = run(
        analyze,
        UNITS[unit],
        "security",
        "--offline=true",
        "--no-pager",
        f"./{unit}",
        units=units,
    )

    level = re.search(r"Overall exposure level for \S+: ([\d.]+)", said)
    assert level, said
    assert float(level[1]) <= EXPOSURE_MAX, said


@each_unit
def test_a_unit_keeps_its_files_private_and_is_watched(unit: str) -> None:
    found = settings(unit)

    name = "mnemosyned-server" if unit == SERVER else "mnemosyned"
    restart = "always" if unit == SERVER else "on-failure"
    expected = f"""
        RuntimeDirectory={name} RuntimeDirectoryMode=0700
        StateDirectory={name} StateDirectoryMode=0700 UMask=0077
        Type=notify NotifyAccess=main Restart={restart} StartLimitIntervalSec=0
        RestartPreventExitStatus=78 KillSignal=SIGTERM KillMode=mixed
    """
    for setting in expected.split():
        key, value = setting.split("=")
        assert found[key] == [value]
    assert {"WatchdogSec", "TimeoutStopSec", "ExecReload"} <= found.keys()


def test_only_the_system_wide_configuration_is_readable_by_others() -> None:
    user, system = (settings(unit)["ConfigurationDirectoryMode"] for unit in LOCAL)

    assert (user, system) == (["0700"], ["0755"])


@each_local_unit
def test_a_unit_has_no_network_and_room_for_a_model(unit: str) -> None:
    found = settings(unit)

    assert found["PrivateNetwork"] == ["yes"]
    assert found["RestrictAddressFamilies"] == ["AF_UNIX"]
    assert found["IPAddressDeny"] == ["any"]
    assert int(found["MemoryMax"][0].removesuffix("G")) >= 2


BETWEEN_USER_AND_SYSTEM = """
    CacheDirectory CacheDirectoryMode ConfigurationDirectoryMode DynamicUser Environment
    ExecReload ExecStartPre InaccessiblePaths ProtectHome ReadWritePaths UnsetEnvironment
    User WantedBy
""".split()
BETWEEN_SYSTEM_AND_SERVER = """
    After CacheDirectory ConfigurationDirectory ConfigurationDirectoryMode Description
    Documentation Environment IPAddressDeny LimitNOFILE LoadCredential PrivateNetwork Restart
    RestrictAddressFamilies RuntimeDirectory StateDirectory TasksMax TimeoutStopSec User Wants
""".split()


@pytest.mark.parametrize(
    ("one", "other", "keys"),
    [
        (*LOCAL, BETWEEN_USER_AND_SYSTEM),
        ("mnemosyned-system.service", SERVER, BETWEEN_SYSTEM_AND_SERVER),
    ],
)
def test_units_differ_in_what_they_serve(one: str, other: str, keys: list[str]) -> None:
    first, second = settings(one), settings(other)

    differ = [key for key in first | second if first.get(key) != second.get(key)]
    assert sorted(differ) == keys


def test_the_secrets_of_the_service_are_credentials_named_by_files() -> None:
    found = settings(SERVER)

    names = {value.partition(":")[0] for value in found["LoadCredential"]}
    assert names == {"database", "certificate.pem", "key.pem"}
    variables = dict(value.split("=") for value in found["Environment"])
    assert {
        variables[f"MNEMOSYNE_{name}"]
        for name in ("DATABASE_FILE", "TLS_CERTIFICATE", "TLS_KEY")
    } == {f"%d/{name}" for name in names}
