"""The files of exports to S3 and imports from it: bytes to items and back. Opens no file and knows no bucket."""
