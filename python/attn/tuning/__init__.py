"""Candidates of plans and their times. `attn.autotune` is its public module."""
