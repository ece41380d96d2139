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

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-queue',
      rules: [
        p.record('queue_requests_5m', p.increase(vllm.queue, '5m')),
        p.record('queue_on_time_5m', p.by('min', p.model, buckets)),
        p.record('queue_edge_native', p.edge(vllm.queue)),
      ],
    }],
  },
}
