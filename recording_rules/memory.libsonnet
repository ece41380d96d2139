// The KV cache. A usage is a share of a backend's own cache: over backends it is weighed by capacity, or the largest is taken.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;

{
  local config = self._config,
  local p = promql.new(config),
  local rate(family) = p.byModel(p.ranged('rate', family, '5m')),

  local capacity = '%s group_left () %s' % [p.on(['backend']), recorded.kv_capacity],
  // 1 where the backend's capacity is known.
  local known = '(%s > bool 0)' % recorded.kv_capacity,

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-memory',
      rules: [
        // max also over the processes of releases whose gauge has one series per process, all but one of them 0.
        p.record('kv_usage', p.byModel(p.native(vllm.kv_usage), 'max')),
        p.record('kv_capacity', p.by('max', ['backend'], exported.kv_cache_capacity_tokens)),
        p.record('preemption_rate', rate(vllm.preemptions)),
        p.record('prefix_hit', '%s / (%s > 0)' % [rate(vllm.prefix_hits), rate(vllm.prefix_queries)]),
        p.record('fleet_kv_max', p.byFleet('max', recorded.kv_usage)),
        p.record(
          'fleet_kv_weighted',
          '%s / %s and (%s == %s)' % [
            p.byFleet('sum', '%s * %s' % [recorded.kv_usage, capacity]),
            p.byFleet('sum', '%s ^ 0 * %s' % [recorded.kv_usage, capacity]),
            p.byFleet('count', '%s * %s group_left () %s' % [recorded.kv_usage, p.on(['backend']), known]),
            p.byFleet('count', recorded.kv_usage),
          ]
        ),
        p.record('fleet_preemption_rate', p.byFleet('sum', recorded.preemption_rate)),
      ],
    }],
  },
}
