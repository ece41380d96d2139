"""Grafana boards, generated from the catalogue: `python -m dashboards.generate`."""
