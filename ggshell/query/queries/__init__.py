"""The queries of the shell about trails and lag: each is an SQL text that both engines accept, with its parameters."""
