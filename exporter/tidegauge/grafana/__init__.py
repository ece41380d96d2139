"""Boards into a Grafana: read from their files, planned, pushed over its HTTP API, or wrapped for Kubernetes."""
