"""The embedded cluster: a real SSH server on loopback, with commands that answer as Slurm's do.

It is for the first run and for tests, and is reached only through the SSH and Slurm code that reaches every
other cluster. It is a process of its own: it and its jobs outlive whoever started it.
"""
