"""Jobs on objects of S3 or a folder: exports, imports and bulk puts."""
