"""The files for containers, judged by others' programs: hadolint, Docker Compose, the schemas of Kubernetes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy.chroots import CHECKOUT
from deploy.containerfile import read

from mnemosyned.config.loading import load_config
from mnemosyned.version import __version__

pytestmark = pytest.mark.deploy

CONTAINERS = CHECKOUT / "config" / "containers"
KUBERNETES = CHECKOUT / "config" / "kubernetes"
TOOLS = CHECKOUT / "build" / "deploy"
VERSION = "1.37.0"
FILES = sorted(set(KUBERNETES.glob("*.yaml")) - {KUBERNETES / "kustomization.yaml"})


def run(*command: str | Path, **environ: str) -> str:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(TOOLS), **environ},
    )  # fmt: skip
    return (
        done.stdout
        if done.returncode == 0
        else f"exit {done.returncode}: {done.stdout}"
    )


def manifests() -> dict[str, dict[str, Any]]:
    """Every manifest by its kind; those of the example of secrets, too."""
    found = [each for file in FILES for each in yaml.safe_load_all(file.read_text())]
    return {each["kind"]: each for each in found}


def pods() -> list[dict[str, Any]]:
    found = manifests()
    return [found[kind]["spec"]["template"]["spec"] for kind in ("Deployment", "Job")]


def judge(file: Path) -> str:
    """What the program for this kind of file says against it."""
    if file.name == "Containerfile":
        # Debian's versions are those of a release: by DL3008 each build would fail a month later.
        return run(TOOLS / "bin" / "hadolint", "--ignore", "DL3008", file)
    if file.name == "compose.yaml":
        # Compose is a plugin of Docker, and runs by itself.
        return run(TOOLS / "bin" / "docker-compose", "-f", file, "config", "--quiet")
    validator = (sys.executable, "-m", "kubernetes_validate", "--strict", "--quiet")
    said = run(*validator, "-k", VERSION, file)
    return said if said.startswith("exit") else ""


@pytest.mark.parametrize(
    "file",
    [CONTAINERS / "Containerfile", CONTAINERS / "compose.yaml", *FILES],
    ids=lambda file: file.name,
)
def test_nothing_is_said_against_a_file(file: Path) -> None:
    assert judge(file) == ""


@pytest.mark.parametrize(
    ("file", "right", "wrong", "said"),
    [
        (CONTAINERS / "Containerfile", "RUN ", "RUN sudo true && ", "DL3004"),
        (CONTAINERS / "compose.yaml", "stop_grace_period", "stop_grace_perod", "stop_grace_perod"),
        (KUBERNETES / "deployment.yaml", "readinessProbe", "redinessProbe", "redinessProbe"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_would_be_noticed(
    tmp_path: Path, file: Path, right: str, wrong: str, said: str
) -> None:
    faulty = tmp_path / file.name
    faulty.write_text(file.read_text().replace(right, wrong))

    assert said in judge(faulty)


def test_kustomize_applies_every_manifest_but_the_job_and_the_secrets() -> None:
    applied = run(TOOLS / "bin" / "kubectl", "kustomize", KUBERNETES)

    kinds = {each["kind"] for each in yaml.safe_load_all(applied)}
    assert kinds == manifests().keys() - {"Job", "Secret"}


def test_containers_have_no_privileges_and_limits() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
            assert container["image"].endswith(f":{__version__}")


def test_all_use_the_user_of_the_image() -> None:
    (user,) = (
        each.text
        for each in read((CONTAINERS / "Containerfile").read_text())
        if each.name == "USER"
    )

    assert all(
        f"{pod['securityContext'][key]}:{pod['securityContext']['runAsGroup']}" == user
        for pod in pods()
        for key in ("runAsUser", "fsGroup")
    )
    services = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())["services"]
    assert services["daemon"]["user"] == services["migrate"]["user"] == user


def test_a_pod_is_given_the_time_to_drain() -> None:
    settings = yaml.safe_load(manifests()["ConfigMap"]["data"]["server.yaml"])
    (pod, _) = pods()
    probe = pod["containers"][0]["readinessProbe"]

    assert settings["shutdown_drain_s"] >= 2 * probe["periodSeconds"]
    assert pod["terminationGracePeriodSeconds"] >= settings["shutdown_drain_s"] + 60


def test_the_settings_of_the_pods_are_valid(tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text(manifests()["ConfigMap"]["data"]["server.yaml"])
    url = tmp_path / "url"
    url.write_text(
        manifests()["Secret"]["stringData"].get(
            "url", "postgresql://mnemosyne@db.example/memory"
        )
    )
    url.chmod(0o440)
    (pod, _) = pods()
    environ = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}

    config = load_config(file, environ={**environ, "MNEMOSYNE_DATABASE_FILE": str(url)})

    ports = {
        port["name"]: port["containerPort"] for port in pod["containers"][0]["ports"]
    }
    assert config.listen == f"0.0.0.0:{ports['https']}"
    assert config.metrics_listen == f"0.0.0.0:{ports['metrics']}"


def test_a_secret_is_read_by_the_pods_user_alone() -> None:
    for pod in pods():
        secrets = [each["secret"] for each in pod["volumes"] if "secret" in each]
        assert secrets
        assert all(secret["defaultMode"] == 0o440 for secret in secrets)


def test_pages_and_manifests_name_the_same_image() -> None:
    page = (CHECKOUT / "docs" / "deploy.md").read_text()

    for name in re.findall(r"registry\.example/mnemosyned:[\w.]+", page):
        assert name == pods()[0]["containers"][0]["image"]
