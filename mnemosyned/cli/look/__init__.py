"""Commands that look: lists, periods, live events, and the state at a glance."""
