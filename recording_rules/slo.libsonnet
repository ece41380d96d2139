// Service levels per model, over every window that burn-rate alerts need.
//
// Only the 5-minute rates read vLLM's buckets. The longer windows add those up, good and all apart: the requests of three
// days weigh alike, and no rule reads three days of buckets of every server.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local slo = import '../mixin/lib/slo.libsonnet';
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),

  local byModelName(vector) = p.by('sum', ['model_name'], vector),
  local joined(matchers) = std.join(',', std.filter(function(m) m != '', matchers)),
  local good(sli) = byModelName(std.join(' or ', [
    p.ranged('rate', slo.family(sli), '5m', '_bucket', joined([target.le, target.matcher]))
    for target in slo.targets(config, sli)
  ])),
  local total(sli) = byModelName(p.ranged('rate', slo.family(sli), '5m', '_count')),

  // What is asked of each model as long as it has a ratio over any window: idle, or with its servers gone.
  local inForce(value) = std.join(' or ', [
    '(%s%s or %s%s) * 0 + %s' % [recorded.slo_total, selector, recorded.slo_3d, selector, promql.number(value(target))]
    for sli in slo.slis
    for target in slo.objectives(config, sli)
    for selector in ['{%s}' % joined(['sli="%s"' % sli, target.matcher])]
  ]),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-slo',
      rules: [p.record('slo_good', good(sli), { sli: sli }) for sli in slo.slis]
             + [p.record('slo_total', total(sli), { sli: sli }) for sli in slo.slis]
             + [p.record('slo_5m', '%s / (%s > 0)' % [recorded.slo_good, recorded.slo_total])]
             + [
               p.record('slo_' + window, 'sum_over_time(%s[%s]) / (sum_over_time(%s[%s]) > 0)' % [
                 recorded.slo_good,
                 window,
                 recorded.slo_total,
                 window,
               ])
               for window in ['30m', '1h', '2h', '6h', '1d', '3d']
             ]
             + [
               p.record('slo_objective', inForce(function(target) target.objective)),
               p.record('slo_asked', inForce(function(target) target.seconds)),
               p.record('slo_judged', inForce(function(target) target.edge)),
             ],
    }],
  },
}
