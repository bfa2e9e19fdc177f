"""Sleep: the plan of a cycle, its report, the periods of roll-ups."""
