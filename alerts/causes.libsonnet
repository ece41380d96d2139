// What requests wait for inside a server, from the exporter's poll. The KV cache has its own alert in memory.libsonnet.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;

{
  local config = self._config,
  local a = alert.new(config, 'waves'),
  local waits(cause) = '%s{cause="%s"} >= %s' % [recorded.waiting_cause, cause, promql.number(config.limits.waiting_requests)],

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-causes-alerts',
      rules: [
        a.warning(
          'VllmPrefillBudgetBound',
          waits('prefill_budget'),
          alert.backend + ': ' + alert.value('printf "%.1f"') + ' requests on average wait for the token budget of a step.',
          'Slots and KV cache are free, yet requests wait: prompts queue for the tokens that one step may compute, as after a burst of long '
          + 'prompts. More slots or memory change nothing. Look first at burstiness and prompt lengths, then at max_num_batched_tokens.'
        ),
        a.warning(
          'VllmSequenceSlotsBound',
          waits('sequence_slots'),
          alert.backend + ': ' + alert.value('printf "%.1f"') + ' requests on average wait for a free slot.',
          'As many requests run as max_num_seqs lets through, and the KV cache has room. Look first at KV-cache usage: where it is low, a '
          + 'higher max_num_seqs serves more at once; then at the time per output token, which rises with the batch.'
        ),
      ],
    }],
  },
}
