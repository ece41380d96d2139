// Requests that are refused, leave unfinished, or spend their time where vLLM measures nothing.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;
local model = ['backend', 'model_name'];

{
  local config = self._config,
  local a = alert.new(config, 'load'),
  local p = promql.new(config),
  local n = promql.number,
  local limits = config.limits,
  local least = n(config.thresholds.min_requests),

  local refused = p.by('sum', model, recorded.rejection_rate),
  local asked = '(%s + %s)' % [refused, recorded.request_rate],
  local many = '%s / %s >= %s and %s * 300 >= %s' % [refused, asked, n(limits.refused), asked, least],
  local reasons = '{{ range %s | sortByLabel "reason" }} {{ .Labels.reason }}{{ end }}' % a.lookup(recorded.rejection_rate + 'SELECTOR', model),

  local left = '(%s + (%s or %s * 0))' % [
    recorded.aborted,
    p.by('sum', ['backend'], recorded.window_requests),
    recorded.aborted,
  ],

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-requests-alerts',
      rules: [
        a.critical(
          'VllmAdmissionRejections',
          many,
          alert.model + ': ' + alert.value('humanizePercentage') + ' of the requests are refused, by the limit on' + reasons + '.',
          'Callers get status 503 and nothing else. The queue of this server is limited and full. Look first whether the other backends '
          + 'refuse as well: one alone is badly balanced, all of them are too few; then at what requests wait for.'
        ),
        a.warning(
          'VllmAdmissionRejections',
          '%s * 300 >= %s unless (%s)' % [refused, n(limits.refused_requests), many],
          alert.model + ': ' + alert.value('printf "%.0f"') + ' requests were refused within 5 minutes, by the limit on' + reasons + '.',
          'Callers get status 503. The queue of this server is limited and was full for moments. Look first at burstiness and at the fan-out '
          + 'of the callers, then whether they try again after a pause.'
        ),
        a.warning(
          'VllmRequestsAborted',
          '%s / %s >= %s and %s >= %s' % [recorded.aborted, left, n(limits.aborted), left, least],
          alert.backend + ': ' + alert.value('humanizePercentage') + ' of the requests left without an answer'
          + a.figure(recorded.aborted + 'SELECTOR', ['backend'], 'printf "%.0f"', ', ', ' of them') + ' within ' + config.stageWindow + '.',
          'Their callers hung up, mostly because a timeout ran out; the tokens computed for them are lost. They are in no latency figure, so '
          + "these look better than what users feel. Look first at the callers' timeout against the end-to-end p99, then at what requests wait for."
        ),
        a.warning(
          'VllmUnaccountedLatencyHigh',
          '%s{stage="other"} >= %s and %s %s{stage="other"} >= %s and %s %s' % [
            recorded.stage_share,
            n(limits.unaccounted),
            p.on(model),
            recorded.stage_mean,
            n(limits.worth_seconds),
            p.on(model),
            p.enough(recorded.window_requests),
          ],
          alert.model + ': ' + alert.value('humanizePercentage') + ' of the time of a request is in no stage'
          + a.figure(recorded.stage_mean + 'SELECTOR', model, 'humanizeDuration', ', ', ' each', 'stage="other"') + '.',
          'That time passes outside the engine, nearly all of it before the first token: in the API server, the tokeniser, or waiting for a step '
          + 'to end. Queue figures do not contain it. Look first at the CPU of the API server process, then at burstiness, then at long '
          + 'prompts and large images, which are prepared there.'
        ) { board:: 'latency' },
      ],
    }],
  },
}
