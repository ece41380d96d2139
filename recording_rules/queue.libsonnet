// The split of vLLM's own queue time over 5 minutes, from its histogram alone.
//
// Nothing here knows an edge: they can be set per server. Among cumulative buckets the lowest one holds the least, so the
// minimum over `le` is the count up to the lowest edge.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;

{
  local config = self._config,
  local p = promql.new(config),
  local buckets = p.buckets(vllm.queue, '5m'),
  local enough = p.enough(recorded.queue_requests_5m),
  local edge = recorded.queue_edge_native,

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-queue',
      rules: [
        p.record('queue_requests_5m', p.increase(vllm.queue, '5m')),
        p.record('queue_on_time_5m', p.by('min', p.model, buckets)),
        p.record('queue_edge_native', p.edge(vllm.queue)),
        // Rounded, so that a share of exactly 5 % is not lost to the last bit of a float.
        p.record(
          'queue_late_ratio_5m',
          'clamp_min(round(1 - %s / %s, 0.000001), 0)' % [recorded.queue_on_time_5m, enough]
        ),
        // Each request on time is charged the whole edge: a lower bound. No late request waited less than the edge either;
        // clamp_min(x - edge, 0) + edge is the larger of the two.
        p.record('queue_late_seconds_5m', 'clamp_min((%s - %s * %s) / (%s - %s > 0) - %s, 0) + %s' % [
          p.trusted(p.byModel(p.ranged('increase', vllm.queue, '5m', '_sum')), vllm.queue, '5m'),
          edge,
          recorded.queue_on_time_5m,
          enough,
          recorded.queue_on_time_5m,
          edge,
          edge,
        ]),
        p.record('queue_waves_5m', '%s / (%s > 0)' % [enough, recorded.queue_on_time_5m]),
      ] + [
        p.record('queue_time_5m', p.clamped(q, buckets, edge, recorded.queue_requests_5m), { quantile: q })
        for q in ['0.5', '0.9']
      ],
    }],
  },
}
