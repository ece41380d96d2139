// What holds a backend back: one level per backend, and `unknown` where the evidence does not suffice.
//
// GPU figures come from DCGM's exporter and are joined by its `_config.gpu.label`: backends that share a value of it (one
// host, say) share its GPUs' means, and have no spread of their own.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local slo = import '../mixin/lib/slo.libsonnet';
local dcgm = catalogue.dcgm;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local p = promql.new(config),
  local n = promql.number,
  local gpu = config.gpu,

  local dcgmSeries(name) = '%s{%s}' % [name, gpu.selector],
  local averaged(name) = 'avg_over_time(%s[5m])' % dcgmSeries(name),
  local active = averaged(dcgm.sm_active),

  // One figure per backend from the GPUs that its name leads to.
  local key = 'gpu_host',
  local place(vector) = 'label_replace(%s, "%s", "$1", "%s", "(.+)")' % [vector, key, gpu.label],
  local backends = 'label_replace(%s, "%s", "$1", "backend", %s)' % [
    recorded.backend_up,
    key,
    std.escapeStringJson(gpu.backendPattern),
  ],
  local onBackend(vector) = p.by('max', ['backend'], '%s * 0 + %s group_left () %s' % [
    backends,
    p.on([key]),
    vector,
  ]),
  local gpus(op, vector) = p.by(op, [key], place(vector)),
  // Half of a host may be free: a GPU that does nothing is no part of a replica that works.
  local working = '%s > %s' % [active, n(gpu.idle)],
  local alike = p.on([gpu.label, 'gpu']),
  local mean(vector) =
    '(%s or %s)' % [gpus('avg', '%s and %s %s' % [vector, alike, working]), gpus('avg', vector)],
  // Where several backends share a place, nothing tells which GPU is whose, and GPUs of different ones need not be even.
  local alone = '(%s == 1)' % p.by('count', [key], backends),

  local byBackend(op, vector) = p.by(op, ['backend'], vector),
  local full = '(%s or %s)' % [
    byBackend('max', '%s >= %s' % [recorded.kv_usage, n(config.thresholds.kv_full)]),
    byBackend('max', '%s > 0' % recorded.preemption_rate),
  ],
  // A queue that a barrier fills and drains between scrapes is empty in most of them: the exporter's polls see it, and for
  // which cause it is there. A wait for the KV cache is the next level's, one that vLLM deferred nobody's here.
  local waits = '(%s or %s >= %s)' % [
    byBackend('max', 'min_over_time(%s[5m]) > 0' % recorded.waiting),
    byBackend('sum', '%s{cause=~"sequence_slots|prefill_budget|unknown"}' % recorded.waiting_cause),
    n(config.limits.waiting_requests),
  ],
  // Utilisation is near 100 % whenever any kernel runs, and proves nothing then. But no SM is active while none runs: it is
  // an upper bound, and where that of every GPU is below the limit they are not busy.
  local spare = '(%s / 100 < %s)' % [onBackend(gpus('max', averaged(dcgm.gpu_util))), n(gpu.busy)],
  local seen = '(%s or %s)' % [recorded.gpu_busy, spare],
  local saturated = '(%s >= %s)' % [recorded.gpu_busy, n(gpu.busy)],
  // Late by the target of the model that the tokens are of.
  local perToken(matcher) = '(%s or %s)' % [
    byBackend('max', '%s{%s}' % [one, std.join(',', std.filter(function(m) m != '', ['quantile="0.9"', matcher]))])
    for one in [recorded.tpot_5m, recorded.itl_5m]
  ],
  local late = ['(%s > %s)' % [perToken(target.matcher), n(target.seconds)] for target in slo.objectives(config, 'tpot')],
  local slow = if std.length(late) == 1 then late[0] else '(%s)' % std.join(' or ', late),
  local uneven = '(%s > %s)' % [recorded.gpu_spread, n(gpu.spread)],
  local starved = '(%s < %s)' % [recorded.gpu_dram, n(gpu.dramLow)],
  // All of its models: one that serves nothing says nothing of the others.
  local idle = '(%s == 0)' % byBackend('max', 'max_over_time(%s[5m])' % recorded.in_flight),
  // Without both of these not even the first two levels can be told.
  local judged = '(%s and %s)' % [byBackend('group', recorded.kv_usage), byBackend('group', recorded.in_flight)],

  // First match wins.
  local levels = [
    ['none', idle],
    ['memory', full],
    ['communication', uneven],
    ['false_compute', '(%s and %s)' % [saturated, starved]],
    ['compute', '(%s and %s)' % [saturated, slow]],
    ['scheduling', '(%s and %s unless %s)' % [waits, judged, saturated]],
    ['none', '(%s and %s)' % [seen, judged]],
    ['unknown', byBackend('group', recorded.backend_up)],
  ],
  local named(level) = p.label('(%s) ^ 0' % level[1], 'level', level[0]),
  local onlyBackend = p.on(['backend']),
  local first = std.foldl(
    function(done, level) if done == '' then named(level) else '%s or %s %s' % [done, onlyBackend, named(level)],
    levels,
    ''
  ),

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-bottleneck',
      rules: [
        p.record('gpu_busy', onBackend(mean(active))),
        p.record('gpu_spread', onBackend('(%s - %s and %s > 1 and %s)' % [
          gpus('max', active),
          gpus('min', working),
          gpus('count', working),
          alone,
        ])),
        p.record('gpu_dram', onBackend(mean(averaged(dcgm.dram_active)))),
        p.record('bottleneck', '(%s) * %s group_left (gpu) (%s or %s)' % [
          first,
          onlyBackend,
          p.label(seen + ' ^ 0', 'gpu', 'seen'),
          p.label('%s ^ 0 unless %s' % [recorded.backend_up, seen], 'gpu', 'unseen'),
        ]),
      ],
    }],
  },
}
