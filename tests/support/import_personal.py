"""Histories of shells, commits, mail, calendars and address books, made up in their real shape."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.import_samples import (
    A_MINUTE_LATER,
    NINE,
    Expected,
    Sample,
    write_text,
)


def bash_times(folder: Path) -> Path:
    return write_text(
        folder / ".bash_history",
        "#1773651600\nmake test\n#1773651660\nfor i in 1 2\ndo echo $i\ndone\n",
    )


def bash_plain(folder: Path) -> Path:
    return write_text(folder / ".bash_history", "make test\nls\nmake test\n")


def zsh(folder: Path) -> Path:
    return write_text(
        folder / ".zsh_history",
        ": 1773651600:0;make test\n: 1773651660:3;echo a;\\\necho b\n",
    )


def fish(folder: Path) -> Path:
    return write_text(
        folder / "fish_history",
        "- cmd: make test\n  when: 1773651600\n- cmd: echo a\\necho b\n  when: 1773651660\n"
        "  paths:\n    - a\n",
    )


def git_repository(folder: Path) -> Path:
    path = folder / "shop"
    path.mkdir()
    environment = {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "HOME": str(folder),
        "PATH": "/usr/bin:/bin:/usr/local/bin",
        "GIT_AUTHOR_NAME": "Ann Bäcker",
        "GIT_AUTHOR_EMAIL": "ann@example.org",
        "GIT_COMMITTER_NAME": "Bob",
        "GIT_COMMITTER_EMAIL": "bob@example.org",
    }
    for date, command in (
        ("", ["init", "-q", "-b", "main", "--template="]),
        (
            "2026-03-16T09:00:00+01:00",
            ["commit", "-q", "--allow-empty", "-m", "Round tax\n\nHalf to even."],
        ),
        ("2026-03-16T10:00:00+01:00", ["commit", "-q", "--allow-empty", "-m", "Two"]),
    ):
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        subprocess.run(
            ["git", *command], cwd=path, env={**environment, **dates}, check=True
        )
    return path


def git_log(folder: Path) -> Path:
    return write_text(
        folder / "shop.log",
        "commit 1111111111111111111111111111111111111111 (HEAD -> main)\n"
        "Author: Ann <ann@example.org>\nDate:   Mon Mar 16 09:00:00 2026 +0100\n\n"
        "    Round tax\n\n    Half to even.\n\n"
        "commit 2222222222222222222222222222222222222222\nMerge: a b\n"
        "Author: Bob <bob@example.org>\nDate:   never\n\n    Two\n",
    )


def mbox(folder: Path) -> Path:
    path = folder / "Inbox.mbox"
    path.write_bytes(
        b"From 1@xxx Mon Mar 16 09:00:00 +0000 2026\r\n"
        b"Message-ID: <1@example.org>\r\nDate: Mon, 16 Mar 2026 10:00:00 +0100\r\n"
        b"From: =?utf-8?q?Ann_B=C3=A4cker?= <ann@example.org>\r\nTo: bob@example.org\r\n"
        b"Subject: Re: Ferry\r\nMIME-Version: 1.0\r\n"
        b"Content-Type: multipart/mixed; boundary=x\r\n\r\n"
        b"--x\r\nContent-Type: text/plain; charset=utf-8\r\n"
        b"Content-Transfer-Encoding: quoted-printable\r\n\r\n"
        b"It leaves at 7:40, gr=C3=BCn.\r\n>From then on it is free.\r\n\r\n> When?\r\n> Bob\r\n"
        b"--x\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n"
        b"JVBERi0=\r\n--x--\r\n\r\n"
        b"From 2@xxx Mon Mar 16 09:00:00 +0000 2026\r\n"
        b"From: shop@example.org\r\nSubject: Offer\r\nDate: never\r\nContent-Type: text/html\r\n\r\n"
        b"<html><head><style>p {}</style></head><body><p>Tents <b>half</b> price</p></body></html>\r\n"
        b"\r\nFrom 3@xxx Mon Mar 16 09:00:00 +0000 2026\r\nX-Empty: 1\r\n\r\n\r\n"
    )
    return path


def calendar(folder: Path) -> Path:
    path = folder / "home.ics"
    zone = (
        "BEGIN:VTIMEZONE\r\nTZID:Somewhere\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n"
        "TZOFFSETFROM:+0100\r\nTZOFFSETTO:+0100\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
    )
    event = (
        "BEGIN:VEVENT\r\nUID:1@x\r\nDTSTAMP:20260301T000000Z\r\n"
        "DTSTART;TZID=Europe/Berlin:20260316T100000\r\nDTEND;TZID=Europe/Berlin:20260316T110000\r\n"
        "SUMMARY:Zahnarzt\r\nLOCATION:Hauptstr. 1\r\nDESCRIPTION:Karte\\, bit\r\n te\r\n"
        "ATTENDEE;CN=Bob:mailto:bob@example.org\r\nRRULE:FREQ=YEARLY\r\n"
        "BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT15M\r\nEND:VALARM\r\nEND:VEVENT\r\n"
    )
    coming = (
        "BEGIN:VEVENT\r\nUID:2@x\r\nDTSTAMP:20260316T090000Z\r\nDTSTART;VALUE=DATE:21000101\r\n"
        "SUMMARY:Party\r\nEND:VEVENT\r\n"
    )
    path.write_bytes(
        f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{zone}{event}{coming}BEGIN:VEVENT\r\nUID:3".encode()
    )
    return path


def contacts(folder: Path) -> Path:
    path = folder / "people.vcf"
    path.write_bytes(
        b"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:1\r\nN:B\xc3\xa4cker;Ann;;;\r\nFN:Ann B\xc3\xa4cker\r\n"
        b"ORG:Shop;IT\r\nitem1.EMAIL;TYPE=work:ann@example.org\r\nBDAY:1980-03-16\r\n"
        b"REV:2026-03-16T09:00:00Z\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nVERSION:2.1\r\n"
        b"N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;Bob\r\n"
        b"FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Bob M=C3=BCller\r\nEND:VCARD\r\n"
        b"BEGIN:VCARD\r\nVERSION:3.0\r\nEND:VCARD\r\n"
    )
    return path


PERSONAL = [
    Sample(
        "shell",
        bash_times,
        [
            Expected("make test", "shell:bash", "shell", "user", NINE),
            Expected(
                "for i in 1 2\ndo echo $i\ndone",
                "shell:bash",
                "shell",
                "user",
                A_MINUTE_LATER,
            ),
        ],
    ),
    Sample(
        "shell",
        bash_plain,
        [
            Expected("make test", "shell:bash", "shell", "user"),
            Expected("ls", "shell:bash", "shell", "user"),
            Expected("make test", "shell:bash", "shell", "user"),
        ],
    ),
    Sample(
        "shell",
        zsh,
        [
            Expected("make test", "shell:zsh", "shell", "user", NINE),
            Expected("echo a;\necho b", "shell:zsh", "shell", "user", A_MINUTE_LATER),
        ],
    ),
    Sample(
        "shell",
        fish,
        [
            Expected("make test", "shell:fish", "shell", "user", NINE),
            Expected("echo a\necho b", "shell:fish", "shell", "user", A_MINUTE_LATER),
        ],
    ),
    Sample(
        "git",
        git_repository,
        [
            Expected(
                "Round tax\n\nHalf to even.",
                "",
                "git",
                "Ann Bäcker",
                "2026-03-16T09:00:00+01:00",
            ),
            Expected("Two", "", "git", "Ann Bäcker", "2026-03-16T10:00:00+01:00"),
        ],
    ),
    Sample(
        "git-log",
        git_log,
        [
            Expected(
                "Round tax\n\nHalf to even.",
                "git:shop",
                "git",
                "Ann",
                "2026-03-16T09:00:00+01:00",
            )
        ],
        bad=1,
    ),
    Sample(
        "mbox",
        mbox,
        [
            Expected(
                "Re: Ferry\n\nIt leaves at 7:40, grün.\nFrom then on it is free.",
                "mail:Ferry",
                "mail",
                "Ann Bäcker",
                "2026-03-16T10:00:00+01:00",
            ),
            Expected(
                "Offer\n\nTents half price", "mail:Offer", "mail", "shop@example.org"
            ),
        ],
        bad=1,
    ),
    Sample(
        "calendar",
        calendar,
        [
            Expected(
                "Zahnarzt\n2026-03-16 10:00 to 11:00 Europe/Berlin\nPlace: Hauptstr. 1\nWith: Bob\n"
                "Repeats: FREQ=YEARLY\n\nKarte, bitte",
                "calendar:home",
                "calendar",
                "",
                "2026-03-16T10:00:00+01:00",
            ),
            Expected("Party\n2100-01-01", "calendar:home", "calendar", "", NINE),
        ],
        bad=1,
    ),
    Sample(
        "contacts",
        contacts,
        [
            Expected(
                "Ann Bäcker\nCompany: Shop, IT\nMail: ann@example.org\nBirthday: 1980-03-16",
                "contacts",
                "contacts",
                "",
                NINE,
            ),
            Expected("Bob Müller", "contacts", "contacts"),
        ],
        bad=1,
    ),
]
