"""The domain: values and pure rules of memory, standard library only, no I/O."""
