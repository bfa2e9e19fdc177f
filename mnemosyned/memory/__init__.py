"""What memory is: values, ports, and the decisions that every store takes."""
