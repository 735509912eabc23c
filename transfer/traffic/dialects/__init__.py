"""What traffic must know of each dialect: operations, secrets, signatures, and answers as trees that can be compared."""
