"""The questions that the shell asks about trails and lag: each an SQL text that both engines take, and what it needs."""
