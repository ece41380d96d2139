// Servers and exporters that are gone or stand still.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;

local either(label, present, missing) = '{{ if $labels.%s }}%s{{ else }}%s{{ end }}' % [label, present, missing];

{
  local config = self._config,
  local a = alert.new(config, 'skew'),
  local p = promql.new(config),

  local still(series) = 'max_over_time(%s[%s]) == 0' % [series, config.stageWindow],
  local asked = p.byFleet('sum', recorded.window_requests),

  local exporterUp = 'up{%s}' % config.tidegaugeSelector,

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-health-alerts',
      rules: [
        {
          board:: 'bottleneck',
          alert: 'VllmAdmissionStalled',
          // Gauges and token counters only: the per-request histograms stand still as well, and would still show the past.
          expr: '%s > 0 and %s == 0' % [recorded.in_flight, recorded.progress],
          'for': config.holds.VllmAdmissionStalled,
          labels: { severity: 'critical' },
          annotations: {
            summary: '{{ $labels.model_name }} on {{ $labels.backend }}: {{ $value }} requests are held and nothing moves.',
            description: 'No token was computed and no request finished for minutes while requests run or wait. Latency figures show the past: '
                         + "they move only when a request finishes. Look first at the server's log for an engine that died or hangs, then at the "
                         + 'GPUs, then at what the requests wait for (remote KV, grammar).',
          },
        },
        {
          board:: 'skew',
          alert: 'VllmBackendDown',
          // The second half speaks when there is nothing left to be 0: no target, no exporter, or no recording rule.
          expr: '%s == 0 or absent(%s)' % [recorded.backend_up, recorded.backend_up],
          'for': config.holds.VllmBackendDown,
          labels: { severity: 'critical' },
          annotations: {
            summary: either('backend', 'vLLM server {{ $labels.backend }} cannot be reached.', 'Prometheus knows no vLLM server.'),
            description: either(
              'backend',
              'Neither Prometheus nor an exporter gets a metrics page from it. Look first whether the process runs and answers on /health, '
              + 'then at its log; the other backends now carry its load.',
              'There is no target of a vLLM job and no backend from an exporter, so every other alert on vLLM is blind. Look first at the '
              + 'service discovery and at the job names, which must match ' + std.strReplace(config.vllmSelector, '"', "'") + '.'
            ),
          },
        },
        a.warning(
          'VllmServesNothing',
          // The value is what the rest of the fleet did meanwhile.
          '%s + %s group_left () (%s >= %s) and %s (%s == 1)' % [
            p.inFleet('%s and %s' % [still(recorded.in_flight), still(recorded.progress)]),
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
        {
          board:: 'exporter',
          alert: 'TidegaugeDown',
          // An exporter that was never there is not missed: the rules work without one.
          expr: '%s == 0 or absent(%s) and on () present_over_time(%s[%s])'
                % [exporterUp, exporterUp, exporterUp, config.exporterMemory],
          'for': config.holds.TidegaugeDown,
          labels: { severity: 'warning' },
          annotations: {
            summary: either(
              'instance',
              'The tidegauge exporter {{ $labels.instance }} cannot be scraped.',
              'The tidegauge exporter is no longer a target of Prometheus.'
            ),
            description: "Barriers, ceilings, callers' waits and capacity are not measured; stages and queue split fall back to vLLM's own "
                         + 'series. Look first '
                         + either('instance', 'whether the process runs, then at its log.', 'at the service discovery.'),
          },
        },
      ],
    }],
  },
}
