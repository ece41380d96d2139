// Where the time of finished requests goes. These histograms move only when a request finishes.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;
local families = { queue: vllm.queue, prefill: vllm.prefill, decode: vllm.decode };
local engineStages = ['queue', 'prefill', 'decode'];

{
  local config = self._config,
  local p = promql.new(config),

  // End-to-end less the three, never below 0.
  local residual(e2e, stages) = 'clamp_min(%s%s, 0)' % [
    e2e,
    std.join('', [
      ' - %s %s' % [p.on(p.model), p.by('max', p.model, '%s{stage="%s"}' % [stages, stage])]
      for stage in engineStages
    ]),
  ],
  local share(stages, e2e) = '%s / %s group_left () (%s > 0)' % [stages, p.on(p.model), e2e],

  // Seconds that all requests of the window spent, so that a fleet's share weighs each backend by its time.
  local spent(mean) = p.byFleet('sum', '%s * %s group_left () %s' % [mean, p.on(p.model), recorded.window_requests], ['stage']),
  local total = p.byFleet('sum', '%s * %s' % [recorded.e2e_mean, recorded.window_requests]),

  prometheusRules+:: {
    groups+: [
      {
        name: 'tidegauge-stages',
        rules:
          [
            p.record('window_requests', p.prefer(exported.window_requests, p.increase(vllm.e2e, config.stageWindow))),
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
      },
      {
        name: 'tidegauge-gains',
        rules: [
          p.record(
            'fleet_stage_share',
            '%s / %s group_left () (%s > 0)' % [spent(recorded.stage_mean), p.on(['fleet']), total]
          ),
        ] + [
          p.record('gain_ceiling', '%s * %s' % [recorded.fleet_stage_share, cut], { cut: cut })
          for cut in config.cuts
        ],
      },
    ],
  },
}
