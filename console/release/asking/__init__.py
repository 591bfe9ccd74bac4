"""Jobs that other programs ask for: how they are read, proposed and admitted. Nothing here can decide.

An asked job lies in the same queue as the flow's own, as the same exact record, and waits for the same decision.
It belongs to no stage, and no verdict rests on it.
"""
