"""The Azure Table dialect: REST and OData JSON."""
