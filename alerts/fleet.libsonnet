// One backend of a fleet against the others.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;

// *text* with the slowest backend's sample as the dot.
local slowest(text) = '{{ with printf "%s{fleet=%%q}" $labels.fleet | query }}%s{{ end }}' % [recorded.fleet_slowest, text];

{
  local config = self._config,

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-fleet-alerts',
      rules: [{
        board:: 'latency',
        alert: 'VllmBackendSkew',
        // The slowest backend is named in the text, not in a label: two that take turns are one finding.
        expr: '%s > %s' % [recorded.fleet_skew, promql.number(config.thresholds.skew)],
        'for': config.holds.VllmBackendSkew,
        labels: { severity: 'warning' },
        annotations: {
          summary: 'fleet {{ $labels.fleet }}: the slowest backend' + slowest(' {{ . | first | label "backend" }}')
                   + ' takes {{ $value | printf "%.2f" }} times as long as the fastest.',
          description: 'A request takes ' + slowest('{{ . | first | value | humanizeDuration }}')
                       + " on average there. Look first at its queue share and its prompt lengths against the others', then at its prefix-cache "
                       + 'hit rate: sticky routing under a tight ceiling piles long prompts up on one server.',
        },
      }],
    }],
  },
}
