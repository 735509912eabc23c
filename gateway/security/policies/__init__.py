"""The forms in which grants are written: IAM's policies, Alibaba's RAM policies, Azure's roles, and short forms."""
