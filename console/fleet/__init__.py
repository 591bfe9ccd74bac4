"""All releases below some folders at once: what each waits for, and whether it is the operator."""
