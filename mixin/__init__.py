"""The Prometheus mixin, and the generator of everything that is rendered from it and the catalogue."""
