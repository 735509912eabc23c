"""Where objects of exports and imports are: an S3, or a folder. Knows buckets, keys and bytes, and nothing of what is in them."""
