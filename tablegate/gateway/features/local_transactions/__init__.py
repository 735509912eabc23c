"""Local transactions: Table Store's transactions on one partition."""
