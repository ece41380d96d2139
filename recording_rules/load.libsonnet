// What is asked of the servers and what they give.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;
local reason = 'finished_reason';

{
  local config = self._config,
  local p = promql.new(config),

  local rate(family, labels=[]) = p.byModel(p.ranged('rate', family, '5m'), labels=labels),
  local lengths(key, family) = [
    p.record(
      key,
      'histogram_quantile(%s, %s) and %s'
      % [q, p.buckets(family, config.stageWindow), p.enough(p.increase(family, config.stageWindow))],
      { quantile: q }
    )
    for q in ['0.5', '0.95', '0.99']
  ],

  // A request whose first token came and whose end did not was aborted or still runs.
  local unfinished = 'clamp_min(%s - %s - %s, 0)' % [
    p.increase(vllm.ttft, config.stageWindow),
    p.increase(vllm.e2e, config.stageWindow),
    recorded.running,
  ],
  local departed = 'increase(%s[%s])' % [exported.departed_unfinished, config.stageWindow],

  prometheusRules+:: {
    groups+: [
      {
        name: 'tidegauge-load',
        rules: [
          p.record('prompt_rate', rate(vllm.prompt_tokens)),
          p.record('output_rate', rate(vllm.output_tokens)),
          p.record('request_rate', rate(vllm.finished)),
          p.record('in_flight_5m', 'avg_over_time(%s[5m])' % recorded.in_flight),
          p.record('fleet_prompt_rate', p.byFleet('sum', recorded.prompt_rate)),
          p.record('fleet_output_rate', p.byFleet('sum', recorded.output_rate)),
          p.record('fleet_finished_rate', p.by('sum', ['fleet', reason], '%s * %s group_left (fleet) %s' % [
            rate(vllm.finished, [reason]),
            p.on(p.model),
            recorded.fleet_member,
          ])),
          p.record('rejection_rate', '%s > 0' % rate(vllm.rejections, ['reason'])),
          p.record('aborted', '%s or (%s)' % [
            p.by('max', ['backend'], departed),
            p.uncovered(p.by('sum', ['backend'], unfinished)),
          ]),
          // Two exporters that poll one backend count the same arrivals.
          p.record('arrival_rate', p.by('max', ['backend'], 'rate(%s[5m])' % exported.arrivals)),
          p.record('burstiness', p.by('max', ['fleet'], exported.arrival_burstiness)),
        ],
      },
      {
        name: 'tidegauge-lengths',
        rules: lengths('prompt_length', vllm.prompt_length) + lengths('output_length', vllm.output_length),
      },
    ],
  },
}
