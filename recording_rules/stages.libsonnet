// Where the time of finished requests goes. These histograms move only when a request finishes.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;
local families = { queue: vllm.queue, prefill: vllm.prefill, decode: vllm.decode };
local engineStages = ['queue', 'prefill', 'decode'];

// End-to-end less the three, never below 0.
local residual(e2e, stages) = 'clamp_min(%s%s, 0)' % [
  e2e,
  std.join('', [' - %s max by (backend, model_name) (%s{stage="%s"})' % [promql.onModel, stages, s] for s in engineStages]),
];

local share(stages, e2e) = '%s / %s group_left () (%s > 0)' % [stages, promql.onModel, e2e];

{
  local config = self._config,
  local p = promql.new(config),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-stages',
      rules:
        [p.record('e2e_mean_5m', p.mean(vllm.e2e, '5m'))]
        + [p.record('stage_mean_5m', p.mean(families[s], '5m'), { stage: s }) for s in engineStages]
        + [
          p.record('stage_mean_5m', residual(recorded.e2e_mean_5m, recorded.stage_mean_5m), { stage: 'other' }),
          p.record('stage_share_5m', share(recorded.stage_mean_5m, recorded.e2e_mean_5m)),
          p.record('window_requests', p.prefer(
            exported.window_requests,
            p.byModel(p.ranged('increase', vllm.e2e + '_count', config.stageWindow))
          )),
          p.record('e2e_mean', p.prefer(exported.e2e_seconds, p.mean(vllm.e2e, config.stageWindow))),
        ]
        + [
          p.record(
            'stage_mean',
            p.prefer('%s{stage="%s"}' % [exported.stage_seconds, s], p.mean(families[s], config.stageWindow)),
            { stage: s }
          )
          for s in engineStages
        ]
        + [
          p.record(
            'stage_mean',
            p.prefer('%s{stage="other"}' % exported.stage_seconds, residual(recorded.e2e_mean, recorded.stage_mean)),
            { stage: 'other' }
          ),
          p.record('stage_share', share(recorded.stage_mean, recorded.e2e_mean)),
        ],
    }],
  },
}
