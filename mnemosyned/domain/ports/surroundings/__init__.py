"""Ports of what surrounds memory: sessions of agents, watched folders."""
