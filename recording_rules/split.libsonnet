// The split wherever the wait is: in the caller's limiter (only the exporter knows) or in vLLM's queue.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;

{
  local config = self._config,
  local p = promql.new(config),

  local prefer(series, native, matcher='') = std.join(' or ', [
    p.by('avg', ['where'] + p.model, '%s{%swhere="server"}' % [series, matcher]),
    p.by('avg', ['where', 'fleet'], '%s{%swhere="caller"}' % [series, matcher]),
    '(%s)' % p.uncovered(p.label(native, 'where', 'server')),
  ]),

  // What the exporter would say, from the parts that queue.libsonnet records.
  local enough = p.enough(recorded.queue_requests_5m),
  local onTime = recorded.queue_on_time_5m,
  local edge = recorded.queue_edge_native,
  // Each request on time is charged the whole edge: a lower bound. No late request waited less than the edge either;
  // clamp_min(x - edge, 0) + edge is the larger of the two.
  local nativeSeconds = 'clamp_min((%s - %s * %s) / (%s - %s > 0) - %s, 0) + %s' % [
    p.trusted(p.byModel(p.ranged('increase', vllm.queue, '5m', '_sum')), vllm.queue, '5m'),
    edge,
    onTime,
    enough,
    onTime,
    edge,
    edge,
  ],
  local nativeQuantile(q) = p.clamped(q, p.buckets(vllm.queue, '5m'), edge, recorded.queue_requests_5m),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-split',
      rules: [
        // Rounded, so that a share of exactly 5 % is not lost to the last bit of a float.
        p.record(
          'late_ratio',
          prefer(exported.queue_late_ratio, 'clamp_min(round(1 - %s / %s, 0.000001), 0)' % [onTime, enough])
        ),
        p.record('late_seconds', prefer(exported.queue_late_seconds, nativeSeconds)),
        p.record('waves', prefer(exported.queue_effective_waves, '%s / (%s > 0)' % [enough, onTime])),
        p.record('impact', prefer(
          exported.queue_impact_ratio,
          '(%s) / (%s > 0) and %s' % [p.mean(vllm.queue, '5m'), p.mean(vllm.e2e, '5m'), enough]
        )),
      ] + [
        p.record('queue_time', prefer(exported.queue_time_seconds, nativeQuantile(q), 'quantile="%s",' % q), { quantile: q })
        for q in ['0.5', '0.9']
      ] + [
        p.record('split', '%s / (%s)' % [recorded.late_seconds, prefer(exported.queue_edge_seconds, edge)]),
      ],
    }],
  },
}
