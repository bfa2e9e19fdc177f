"""Answers of the daemon besides the protocols of agents: the verbs and what describes them."""
