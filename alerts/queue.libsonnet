// Requests that wait. Labels: `where`, and `backend` and `model_name` (server) or `fleet` (caller).
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local recorded = catalogue.recorded;

local subject = '{{ if eq $labels.where "caller" }}fleet {{ $labels.fleet }}{{ else }}{{ $labels.model_name }} on {{ $labels.backend }}{{ end }}';

local caller =
  'The wait is in the caller, for a slot of its own limiter; the servers never see it, their queues look empty and their utilisation low. '
  + "Look first at the limiter's ceiling against the calls launched at once, then at whether that ceiling was ever measured.";
local server =
  "The wait is in vLLM's own queue. "
  + 'Look first at requests running against max_num_seqs, then at KV-cache usage and preemptions, then at the per-step token budget.';
local whereToLook = '{{ if eq $labels.where "caller" }}' + caller + '{{ else }}' + server + '{{ end }}';

{
  local config = self._config,
  local t = config.thresholds,
  local n = promql.number,
  local a = alert.new(config, 'waves'),
  // The figure of another recorded series for the same subject; nothing where it is absent.
  local figure(key, format) =
    a.figure(recorded[key] + 'SELECTOR', ['where', 'backend', 'model_name', 'fleet'], format),

  local bimodal = '%s >= %s <= %s and %s >= %s' % [
    recorded.late_ratio,
    n(t.bimodal_late_low),
    n(t.bimodal_late_high),
    recorded.split,
    n(t.bimodal_split),
  ],
  local costs = '%s >= %s' % [recorded.impact, n(t.page_impact)],

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-queue-alerts',
      rules: [
        a.critical(
          'VllmQueueTimeBimodal',
          '%s and %s' % [bimodal, costs],
          subject + ': {{ $value | humanizePercentage }} of requests wait ' + figure('late_seconds', 'humanizeDuration')
          + ', the rest do not wait.',
          'Load arrives in bursts that are served in ' + figure('waves', 'printf "%.1f"')
          + ' waves; waiting is ' + figure('impact', 'humanizePercentage') + ' of the time of a request. ' + whereToLook
        ),
        a.warning(
          'VllmQueueTimeBimodal',
          '%s unless %s' % [bimodal, costs],
          subject + ': {{ $value | humanizePercentage }} of requests wait ' + figure('late_seconds', 'humanizeDuration')
          + ', the rest do not wait; the wait costs little yet.',
          'Load arrives in bursts that are served in ' + figure('waves', 'printf "%.1f"')
          + ' waves. Waiting is less than ' + '%g' % (100 * t.page_impact)
          + '% of the time of a request, or that share is not known. ' + whereToLook
        ),
        a.warning(
          'VllmQueueSaturated',
          '%s > %s and %s' % [recorded.late_ratio, n(t.bimodal_late_high), costs],
          subject + ': {{ $value | humanizePercentage }} of requests wait, ' + figure('late_seconds', 'humanizeDuration') + ' on average.',
          'Practically nobody is served at once: load exceeds what is let through, in bursts or not. Waiting is '
          + figure('impact', 'humanizePercentage') + ' of the time of a request. ' + whereToLook
        ),
      ],
    }],
  },
}
