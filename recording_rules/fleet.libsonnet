// Backends of a fleet held against each other.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),

  // A target that answers from another one's process would only be compared with itself.
  local twin = '(%s == 0)' % p.by('max', ['backend'], exported.backend_distinct),
  local distinct(vector) = '%s unless %s %s' % [vector, p.on(['backend']), twin],
  local comparable = distinct('%s and %s' % [recorded.e2e_mean, p.enough(recorded.window_requests)]),

  local signal(name, vector) = p.inFleet(p.label(distinct(vector), 'signal', name)),
  local signals = {
    queue_late: 'max without (where) (%s{where="server"})' % recorded.late_ratio,
    running: 'avg_over_time(%s[5m])' % recorded.running,
    prefix_hit: recorded.prefix_hit,
  },
  local all = std.join(' or ', [signal(name, signals[name]) for name in std.objectFields(signals)]),
  local extreme(op, labels=[]) = p.by(op, ['fleet', 'signal'], all),
  local several = '(%s > 1)' % extreme('count'),

  // The odd one out: the highest of most signals, the lowest of some.
  local worst(op, names) = '%s by (%s) (1, %s)' % [
    op,
    p.keys(['fleet', 'signal']),
    std.join(' or ', [signal(name, signals[name]) for name in names]),
  ],

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-fleet',
      rules: [
        p.record('fleet_e2e', p.inFleet(comparable)),
        p.record('fleet_slowest', 'topk by (%s) (1, %s)' % [p.keys(['fleet']), recorded.fleet_e2e]),
        p.record('fleet_skew', '%s / (%s > 0) and (%s > 1)' % [
          p.by('max', ['fleet'], recorded.fleet_e2e),
          p.by('min', ['fleet'], recorded.fleet_e2e),
          p.by('count', ['fleet'], p.by('count', ['fleet', 'backend'], recorded.fleet_e2e)),
        ]),
        p.record('skew_ratio', '%s / (%s > 0) and %s' % [extreme('max'), extreme('min'), several]),
        p.record('skew_difference', '%s - %s and %s' % [extreme('max'), extreme('min'), several]),
        p.record('skew_worst', '(%s or %s) and %s %s' % [
          worst('topk', ['queue_late', 'running']),
          worst('bottomk', ['prefix_hit']),
          p.on(['fleet', 'signal']),
          several,
        ]),
      ],
    }],
  },
}
