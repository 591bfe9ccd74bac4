"""Verdicts: pure functions from the bytes of result files to a Verdict. Knows nothing of backends or the console."""
