"""The project a directory belongs to: its repository's origin, or the repository, or itself."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence

from mnemosyned.socket_path import read_text

PARENTS_MAX = 64
"""Directories looked at on the way up."""
KEY_CHARS_MAX = 512
CASELESS_HOSTS = frozenset({"github.com", "gitlab.com", "bitbucket.org"})
"""Hosts on which ann/Shop and ann/shop are the same repository."""
DEFAULT_PORTS = frozenset({"22", "80", "443", "9418"})

_SECTION = re.compile(r'\[\s*remote\s+"([^"]*)"\s*\]', re.IGNORECASE)
_SETTING = re.compile(r"url\s*=\s*(.*)", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_SCP = re.compile(r"(?:[^@/\s]+@)?(?P<host>[^:/\s]+):(?!//)(?P<path>.+)")


class Project:
    """The project that a session belongs to; no dataclass, as hooks cannot wait for its module."""

    __slots__ = ("former", "key", "root")

    def __init__(self, key: str, root: str = "", former: Sequence[str] = ()) -> None:
        self.key = key
        """The same for every clone, worktree and subdirectory; empty for no project."""
        self.root = root
        """The directory at its top, as far as it is known."""
        self.former = former
        """Keys that it may have had before: without an origin, which comes first, or with another remote as it.

        Empty without an origin.
        """


NO_PROJECT = Project("")


def project_of(
    directory: str | os.PathLike[str] | None,
    *,
    override: str = "",
    home: str | os.PathLike[str] | None = None,
) -> Project:
    """Return the project of a directory, or `NO_PROJECT` for the home directory or the root.

    The key of a git repository is its remote `origin` ("github.com/ann/shop"); without a remote, the path
    that its worktrees share. Elsewhere the key is the directory. `override` is used as the key if not empty,
    `home` replaces the user's home directory. Starts no process.
    """
    path = os.fspath(directory) if directory else ""
    if chosen := override.strip()[:KEY_CHARS_MAX]:
        return Project(chosen, path)
    if not os.path.isabs(path) or "\0" in path:
        return NO_PROJECT
    start = os.path.realpath(path)
    stop_at = {"/", os.path.realpath(os.fspath(home or os.path.expanduser("~")))}
    if start in stop_at:
        return NO_PROJECT
    root = start
    for _ in range(PARENTS_MAX):
        if root in stop_at:
            break
        if (git := _find_git_directory(root)) is not None:
            shared = read_text(os.path.join(git, "commondir"))
            common = os.path.realpath(os.path.join(git, shared or "."))
            is_plain = os.path.basename(common) == ".git"
            place = os.path.dirname(common) if is_plain else common
            urls = _find_remotes(read_text(os.path.join(common, "config")))
            keys = {
                name: _normalize_url(url, root=place)[:KEY_CHARS_MAX]
                for name, url in urls.items()
            }
            without = place[:KEY_CHARS_MAX]
            if not (key := keys.pop("origin", "")):
                return Project(without, root)
            return Project(key, root, [without, *keys.values()])
        root = os.path.dirname(root)
    return Project(start[:KEY_CHARS_MAX], start)


def is_below(directory: str, folders: Sequence[str]) -> bool:
    """Return whether a directory is one of these folders or in one, links followed; a `~` is the home."""
    if not (directory and folders):
        return False
    places = [directory, *map(os.path.expanduser, folders)]
    inside, *roots = (os.path.join(os.path.realpath(place), "") for place in places)
    return any(map(inside.startswith, roots))


def _find_git_directory(root: str) -> str | None:
    """Return the git directory of a checkout at `root`, or None; a file `.git` may name it."""
    place = os.path.join(root, ".git")
    try:
        mode = os.stat(place).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(mode):
        return place
    named = read_text(place).removeprefix("gitdir:").strip()
    return os.path.normpath(os.path.join(root, named)) if named else None


def _find_remotes(config: str) -> dict[str, str]:
    """Return {name: URL} of the remotes in the text of a git config."""
    urls: dict[str, str] = {}
    remote = None
    for line in config.splitlines():
        text = line.strip()
        if text.startswith("["):
            remote = _SECTION.match(text)
        elif remote and (setting := _SETTING.match(text)):
            url = setting[1].split(" #")[0].split(" ;")[0].strip().strip('"')
            urls.setdefault(remote[1], url)
    return urls


def _normalize_url(url: str, *, root: str) -> str:
    """Return a remote's URL as "host/path", or as a path if it is on this machine."""
    if url.lower().startswith("file://"):
        return _make_local_key(url[len("file://") :], root)
    if scheme := _URL.match(url):
        place, _, path = url[scheme.end() :].partition("/")
        host, _, port = place.rpartition("@")[2].partition(":")
        suffix = f":{port}" if port and port not in DEFAULT_PORTS else ""
        return _make_remote_key(host, suffix, path)
    if (short := _SCP.fullmatch(url)) and not url.startswith(("/", ".")):
        return _make_remote_key(short["host"], "", short["path"])
    return _make_local_key(url, root)


def _make_remote_key(host: str, port: str, path: str) -> str:
    """Return "host:port/path" of a git remote, the path in lower case for some hosts."""
    host = host.lower()
    path = re.split(r"[?#]", path)[0].strip("/").removesuffix(".git").strip("/")
    if host in CASELESS_HOSTS:
        path = path.lower()
    return f"{host}{port}/{path}"


def _make_local_key(path: str, root: str) -> str:
    """Return the absolute path of a git remote on this machine, without ".git"."""
    place = os.path.realpath(os.path.join(root, path))
    return place.removesuffix("/.git").removesuffix(".git")
