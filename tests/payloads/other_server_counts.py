"""What each answer of other_server.py counts."""

from __future__ import annotations

K, STEPS, TAKEN = 4, 10, 11
HISTOGRAM = (4, 3, 2, 0, 1)
"""In how many steps 0, 1, 2, 3 and 4 tokens were taken."""

POSITIONS = (6, 3, 1, 1)
"""In how many steps the token at each position was taken."""
