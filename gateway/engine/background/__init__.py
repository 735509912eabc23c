"""Work beside requests: jobs, and its pace."""
