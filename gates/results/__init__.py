"""Readers for the files that other projects' tools write, each number with its unit, its meaning and its scope."""
