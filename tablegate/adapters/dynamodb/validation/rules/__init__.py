"""Rules about several members of a request, which a schema cannot express."""
