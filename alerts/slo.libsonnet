// Service levels: how fast the error budget burns, each rate over a long window and, so that the alert ends soon, a short one.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local slo = import '../mixin/lib/slo.libsonnet';
local recorded = catalogue.recorded;

local names = { ttft: 'VllmTTFTBudgetBurn', tpot: 'VllmTPOTBudgetBurn', e2e: 'VllmE2EBudgetBurn' };
local figures = {
  ttft: {
    what: 'got their first token later than',
    look: 'Look first at the share of the queue, then at prefill: prompt lengths and the prefix hit.',
  },
  tpot: {
    what: 'took longer per token than',
    look: 'Look first at requests running (the batch), then at preemptions, then at long prompts that share the steps.',
  },
  e2e: {
    what: 'took longer than',
    look: 'Look first at which stage holds the time, then at output lengths against those of the week before.',
  },
};
local seconds = { '5m': 300, '30m': 1800, '1h': 3600, '2h': 7200, '6h': 21600, '1d': 86400, '3d': 259200 };

{
  local config = self._config,
  local a = alert.new(config, 'slo'),
  local n = promql.number,

  // An objective of 90 % cannot burn faster than 10 times: what can never fire is brought to within a tenth of all being late.
  local reachable(factor, objective) = std.min(factor, (1 - objective / 10) / (1 - objective)),

  // Only what is late by the edge that is judged is known to be late.
  local asked(target) = 'within %g s' % target.seconds + (
    if target.edge == target.seconds then '' else ', judged at %g s, the highest bucket edge below it' % target.edge
  ),

  local burn(sli, target, rate) = (
    local selector = '{%s}' % std.join(',', std.filter(function(m) m != '', ['sli="%s"' % sli, target.matcher]));
    local rateOf(window) = '(1 - %s%s) / %s' % [recorded['slo_' + window], selector, n(1 - target.objective)];
    local least = n(reachable(rate.factor, target.objective));
    a.rule(
      rate.severity,
      names[sli],
      '%s > %s and %s > %s and avg_over_time(%s%s[%s]) * %d >= %s' % [
        rateOf(rate.long),
        least,
        rateOf(rate.short),
        least,
        recorded.slo_total,
        selector,
        rate.long,
        seconds[rate.long],
        n(config.thresholds.min_requests),
      ],
      '{{ $labels.model_name }}: ' + a.figure(
        '1 - %sSELECTOR' % recorded['slo_' + rate.long], ['model_name'], 'humanizePercentage', '', ' ', 'sli="%s"' % sli
      ) + 'of the requests ' + figures[sli].what + ' %g s within %s; the error budget burns ' % [target.edge, rate.long]
      + alert.value('printf "%.1f"') + ' times too fast.',
      'The objective is %g%% %s, and the last %s miss it as well. ' % [100 * target.objective, asked(target), rate.short]
      + figures[sli].look,
      labels={ window: rate.long } + std.mapWithKey(function(_, value) alert.literal(value), target.labels),
      hold=rate.hold
    )
  ),

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-slo-alerts',
      rules: [
        burn(sli, target, rate)
        for sli in slo.slis
        for target in slo.objectives(config, sli)
        for rate in config.burnRates
      ],
    }],
  },
}
