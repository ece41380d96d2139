// The exporter's facts on capacity, ceilings and waiting, one row per subject however many exporters there are.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),

  local waits(subject, matcher) =
    p.by('max', [subject, 'cause'], 'rate(%s{%s}[5m])' % [exported.waiting_seconds, matcher]),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-capacity',
      rules: [
        p.record('request_capacity', p.by('max', ['backend', 'basis'], exported.request_capacity)),
        p.record('fleet_capacity', p.by('max', ['fleet', 'basis'], exported.fleet_request_capacity)),
        p.record('narrowest_capacity', p.by('min', ['fleet', 'basis'], exported.narrowest_request_capacity)),
        p.record('ceiling', p.by('max', ['fleet', 'ceiling'], exported.ceiling)),
        p.record('natural_bound', p.by('max', ['fleet'], exported.natural_bound)),
        p.record('ceiling_margin', '%s / %s group_left () (%s > 0)' % [
          recorded.ceiling,
          p.on(['fleet']),
          recorded.natural_bound,
        ]),
        p.record('clipped', p.by('max', ['fleet', 'ceiling'], exported.barrier_clipped_ratio)),
        p.record('ceiling_verdict', p.by('max', ['fleet', 'ceiling', 'state'], exported.ceiling_state)),
        p.record('waiting_cause', waits('backend', 'backend!=""')),
        p.record('fleet_waiting_cause', waits('fleet', 'fleet!=""')),
      ],
    }],
  },
}
