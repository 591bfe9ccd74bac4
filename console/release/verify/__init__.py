"""Checks a run folder from its own bytes: what a stranger needs to believe a verdict, or not to.

Nothing here asks a cluster or a network, and nothing raises for what lies in the folder.
"""
