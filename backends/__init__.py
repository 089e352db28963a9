"""The engines behind a typed wall: protocol, client, worker and one folder a backend."""
