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

  local window = config.stageWindow,
  local each(of) = std.join(' or ', [p.label(of(families[stage]), 'stage', stage) for stage in engineStages]),

  // vLLM books the host's uptime as the prefill of a request that its engine aborts. All histograms of a request move
  // together, when it ends, and its stages follow one another within it: they cannot add up to more than its end-to-end
  // time (a tenth is left for clocks and for a page that was written meanwhile), nor can the longest prefill lie in a higher
  // bucket than the longest request.
  local longest(family) = 'histogram_quantile(1, %s)' % p.buckets(family, window),
  local poisoned = '%s > 1.1 * %s or %s > %s' % [
    p.byModel(each(function(family) p.ranged('rate', family, window, '_sum'))),
    p.byModel(p.ranged('rate', vllm.e2e, window, '_sum')),
    longest(vllm.prefill),
    longest(vllm.e2e),
  ],
  local means = '(%s) unless %s (%s)' % [each(function(family) p.mean(family, window)), p.on(p.model), poisoned],

  // End-to-end less the three, never below 0.
  local residual(e2e, stages) = 'clamp_min(%s%s, 0)' % [
    e2e,
    std.join('', [
      ' - %s %s' % [p.on(p.model), p.by('max', p.model, '%s{stage="%s"}' % [stages, stage])]
      for stage in engineStages
    ]),
  ],
  local share(stages, e2e) = '%s / %s group_left () (%s > 0)' % [stages, p.on(p.model), e2e],

  // A fleet's share weighs each backend by the seconds that its requests spent; one whose stage is not known has no weight.
  local spent = '(%s * %s)' % [recorded.e2e_mean, recorded.window_requests],
  local weighed(share) = p.byFleet('sum', '%s * %s group_left () %s' % [share, p.on(p.model), spent], ['stage']),

  prometheusRules+:: {
    groups+: [
      {
        name: 'tidegauge-stages',
        rules: [
          p.record('window_requests', p.prefer(exported.window_requests, p.increase(vllm.e2e, window))),
          p.record('e2e_mean', p.prefer(exported.e2e_seconds, p.mean(vllm.e2e, window))),
          p.record('stage_mean', p.prefer(
            '%s{stage=~"%s"}' % [exported.stage_seconds, std.join('|', engineStages)],
            means,
            ['stage']
          )),
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
          p.record('fleet_stage_share', '%s / %s' % [
            weighed(recorded.stage_share),
            weighed('%s ^ 0' % recorded.stage_share),
          ]),
        ] + [
          p.record('gain_ceiling', '%s * %s' % [recorded.fleet_stage_share, cut], { cut: cut })
          for cut in config.cuts
        ],
      },
    ],
  },
}
