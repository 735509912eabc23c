"""Files of exports to S3 and imports from it: bytes to items and back. The modules open no file and use no bucket."""
