"""Background work: jobs, batches and their pacing."""
