// Whether the figures can be trusted at all: pages without vLLM's series, coarse buckets, unknown or contested facts.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local a = alert.new(config, 'exporter'),
  local p = promql.new(config),
  local n = promql.number,

  local byBackend(op, vector) = p.by(op, ['backend'], vector),
  local read = '%s %s' % [p.on(['backend']), byBackend('group', recorded.running)],
  local spellings = [prefix for prefix in catalogue.prefixes if !std.member(config.metricPrefixes, prefix)],
  local foreign = byBackend('group', p.backend(std.join(' or ', [
    '%s%s{%s}' % [prefix, catalogue.vllm.running, p.matchers()]
    for prefix in spellings
  ]))),
  local escaped = if spellings == [] then '' else ' unless %s %s' % [p.on(['backend']), foreign],

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-evidence-alerts',
      rules: [
        a.warning(
          'TidegaugeNativeMetricsMissing',
          '(%s == 1) unless %s%s' % [byBackend('max', p.backend(p.targets)), read, escaped],
          alert.backend + ' is scraped and has no series of vLLM.',
          'Prometheus gets a page from this target without num_requests_running, so no rule and no other alert sees the server. Look first whether '
          + 'the target is a vLLM server (a router or a sidecar may match the job), then at its version and its --disable-log-stats, then at '
          + 'metric_relabel_configs that drop series.'
        ),
      ] + (
        if spellings == [] then [] else [
          a.warning(
            'TidegaugeNativeMetricsEscaped',
            '%s unless %s' % [foreign, read],
            alert.backend + " is scraped under another spelling of vLLM's names than the rules read.",
            'The series begin with ' + std.join(', ', spellings) + ' here, and the rules read ' + std.join(', ', config.metricPrefixes)
            + ', so no other alert sees this server. Look first at the metric_relabel_configs of the job, which should bring all spellings to '
            + "one, then at the mixin's metricPrefixes."
          ),
        ]
      ) + [
        a.info(
          'TidegaugePhaseEdgesCoarse',
          '%s / %s >= %s and %s' % [recorded.queue_edge_native, recorded.e2e_mean, n(config.limits.edge_share), p.enough(recorded.window_requests)],
          alert.model + ': the lowest bucket of the queue time is ' + alert.value('humanizePercentage') + ' of a whole request.',
          'A wait below that edge counts as none, so queue split and waves say nothing about requests this short. Means and shares still hold. '
          + 'Look first at the share of the queue; buckets of their own at the server, or the wait as its callers measure it, tell more.'
        ) { board:: 'waves' },
        a.info(
          'TidegaugeCapacityUnknown',
          '(%s == 1) unless %s %s' % [recorded.backend_covered, p.on(['backend']), recorded.kv_capacity],
          alert.backend + ': the exporter polls it and does not know how many tokens its KV cache holds.',
          'Request capacity and the narrowest backend leave this server out. Look first whether its startup log is configured and readable '
          + '(lines parsed), then at its version: from 0.24 on the metrics page says it; else set kv_cache_capacity_tokens for the backend.'
        ) { board:: 'capacity' },
        a.warning(
          'TidegaugeKVSourcesDisagree',
          '%s == 1' % byBackend('max', exported.kv_cache_sources_disagree),
          alert.backend + ': two sources of the KV capacity differ'
          + a.figure(recorded.kv_capacity + 'SELECTOR', ['backend'], 'printf "%.0f"', '; ', ' tokens are used') + '.',
          'They are more than ' + '%g' % (100 * config.thresholds.sources_disagree) + '% apart, and ceilings are judged by the more trusted one. '
          + 'Look first whether a configured value is older than the last restart with other settings, then whether the log is that of '
          + 'another server.'
        ) { board:: 'capacity' },
        a.warning(
          'TidegaugeBackendFailing',
          // What nobody reaches is down, and has its own page.
          '1 - avg_over_time(%s[5m]) > %s unless %s (max_over_time(%s[5m]) == 0)' % [
            exported.backend_up,
            n(config.limits.failed_polls),
            p.on(['backend']),
            recorded.backend_up,
          ],
          'The exporter {{ $labels.instance }} fails to poll ' + alert.backend + ', lately ' + alert.value('humanizePercentage') + ' of the time.',
          "The server is reached otherwise, so it is the exporter's way there, its credentials or its timeout. Barriers, causes and capacity of "
          + 'this backend are missing or doubtful. Look first at tidegauge_scrape_failures_total by reason, then at '
          + 'tidegauge_scrape_duration_seconds against the timeout.'
        ),
      ],
    }],
  },
}
