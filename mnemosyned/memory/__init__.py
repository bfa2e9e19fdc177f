"""The memory: values, ports, and the decisions that every store takes."""
