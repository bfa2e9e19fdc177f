"""Records of a person: shell history, git logs, mail, calendars, contacts."""
