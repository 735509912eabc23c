"""The forms of grants: IAM policies, Alibaba's RAM policies, Azure's roles, and short forms."""
