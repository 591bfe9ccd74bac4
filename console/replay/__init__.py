"""Replay of a work log: an index over it, its state at any entry, and a player. The engine imports no Textual."""
