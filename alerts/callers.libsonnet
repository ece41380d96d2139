// How callers load a fleet: their ceilings, what they believe, and whether they come in bursts. All of it from the exporter.
local alert = import '../mixin/lib/alert.libsonnet';
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;

{
  local config = self._config,
  local a = alert.new(config, 'waves'),
  local p = promql.new(config),
  local n = promql.number,
  local window = config.stageWindow,
  local about(query, format, before='', after='', matchers='') =
    a.figure(query + 'SELECTOR', ['fleet'], format, before, after, matchers),
  local ceiling = about(recorded.ceiling, 'printf "%.0f"', ' of ', '', 'ceiling="client"'),

  prometheusAlerts+:: {
    groups+: [{
      name: 'tidegauge-callers-alerts',
      rules: [
        a.warning(
          'VllmCallerCeilingClips',
          // A ceiling that protects full servers does its work.
          '%s{ceiling="client"} > 0 unless %s (max_over_time(%s[%s]) >= %s) unless %s (max_over_time(%s[%s]) > 0)' % [
            recorded.clipped,
            p.on(['fleet']),
            recorded.fleet_kv_max,
            window,
            n(config.thresholds.kv_full),
            p.on(['fleet']),
            recorded.fleet_preemption_rate,
            window,
          ],
          alert.fleet + ": the caller's ceiling" + ceiling + ' cuts ' + alert.value('humanizePercentage') + ' of the barriers into waves.',
          'Calls launched together are held back by the caller while no server is full and none preempts, so every step takes one more '
          + 'wave than it needs. Look first at the ceiling against the largest fan-out'
          + about(recorded.natural_bound, 'printf "%.0f"', ' (', ')') + ", then at the fleet's request capacity, then at how the ceiling was chosen."
        ),
        a.info(
          'VllmCallerCeilingInert',
          '%s{ceiling="client"} and %s (%s{ceiling="client",state="inert"} == 1)' % [
            recorded.ceiling_margin,
            p.on(['fleet', 'ceiling']),
            recorded.ceiling_verdict,
          ],
          alert.fleet + ": the caller's ceiling" + ceiling + ' is ' + alert.value('printf "%.2f"') + ' times the largest fan-out and never binds.',
          'It is a fuse and no control: raising it changes nothing, and whoever tunes it sees no effect. Look first at the natural bound, '
          + 'then at the fleet request capacity, which the fuse should not exceed.'
        ),
        a.warning(
          'VllmHealthyCountMismatch',
          '%s != %s' % [p.by('max', ['fleet'], exported.caller_healthy_backends), recorded.fleet_distinct_up],
          alert.fleet + ': the caller counts ' + alert.value('printf "%.0f"') + ' healthy backends'
          + about(recorded.fleet_distinct_up, 'printf "%.0f"', ', there are ') + '.',
          'A ceiling per backend times a wrong count is a wrong ceiling: too high it overloads the fleet, too low it makes waves. Look first '
          + 'for targets that are the same server, then for a backend that is down or that the caller does not know, then at the health check of the caller.'
        ),
        a.warning(
          'VllmDuplicateBackends',
          '%s == 0' % p.by('min', ['backend'], exported.backend_distinct),
          alert.backend + ' answers from the same server process as another target'
          + '{{ with query "count(%s == 0)" }}, {{ . | first | value }} such in all{{ end }}.' % p.by('min', ['backend'], exported.backend_distinct),
          'One server is configured under several addresses, and whoever counts addresses counts it several times: capacity and ceilings '
          + 'come out too high. The exporter itself counts it once. Look first at the list of backends for a host name and an IP '
          + 'address, or a service address, of the same server.'
        ) { board:: 'skew' },
        a.info(
          'VllmBurstArrivals',
          // The second condition: at a request a minute, any second with one in it is a burst.
          '%s >= %s and %s * %s >= %s' % [
            recorded.burstiness,
            n(config.limits.burst),
            recorded.burstiness,
            recorded.fleet_arrival_rate,
            n(config.limits.burst_arrivals),
          ],
          alert.fleet + ': requests arrive in bursts, ' + alert.value('printf "%.0f"') + ' times the mean rate in the busiest seconds.',
          'A fleet sized for the mean rate serves such bursts in waves, at low mean utilisation. Look first at the barriers and their '
          + 'fan-out, then at the effective waves of the queue, then whether the callers could launch their calls one after another.'
        ) { board:: 'load' },
      ],
    }],
  },
}
