"""Colours and style of the console, as data."""
