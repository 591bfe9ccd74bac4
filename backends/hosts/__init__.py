"""Machines that run a shell script and hold files: this one, or one over SSH."""
