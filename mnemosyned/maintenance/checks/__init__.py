"""The checks of `mnem doctor`: each a function from the installation to its findings."""
