"""When and how sleep cycles run."""
