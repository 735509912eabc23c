"""Requests and answers as they travel: written down, sent again, and given to a second service besides."""
