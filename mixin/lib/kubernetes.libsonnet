// Rule groups as an object that the Prometheus operator reads.
function(config, groups) {
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PrometheusRule',
  metadata: {
    name: config.kubernetes.name,
    [if config.kubernetes.namespace != '' then 'namespace']: config.kubernetes.namespace,
    labels: config.kubernetes.labels,
  },
  spec: { groups: groups },
}
