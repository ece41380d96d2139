// Which fleet a server is in: what the exporter says, else the backends of one model name.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),

  // topk: two exporters that disagree about a backend's fleet must not break the join.
  local fleetOf = 'topk by (%s) (1, %s)' % [
    p.keys(['backend']),
    p.by('max', ['backend', 'fleet'], '%s{fleet!=""}' % exported.backend_info),
  ],
  // Whatever is seen natively, and what only an exporter sees.
  local seen = p.by('group', p.model, '%s or %s' % [recorded.in_flight, recorded.window_requests]),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-members',
      rules: [
        p.record(
          'fleet_member',
          '%s * %s group_left (fleet) %s or label_replace(%s unless %s %s, "fleet", "$1", "model_name", "(.*)")'
          % [seen, p.on(['backend']), fleetOf, seen, p.on(['backend']), fleetOf]
        ),
      ],
    }],
  },
}
