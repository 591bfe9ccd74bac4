"""Slurm over any host: submit exactly once, read queue and accounting, cancel, describe the cluster."""
