"""The daemon: process, supervisor and HTTP resources."""
