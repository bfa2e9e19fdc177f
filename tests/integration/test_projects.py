"""The project of a directory: one key for all clones and worktrees, and never a base name."""

import os
import subprocess
from pathlib import Path

import pytest
from support.cases import each_case

from mnemosyned.importers.projects import NO_PROJECT, project_of


def repository(root: Path, *, origin: str = "") -> Path:
    """A directory with the files that git keeps of a repository."""
    (root / ".git").mkdir(parents=True)
    remote = f'[remote "origin"]\n\turl = {origin}\n' if origin else ""
    fork = '[core]\n\tbare = false\n[remote "fork"]\n\turl = git@x.org:bob/fork.git\n'
    branch = '[branch "main"]\n\tremote = origin\n'
    (root / ".git" / "config").write_text(f"{fork}{remote}{branch}")
    return root


def key(directory: Path, home: Path = Path("/home/nobody")) -> str:
    return project_of(directory, home=home).key


@pytest.mark.parametrize(
    "origin",
    [
        "git@github.com:ann/shop.git",
        "https://github.com/ann/shop",
        "https://ann:s3cret@github.com/Ann/shop.git/",
        "ssh://git@github.com:22/ann/shop.git",
        "ssh://git@GitHub.com/ann/shop",
        '"https://github.com/ann/shop.git" # the shop',
    ],
)
def test_every_spelling_of_an_origin_is_one_project(
    tmp_path: Path, origin: str
) -> None:
    project = project_of(repository(tmp_path / "w", origin=origin), home=tmp_path)

    assert project.key == "github.com/ann/shop"


def test_a_repository_with_an_origin_has_the_keys_from_before_it(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "w")
    before = project_of(root / "src", home=tmp_path)
    (root / ".git" / "config").write_text(
        '[remote "origin"]\n\turl = x.org:ann/shop\n\tfetch = +refs/heads/*\n'
        '[remote "upstream"]\n\turl = https://x.org/shop/shop.git\n[core]\n\turl = y\n'
    )

    after = project_of(root / "src", home=tmp_path)

    assert (before.key, [*before.former]) == (str(root), [])
    assert after.key == "x.org/ann/shop"
    assert after.former == [str(root), "x.org/shop/shop"]


def test_two_hosts_ports_owners_and_folders_are_different_projects(
    tmp_path: Path,
) -> None:
    origins = [
        "git@github.com:ann/shop.git",
        "git@github.com:bob/shop.git",
        "git@example.org:ann/shop.git",
        "ssh://git@example.org:2222/ann/shop.git",
        "git@example.org:ann/Shop.git",
    ]
    roots = [tmp_path / str(number) / "shop" for number in range(7)]
    keys = {
        key(repository(root, origin=origin))
        for root, origin in zip(roots, [*origins, "", ""], strict=True)
    }

    assert len(keys) == len(roots)


def test_a_worktree_is_the_project_of_its_repository(tmp_path: Path) -> None:
    root, worktree = tmp_path / "shop", tmp_path / "fix"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(root)]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], check=True)

    assert key(worktree) == key(root) == str(root)


def test_a_subdirectory_and_a_clone_of_a_path_are_the_project_of_that_path(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "shop")
    (root / "src" / "cart").mkdir(parents=True)
    clone = repository(tmp_path / "clone", origin=str(root / ".git"))
    beside = repository(tmp_path / "beside", origin="../shop")

    directories = (root, root / "src" / "cart", clone, beside)
    assert {key(each) for each in directories} == {str(root)}


def test_submodules_of_one_repository_are_different_projects(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop")
    for name in ("cart", "tax"):
        (root / ".git" / "modules" / name).mkdir(parents=True)
        (root / name).mkdir()
        (root / name / ".git").write_text(f"gitdir: ../.git/modules/{name}\n")

    assert len({key(root), key(root / "cart"), key(root / "tax")}) == 3


def test_a_directory_without_a_repository_is_its_own_project(tmp_path: Path) -> None:
    notes, link = tmp_path / "notes", tmp_path / "link"
    notes.mkdir()
    link.symlink_to(notes)

    assert key(notes) == key(link) == str(notes)
    assert key(tmp_path / "removed") == str(tmp_path / "removed")


def test_the_home_directory_is_no_project_although_it_is_a_repository(
    tmp_path: Path,
) -> None:
    repository(tmp_path, origin="git@github.com:ann/dotfiles.git")
    notes = tmp_path / "notes"
    notes.mkdir()

    assert project_of(tmp_path, home=tmp_path) == NO_PROJECT
    assert key(notes, home=tmp_path) == str(notes)


@each_case("directory", ["", None, "/", "relative/path", "/a\0b"])
def test_no_directory_is_no_project(directory: str | None) -> None:
    assert project_of(directory) == NO_PROJECT


def test_an_override_wins(tmp_path: Path) -> None:
    project = project_of(repository(tmp_path / "w"), override=" team/shop ")

    assert project.key == "team/shop"


def test_files_that_would_block_or_are_damaged_are_passed_over(tmp_path: Path) -> None:
    piped, broken = tmp_path / "piped", tmp_path / "broken"
    (piped / ".git").mkdir(parents=True)
    os.mkfifo(piped / ".git" / "config")
    broken.mkdir()
    (broken / ".git").write_bytes(b"\xff\xfe nonsense")

    assert key(piped) == str(piped)
    assert key(broken).startswith(str(broken))
