// Levels of the bottleneck that only GPU figures can tell. Each shows the figure that decides it.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;

{
  local config = self._config,
  local a = alert.new(config, 'bottleneck'),
  local p = promql.new(config),
  local at(level, figure) = '%s and %s (%s{level="%s"} == 1)' % [figure, p.on(['backend']), recorded.bottleneck, level],

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-compute-alerts',
      rules: [
        a.warning(
          'VllmComputeBound',
          at('compute', recorded.gpu_busy),
          alert.backend + ': the GPUs compute ' + alert.value('humanizePercentage') + ' of the time and tokens are late.',
          'The GPUs are the limit: no setting of the scheduler gives more. Look first at prompt lengths and the prefix hit, which decide how much is '
          + 'computed, then at requests running: a lower ceiling gives faster tokens, another server gives more of them.'
        ),
        a.warning(
          'VllmFalseComputeBound',
          at('false_compute', recorded.gpu_dram),
          alert.backend + ': the GPUs look busy, but their memory bandwidth is only ' + alert.value('humanizePercentage') + ' used.',
          'Kernels are resident and wait, for another GPU, for the host or for each other, or they copy. More GPUs of this kind will wait as well. Look first '
          + 'at the CPU of the engine process and whether CUDA graphs are on (enforce_eager), then at the batch size, then at collectives.'
        ),
        a.warning(
          'VllmCommunicationImbalance',
          at('communication', recorded.gpu_spread),
          alert.backend + ': busiest and idlest GPU are ' + alert.value('humanizePercentage') + ' of the time apart.',
          'GPUs of one replica wait for each other: every step takes as long as its slowest rank. Look first for a GPU that is throttled, '
          + 'shared or behind a slower link, then at how the model is split over ranks (pipeline stages, experts), then at NCCL errors in the log.'
        ),
      ],
    }],
  },
}
