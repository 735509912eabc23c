"""What members of a request mean together: rules that a schema cannot say."""
