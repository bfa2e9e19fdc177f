"""Starts of cycles: triggers, the schedule, and the wait for a machine that has time."""
