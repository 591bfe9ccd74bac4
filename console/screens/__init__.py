"""Full screens and dialogs of the console."""
