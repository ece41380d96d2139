// The KV cache: full, thrashing, or no longer saving prefill.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;
local model = ['backend', 'model_name'];

{
  local config = self._config,
  local a = alert.new(config, 'capacity'),
  local n = promql.number,

  // A probe that asks for a few tokens every now and then has hits or none, and says nothing of the cache.
  local served = '%s * 300 >= %s' % [recorded.request_rate, n(config.thresholds.min_requests)],
  local before(selector) = 'avg_over_time((%s%s and %s)[%s:5m] offset 1h)' % [
    recorded.prefix_hit,
    selector,
    served,
    config.prefixMemory,
  ],

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-memory-alerts',
      rules: [
        a.warning(
          'VllmKVCacheSaturated',
          // A full cache that keeps nobody waiting is a cache well used.
          'avg_over_time(%s[5m]) >= %s and max_over_time(%s[5m]) > 0' % [recorded.kv_usage, n(config.thresholds.kv_full), recorded.waiting],
          alert.model + ': the KV cache is ' + alert.value('humanizePercentage') + ' full and requests wait.',
          'Whoever waits waits for a running request to end and give back its blocks. '
          + 'Look first at preemptions, then at the lengths of prompts and outputs against what the cache holds, then at requests in flight '
          + 'against the request capacity: a lower ceiling keeps the same throughput with less waste.'
        ),
        a.warning(
          'VllmPreempting',
          '%s * 60 >= %s' % [recorded.preemption_rate, n(config.limits.preemptions_per_minute)],
          alert.model + ': ' + alert.value('printf "%.1f"') + ' requests a minute are thrown out of the batch.',
          'The KV cache is too small for what runs: a preempted request is computed again from its first token, and waits a second time. '
          + "vLLM books that wait as decode, so the queue's share understates it. Look first at KV-cache usage and at the lengths of prompts, "
          + 'then at requests running against the request capacity.'
        ),
        a.warning(
          'VllmPrefixHitDropped',
          '%s < %s * (%s >= %s) and %s' % [
            recorded.prefix_hit,
            n(config.limits.prefix_drop),
            before(''),
            n(config.limits.prefix_floor),
            served,
          ],
          alert.model + ': the prefix cache holds ' + alert.value('humanizePercentage') + ' of the prompt tokens'
          + a.figure(before('SELECTOR'), model, 'humanizePercentage', ', ', ' before') + '.',
          'What the cache held is computed again, so prefill takes longer and the token budget is spent on it. Look first for a change of the '
          + 'prompts (a timestamp or an id at their start), then for a router that no longer sends a conversation to the same server, then at '
          + 'KV-cache usage: a full cache evicts prefixes.'
        ) { board:: 'skew' },
      ],
    }],
  },
}
