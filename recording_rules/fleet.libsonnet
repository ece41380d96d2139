// Backends of a fleet held against each other. A fleet is what the exporter says, else the backends of one model name.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),

  // topk: two exporters that disagree about a backend's fleet must not break the join.
  local fleetOf = 'topk by (backend) (1, max by (backend, fleet) (%s{fleet!=""}))' % exported.backend_info,
  // A target that answers from another one's process would only be compared with itself.
  local comparable = '(%s and %s >= %s unless on (backend) (max by (backend) (%s) == 0))' % [
    recorded.e2e_mean,
    recorded.window_requests,
    promql.number(config.thresholds.min_requests),
    exported.backend_distinct,
  ],

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-fleet',
      rules: [
        p.record(
          'fleet_e2e',
          '%s * on (backend) group_left (fleet) %s or label_replace(%s unless on (backend) %s, "fleet", "$1", "model_name", "(.*)")'
          % [comparable, fleetOf, comparable, fleetOf]
        ),
        p.record('fleet_slowest', 'topk by (fleet) (1, %s)' % recorded.fleet_e2e),
        p.record(
          'fleet_skew',
          'max by (fleet) (%s) / (min by (fleet) (%s) > 0) and (count by (fleet) (count by (fleet, backend) (%s)) > 1)'
          % [recorded.fleet_e2e, recorded.fleet_e2e, recorded.fleet_e2e]
        ),
      ],
    }],
  },
}
