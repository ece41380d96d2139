// The parts of the split of vLLM's own queue time over 5 minutes, from its histogram alone; split.libsonnet puts them together.
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
      ],
    }],
  },
}
