"""Object stores of exports and imports: S3 or a folder. They handle buckets, keys and bytes, never contents."""
