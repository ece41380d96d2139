"""Pure derivation: window totals and facts in, figures out. What each means: `docs/metrics.md`."""
