"""Operations on rows: single, ranges, batches, and local transactions."""
