"""Data: which jobs make up each stage, and their script templates."""
