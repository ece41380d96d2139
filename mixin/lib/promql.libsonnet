// Small builders of PromQL over catalogue names; `new` binds them to the configuration.
//
// vLLM's families are given by their bare names (`catalogue.vllm`). Every reading of one is spelt out here, once, for each
// configured prefix and for the names that older releases use: `a or b`, where today's name wins and no label set is
// counted twice.
local catalogue = import '../catalogue.json';

{
  new(config):: {
    local p = self,
    local cluster = if config.clusterLabel == '' then [] else [config.clusterLabel],

    // Label lists, as `by`, `on` and `group_left` want them.
    model:: ['backend', 'model_name'],
    keys(labels):: std.join(', ', cluster + labels),
    by(op, labels, vector):: '%s by (%s) (%s)' % [op, p.keys(labels), vector],
    on(labels):: 'on (%s)' % p.keys(labels),

    // A series without the label that names backends is none of a backend. Every target has an instance.
    local named = if config.backendLabel == 'instance' then '' else config.backendLabel + '!=""',
    matchers(more=''):: std.join(',', std.filter(function(m) m != '', [config.vllmSelector, named, more])),

    // The configured native label copied into `backend`.
    backend(vector):: (
      if config.backendLabel == 'backend' then vector
      else 'label_replace(%s, "backend", "$1", "%s", "(.*)")' % [vector, config.backendLabel]
    ),

    local spelt(family, suffix, matchers, build) = (
      local aliases = if std.objectHas(catalogue.aliases, family) then catalogue.aliases[family] else [];
      local names = [prefix + name + suffix for name in [family] + aliases for prefix in config.metricPrefixes];
      std.join(' or ', [build('%s{%s}' % [name, p.matchers(matchers)]) for name in names])
    ),
    native(family, suffix='', matchers=''):: spelt(family, suffix, matchers, function(one) one),
    ranged(func, family, window, suffix='', matchers='')::
      spelt(family, suffix, matchers, function(one) '%s(%s[%s])' % [func, one, window]),
    targets:: 'up{%s}' % p.matchers(),

    // Engines, and whatever labels a scrape adds, summed into the backend.
    byModel(vector, op='sum', labels=[]):: p.by(op, p.model + labels, p.backend(vector)),

    // *vector*, less the backends whose sum went back while the count did not: vLLM can observe negative times, and rate()
    // takes that for a restart.
    trusted(vector, family, window):: '(%s unless (%s > %s))' % [
      vector,
      p.byModel(p.ranged('resets', family, window, '_sum')),
      p.byModel(p.ranged('resets', family, window, '_count')),
    ],

    // Mean of a native histogram over *window*; absent when nothing was observed, never 0/0.
    mean(family, window):: '%s / (%s > 0)' % [
      p.trusted(p.byModel(p.ranged('rate', family, window, '_sum')), family, window),
      p.byModel(p.ranged('rate', family, window, '_count')),
    ],

    increase(family, window):: p.byModel(p.ranged('increase', family, window, '_count')),
    buckets(family, window):: p.byModel(p.ranged('increase', family, window, '_bucket'), labels=['le']),

    // A histogram whose buckets all hold 1 has everything in its lowest bucket: its quantile 1 is that bucket's edge.
    edge(family):: 'histogram_quantile(1, %s) > 0' % p.byModel(p.native(family, '_bucket'), 'group', ['le']),

    // Quantile *q* of *buckets* where *requests* are enough; one that falls into the lowest bucket is *edge*, an upper
    // bound, rather than a digit invented inside it.
    clamped(q, buckets, edge, requests):: '((histogram_quantile(%s, %s) > %s) or %s) and %s' % [
      q,
      buckets,
      edge,
      edge,
      p.enough(requests),
    ],
    enough(requests):: '(%s >= %s)' % [requests, $.number(config.thresholds.min_requests)],

    // *native* where no exporter covers the backend. The exporter's silence on a backend that it covers is an answer (too few
    // requests, say) and must not be filled in from another window.
    uncovered(native):: '(%s) unless %s (%s == 1)' % [native, p.on(['backend']), catalogue.recorded.backend_covered],

    // The exporter's figure, else the native one, by model and *labels*. Aggregation takes away the exporter's own job and instance, and makes one
    // of two exporters that cover the same backend.
    prefer(exported, native, labels=[]):: '%s or (%s)' % [p.by('avg', p.model + labels, exported), p.uncovered(native)],

    // *vector* of backends and models with their fleet.
    inFleet(vector):: '(%s) * %s group_left (fleet) %s' % [vector, p.on(p.model), catalogue.recorded.fleet_member],
    byFleet(op, vector, labels=[]):: p.by(op, ['fleet'] + labels, p.inFleet(vector)),

    label(vector, name, value):: 'label_replace(%s, "%s", "%s", "", "")' % [vector, name, value],

    record(key, expr, labels={}):: {
      record: catalogue.recorded[key],
      expr: expr,
      [if labels != {} then 'labels']: labels,
    },
  },

  number(value):: '%g' % value,
}
