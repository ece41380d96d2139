"""The report: the figures of a moment as JSON and as text; from a running exporter, from servers or from captures."""
