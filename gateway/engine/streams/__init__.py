"""Change streams and those who follow them."""
