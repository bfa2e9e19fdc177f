"""The official SDK's tests are collected where it is installed: by `make test-agents`."""

from __future__ import annotations

from agents.outside import SDK

collect_ignore = [] if SDK.is_dir() else ["test_mcp_sdk.py"]
