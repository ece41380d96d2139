// Rules, alerts and boards of tidegauge as a monitoring mixin: `_config`, `prometheusRules`, `prometheusAlerts`,
// `grafanaDashboards`; and `prometheusRule`, the first two as an object for Kubernetes.
local annotate = import 'lib/annotate.libsonnet';
local boards = import 'lib/boards.libsonnet';
local kubernetes = import 'lib/kubernetes.libsonnet';
local validate = import 'lib/validate.libsonnet';

(import 'config.libsonnet')
+ (import '../recording_rules/health.libsonnet')
+ (import '../recording_rules/queue.libsonnet')
+ (import '../recording_rules/stages.libsonnet')
+ (import '../recording_rules/split.libsonnet')
+ (import '../recording_rules/latency.libsonnet')
+ (import '../recording_rules/memory.libsonnet')
+ (import '../recording_rules/members.libsonnet')
+ (import '../recording_rules/fleet.libsonnet')
+ (import '../recording_rules/load.libsonnet')
+ (import '../recording_rules/capacity.libsonnet')
+ (import '../recording_rules/counts.libsonnet')
+ (import '../recording_rules/bottleneck.libsonnet')
+ (import '../recording_rules/slo.libsonnet')
+ (import '../alerts/queue.libsonnet')
+ (import '../alerts/fleet.libsonnet')
+ (import '../alerts/health.libsonnet')
+ (import '../alerts/memory.libsonnet')
+ (import '../alerts/causes.libsonnet')
+ (import '../alerts/requests.libsonnet')
+ (import '../alerts/callers.libsonnet')
+ (import '../alerts/compute.libsonnet')
+ (import '../alerts/slo.libsonnet')
+ (import '../alerts/evidence.libsonnet')
+ {
  local given = self._config,
  assert validate(given),
  local base(url) = std.rstripChars(url, '/'),
  local config = given { runbookBaseUrl: base(super.runbookBaseUrl), dashboardBaseUrl: base(super.dashboardBaseUrl) },
  prometheusAlerts+:: { groups: annotate(config, super.groups) },
  prometheusRule:: kubernetes(config, self.prometheusRules.groups + self.prometheusAlerts.groups),
  grafanaDashboards+:: boards(config, {
    'latency.json': import '../dashboards/json/latency.json',
    'waves.json': import '../dashboards/json/waves.json',
    'skew.json': import '../dashboards/json/skew.json',
    'capacity.json': import '../dashboards/json/capacity.json',
    'load.json': import '../dashboards/json/load.json',
    'bottleneck.json': import '../dashboards/json/bottleneck.json',
    'slo.json': import '../dashboards/json/slo.json',
    'comparison.json': import '../dashboards/json/comparison.json',
    'exporter.json': import '../dashboards/json/exporter.json',
  }),
}
