"""The server process: sockets, HTTP/1.1, the event loop, ticks and worker processes."""
