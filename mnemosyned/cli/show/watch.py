"""Folders that are followed as the shell shows them."""

from __future__ import annotations

import click

from mnemosyned.cli.answers.table import table
from mnemosyned.terminal import counted, when
from mnemosyned.verbs.watching import WatchedFolder, Watching


def watching(watching: Watching) -> str:
    """A line for each folder."""
    if not watching.folders:
        return "nothing is watched; mnem watch DIR follows a folder"
    rows = [
        (
            folder.path,
            f"{folder.files:,}",
            f"{folder.stored:,}",
            when(folder.read_at) or "not yet",
            folder.added_by,
        )
        for folder in watching.folders
    ]
    lines = [table(("folder", "files", "memories", "last read", "by"), rows)]
    lines += [
        click.style(f"{folder.path}: {folder.problem}", fg="red")
        for folder in watching.folders
        if folder.problem
    ]
    if watching.waiting:
        lines.append("reading goes on")
    return "\n".join(lines)


def status_line(folders: list[WatchedFolder]) -> str:
    """The line of them in `status`; empty where nothing is followed."""
    if not folders:
        return ""
    files = sum(folder.files for folder in folders)
    stored = sum(folder.stored for folder in folders)
    problems = sum(bool(folder.problem) for folder in folders)
    trouble = (
        f"; {counted(problems, 'problem')}, see mnem watch --list" if problems else ""
    )
    return (
        f"{counted(len(folders), 'folder')}, {counted(files, 'file')}, "
        f"{counted(stored, 'memory')}{trouble}"
    )
