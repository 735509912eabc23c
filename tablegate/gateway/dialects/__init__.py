"""The protocol between the gateway and its adapters: dialects, what an adapter exports, and its forms of administration."""
