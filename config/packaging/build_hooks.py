"""Hooks of the package's build: the readme as an index shows it, the project's links, the SBOM."""

from __future__ import annotations

import json
import re
import tempfile
import uuid
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = "requirements-server.lock"
"""Versions of all the package needs, with the extras that a server has."""
SBOM = "mnemosyned.cdx.json"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
LOCKED = re.compile(r"^([\w.-]+)==([^\s;]+)(?: ; (.+?))? \\$", re.MULTILINE)


def readme_for_index(text: str, repository: str, version: str) -> str:
    """Return README with links and pictures that lead to the repository's files of this version.

    Without a repository, links become plain text and pictures are left out.
    """

    def replace(found: re.Match[str]) -> str:
        mark, label, target = found.groups()
        if "://" in target:
            return found[0]
        if repository:
            kind = "raw" if mark else "blob"
            return f"{mark}[{label}]({repository}/{kind}/v{version}/{target})"
        return "" if mark else label

    text = LINK.sub(replace, text)
    return re.sub(r"\n{3,}", "\n\n", text)


class MetadataHook(MetadataHookInterface):
    """The readme and the links of the project, from `repository` in pyproject.toml."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill in the dynamic fields."""
        root, repository = Path(self.root), self.config["repository"]
        version = re.search(
            r'^__version__ = "(.+)"$',
            (root / "mnemosyned" / "version.py").read_text("utf-8"),
            re.MULTILINE,
        )
        if version is None:
            raise ValueError("mnemosyned/version.py has no line __version__ = …")
        readme = (root / "README.md").read_text("utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": readme_for_index(readme, repository, version[1]),
        }
        pages = {
            "Homepage": "",
            "Documentation": "/tree/main/docs",
            "Changelog": "/blob/main/CHANGELOG.md",
            "Issues": "/issues",
        }
        metadata["urls"] = (
            {name: repository + page for name, page in pages.items()}
            if repository
            else {}
        )


def sbom(
    lock: str, version: str, needs: list[str], extras: dict[str, list[str]]
) -> dict[str, Any]:
    """Return a CycloneDX 1.6 document of the package and the versions in the text of a lock.

    The same lock gives the same document: it has no time, and its serial number is a hash.
    """
    direct = {canonicalize_name(Requirement(need).name) for need in needs}
    of_extras: dict[str, list[str]] = {}
    for extra, wanted in extras.items():
        for need in wanted:
            of_extras.setdefault(canonicalize_name(Requirement(need).name), []).append(
                extra
            )
    components = []
    for name, release, marker in LOCKED.findall(lock):
        purl = f"pkg:pypi/{canonicalize_name(name)}@{release}"
        facts = {"marker": marker, "extras": " ".join(of_extras.get(name, ()))}
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": release,
            "purl": purl,
        }
        if name in of_extras and name not in direct:
            component["scope"] = "optional"
        if any(facts.values()):
            component["properties"] = [
                {"name": f"mnemosyned:{fact}", "value": value}
                for fact, value in facts.items()
                if value
            ]
        components.append(component)
    own = f"pkg:pypi/mnemosyned@{version}"
    named = direct | set(of_extras)
    serial = uuid.uuid5(uuid.NAMESPACE_URL, own + lock)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "mnemosyned",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "MIT"}}],
            },
        },
        "components": components,
        "dependencies": [
            {
                "ref": own,
                "dependsOn": [
                    component["bom-ref"]
                    for component in components
                    if component["name"] in named
                ],
            }
        ],
    }


class BuildHook(BuildHookInterface[Any]):
    """The SBOM of a wheel, in its `.dist-info/sboms`."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Write the SBOM, and name its file to the builder."""
        core = self.metadata.core
        document = sbom(
            (Path(self.root) / LOCK).read_text("utf-8"),
            self.metadata.version,
            core.dependencies,
            {
                extra: needs
                for extra, needs in core.optional_dependencies.items()
                if extra != "dev"
            },
        )
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / SBOM
        file.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        build_data["sbom_files"].append(str(file))

    def finalize(self, *_: object) -> None:
        """Remove the file."""
        self._folder.cleanup()
