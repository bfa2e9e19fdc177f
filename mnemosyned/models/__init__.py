"""Language models: the files on this machine, the llama.cpp process, and HTTP endpoints."""
