"""What the domain needs from outside: a store, models, a clock."""
