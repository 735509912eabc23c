"""The process that serves: sockets, HTTP/1.1, the event loop, ticks, worker processes."""
