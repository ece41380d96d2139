"""Pure derivation: window totals and facts in, figures out. Definitions: see `docs/metrics.md`."""
