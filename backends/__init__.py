"""Where jobs run and files live. Knows nothing of gates or of the console."""
