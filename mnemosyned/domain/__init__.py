"""What memory is: values and pure rules, standard library only, no I/O."""
