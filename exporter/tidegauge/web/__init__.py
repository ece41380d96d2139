"""The exporter's HTTP side: metrics, health, callers' events, the report as JSON, a landing page."""
