// Servers of a fleet as its exporter counts them, and what arrives at them together.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),
  local inFleet = p.by('max', ['fleet', 'backend'], '%s{fleet!=""}' % exported.backend_info),
  local reached = '(%s == 1)' % p.by('max', ['backend'], exported.backend_up),
  local twin = '(%s == 0)' % p.by('max', ['backend'], exported.backend_distinct),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-counts',
      rules: [
        p.record('fleet_distinct_up', p.by('count', ['fleet'], '%s and %s %s unless %s %s' % [
          inFleet,
          p.on(['backend']),
          reached,
          p.on(['backend']),
          twin,
        ])),
        p.record('fleet_arrival_rate', p.by('sum', ['fleet'], '%s * %s group_left () %s' % [
          inFleet,
          p.on(['backend']),
          recorded.arrival_rate,
        ])),
      ],
    }],
  },
}
