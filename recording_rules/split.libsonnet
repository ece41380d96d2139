// The split wherever the wait is: in the caller's limiter (only the exporter knows) or in vLLM's queue.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),

  local prefer(series, native, extra=[]) = std.join(' or ', [
    p.by('avg', ['where'] + p.model + extra, '%s{where="server"}' % series),
    p.by('avg', ['where', 'fleet'] + extra, '%s{where="caller"}' % series),
    '(%s)' % p.uncovered(p.label(native, 'where', 'server')),
  ]),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-split',
      rules: [
        p.record('late_ratio', prefer(exported.queue_late_ratio, recorded.queue_late_ratio_5m)),
        p.record('late_seconds', prefer(exported.queue_late_seconds, recorded.queue_late_seconds_5m)),
        p.record(
          'edge',
          prefer(exported.queue_edge_seconds, '%s and %s' % [recorded.queue_edge_native, recorded.queue_late_ratio_5m])
        ),
        p.record('waves', prefer(exported.queue_effective_waves, recorded.queue_waves_5m)),
        p.record('queue_time', prefer(exported.queue_time_seconds, recorded.queue_time_5m, ['quantile'])),
        p.record('impact', prefer(
          exported.queue_impact_ratio,
          '%s and %s' % [
            p.by('max', p.model, '%s{stage="queue"}' % recorded.stage_share_5m),
            recorded.queue_late_ratio_5m,
          ]
        )),
        p.record('split', '%s / %s' % [recorded.late_seconds, recorded.edge]),
        p.record('p90_p50', '%s{quantile="0.9"} / ignoring (quantile) %s{quantile="0.5"}' % [
          recorded.queue_time,
          recorded.queue_time,
        ]),
      ],
    }],
  },
}
