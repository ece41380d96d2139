// One backend of a fleet against the others.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;

{
  local config = self._config,
  local a = alert.new(config, 'skew'),
  local n = promql.number,
  local p = promql.new(config),
  local extreme(op) = p.by(op, ['fleet'], recorded.fleet_e2e),

  // *text* with the slowest backend's sample as the dot.
  local slowest(text) =
    '{{ with %s }}%s{{ end }}' % [a.lookup(recorded.fleet_slowest + 'SELECTOR', ['fleet']), text],

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-fleet-alerts',
      rules: [
        a.warning(
          'VllmBackendSkew',
          // The slowest backend is named in the text, not in a label: two that take turns are one finding.
          '%s > %s and %s - %s >= %s' % [
            recorded.fleet_skew,
            n(config.thresholds.skew),
            extreme('max'),
            extreme('min'),
            n(config.limits.worth_seconds),
          ],
          'fleet {{ $labels.fleet }}: the slowest backend' + slowest(' {{ . | first | label "backend" }}')
          + ' takes {{ $value | printf "%.2f" }} times as long as the fastest.',
          'A request takes ' + slowest('{{ . | first | value | humanizeDuration }}')
          + " on average there. Look first at its queue share and its prompt lengths against the others', then at its prefix-cache "
          + 'hit rate: sticky routing under a tight ceiling piles long prompts up on one server.'
        ),
      ],
    }],
  },
}
