"""Verdicts: pure functions from parsed result files to a Verdict. Knows nothing of backends or of the console."""
