"""Every setting, read once and validated: file, then environment, then the caller's own."""
