"""What the daemon answers besides the protocols of agents: the verbs and what describes them."""
