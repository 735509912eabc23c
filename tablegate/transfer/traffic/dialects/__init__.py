"""The three dialects as seen by a proxy: operations, tokens, and replies as comparable trees."""
