// Servers and exporters that are gone or stand still.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

local either(label, present, missing) = '{{ if $labels.%s }}%s{{ else }}%s{{ end }}' % [label, present, missing];

{
  local config = self._config,
  local a = alert.new(config, 'skew'),
  local p = promql.new(config),

  local still(series) = 'max_over_time(%s[%s]) == 0' % [series, config.stageWindow],
  local asked = p.byFleet('sum', recorded.window_requests),

  local exporterUp = 'up{%s}' % config.tidegaugeSelector,

  // Every target is an instance; another label may be missing for as long as its target cannot be scraped.
  local none = if config.backendLabel == 'instance' then {
    found: 'There is no target of a vLLM job and no backend from an exporter',
    look: 'at',
  } else {
    found: 'No target of a vLLM job has the label %s, no series of one has it, and no exporter knows a backend' % config.backendLabel,
    look: 'whether the targets can be scraped, then at',
  },

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-health-alerts',
      rules: [
        a.critical(
          'VllmAdmissionStalled',
          // Gauges and token counters only: the per-request histograms stand still as well, and would still show the past.
          '%s > 0 and %s == 0' % [recorded.in_flight, recorded.progress],
          alert.model + ': {{ $value }} requests are held and nothing moves.',
          'No token was computed and no request finished for minutes while requests run or wait. Latency figures show the past: '
          + "they move only when a request finishes. Look first at the server's log for an engine that died or hangs, then at the "
          + 'GPUs, then at what the requests wait for (remote KV, grammar).'
        ) { board:: 'load' },
        a.critical(
          'VllmBackendDown',
          // What is new and was never up still loads. The last part speaks when there is nothing left to be 0: no target, no
          // exporter, or no recording rule.
          '%s == 0 and %s (%s offset %s or max_over_time(%s[%s]) == 1) or absent(%s)' % [
            recorded.backend_up,
            p.on(['backend']),
            recorded.backend_up,
            config.loadingTime,
            recorded.backend_up,
            config.loadingTime,
            recorded.backend_up,
          ],
          either('backend', 'vLLM server ' + alert.backend + ' cannot be reached.', 'Prometheus knows no vLLM server.'),
          either(
            'backend',
            'Neither Prometheus nor an exporter gets a metrics page from it. Look first whether the process runs and answers on /health, '
            + 'then at its log; the other backends now carry its load.',
            none.found + ', so every other alert on vLLM is blind. Look first ' + none.look + ' the service discovery '
            + 'and at the job names, which must match ' + alert.literal(std.strReplace(config.vllmSelector, '"', "'")) + '.'
          )
        ),
        a.warning(
          'VllmServesNothing',
          // The value is what the rest of the fleet did meanwhile. A server that is younger than the window has not stood still over it.
          '%s + %s group_left () (%s >= %s) and %s (%s == 1)' % [
            p.inFleet('%s and %s and %s offset %s' % [
              still(recorded.in_flight),
              still(recorded.progress),
              recorded.in_flight,
              config.stageWindow,
            ]),
            p.on(['fleet']),
            asked,
            promql.number(config.thresholds.min_requests),
            p.on(['backend']),
            recorded.backend_up,
          ],
          alert.model + ' is up and serves nothing, while fleet {{ $labels.fleet }} finished '
          + alert.value('printf "%.0f"') + ' requests.',
          'For ' + config.stageWindow + ' it held no request and computed no token; the others carry its share. Look first at the list of '
          + 'backends of the router or caller, then at the health check that decides who gets requests, then whether the server was put to sleep.'
        ),
        a.warning(
          'TidegaugeDown',
          // An exporter that was never there is not missed: the rules work without one.
          '%s == 0 or absent(%s) and on () present_over_time(%s[%s])'
          % [exporterUp, exporterUp, exporterUp, config.exporterMemory],
          either(
            'instance',
            'The tidegauge exporter {{ $labels.instance }} cannot be scraped.',
            'The tidegauge exporter is no longer a target of Prometheus.'
          ),
          "Barriers, ceilings, callers' waits and capacity are not measured; stages and queue split fall back to vLLM's own "
          + 'series. Look first '
          + either('instance', 'whether the process runs, then at its log.', 'at the service discovery.')
        ) { board:: 'exporter' },
        a.warning(
          'TidegaugeConfigReloadFailed',
          // Over five minutes: a scrape that fails must not end it.
          'max_over_time(%s[5m]) == 0' % exported.config_last_reload_successful,
          'The tidegauge exporter {{ $labels.instance }} refused its configuration when it read it again.',
          'It goes on by the one that it read before'
          + a.figure(exported.config_last_reload_success_timestamp_seconds + 'SELECTOR', ['instance'], 'humanizeTimestamp', ', at ')
          + ': a backend that was added is not polled, one that was taken out still is, and a restart would find no configuration to start '
          + 'with. Look first at its log, which names the file, the line and the key.'
        ) { board:: 'exporter' },
      ],
    }],
  },
}
