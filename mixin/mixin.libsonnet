// Rules and alerts of tidegauge as a monitoring mixin: `_config`, `prometheusRules`, `prometheusAlerts`.
local annotate = import 'lib/annotate.libsonnet';

(import 'config.libsonnet')
+ (import '../recording_rules/health.libsonnet')
+ (import '../recording_rules/queue.libsonnet')
+ (import '../recording_rules/stages.libsonnet')
+ (import '../recording_rules/split.libsonnet')
+ (import '../recording_rules/latency.libsonnet')
+ (import '../recording_rules/memory.libsonnet')
+ (import '../recording_rules/fleet.libsonnet')
+ (import '../recording_rules/load.libsonnet')
+ (import '../recording_rules/capacity.libsonnet')
+ (import '../recording_rules/bottleneck.libsonnet')
+ (import '../recording_rules/slo.libsonnet')
+ (import '../alerts/queue.libsonnet')
+ (import '../alerts/fleet.libsonnet')
+ (import '../alerts/health.libsonnet')
+ {
  local config = self._config,
  prometheusAlerts+:: { groups: annotate(config, super.groups) },
}
