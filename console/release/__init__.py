"""The conductor: inputs, jobs, approvals, submission, gates, triage, log, state and report. Knows no Textual."""
