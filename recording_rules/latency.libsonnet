// What a request feels, per backend. Quantiles of servers with other buckets cannot be merged, so none are.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;
local quantiles = ['0.5', '0.9', '0.99'];

{
  local config = self._config,
  local p = promql.new(config),

  local clamped(key, family, edge, requests) = [
    p.record(key, p.clamped(q, p.buckets(family, '5m'), edge, requests), { quantile: q })
    for q in quantiles
  ],

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-latency',
      rules: [
        // One setting of the server gives both per-token histograms their buckets; servers before 0.11 have the second only.
        p.record('token_edge', '(%s) or (%s)' % [p.edge(vllm.tpot), p.edge(vllm.itl)]),
      ] + [
        // From 1 ms on: nothing is faster, so there is nothing to clamp.
        p.record(
          'ttft_5m',
          'histogram_quantile(%s, %s) and %s' % [q, p.buckets(vllm.ttft, '5m'), p.enough(p.increase(vllm.ttft, '5m'))],
          { quantile: q }
        )
        for q in quantiles
      ] + clamped('tpot_5m', vllm.tpot, recorded.token_edge, p.increase(vllm.tpot, '5m'))
             + clamped('itl_5m', vllm.itl, recorded.token_edge, p.increase(vllm.itl, '5m'))
             // The end-to-end buckets are those of the queue.
             + clamped('e2e_5m', vllm.e2e, recorded.queue_edge_native, p.increase(vllm.e2e, '5m')),
    }],
  },
}
