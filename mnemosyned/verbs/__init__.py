"""What can be asked: the requests of every verb and their results."""
