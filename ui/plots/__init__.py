"""One file a plot, drawn from the telemetry store by one shared timer."""
