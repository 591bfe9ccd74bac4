"""The catalog of thresholds: what each model and drafter has to reach, where each bar comes from, and since when."""
