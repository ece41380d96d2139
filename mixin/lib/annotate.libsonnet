// Adds to every alert of *groups* the links that all alerts have: its runbook page, and its board opened on the alert's own
// subject. An alert names its board in a hidden field `board`.
local alert = import 'alert.libsonnet';

// The boards call a backend an instance, as vLLM's own do.
local variables = { fleet: 'fleet', backend: 'instance', model_name: 'model_name' };
local parameter(label) = '{{ with $labels.%s }}&var-%s={{ . | urlquery }}{{ end }}' % [label, variables[label]];

local link(config, board) =
  alert.literal(config.dashboardBaseUrl + '/d/' + config.dashboards[board]) + '?from=now-1h&to=now'
  + std.join('', [parameter(label) for label in ['fleet', 'backend', 'model_name']]);

local annotated(config, rule) = rule {
  annotations+: {
    runbook_url: alert.literal(config.runbookBaseUrl) + '/' + rule.alert + '.md',
    dashboard_url: link(config, rule.board),
  },
};

function(config, groups) [
  group { rules: [annotated(config, rule) for rule in group.rules] }
  for group in groups
]
