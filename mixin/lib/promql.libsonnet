// Small builders of PromQL over catalogue names; `new` binds them to the configured selector and backend label.
local catalogue = import '../catalogue.json';

local onModel = 'on (backend, model_name)';

{
  new(config):: {
    local p = self,

    // The configured native label copied into `backend`.
    backend(vector):: (
      if config.backendLabel == 'backend' then vector
      else 'label_replace(%s, "backend", "$1", "%s", "(.*)")' % [vector, config.backendLabel]
    ),

    native(name):: '%s{%s}' % [name, config.vllmSelector],
    ranged(func, name, window):: '%s(%s[%s])' % [func, p.native(name), window],

    // Engines, and whatever labels a scrape adds, summed into the backend.
    byModel(vector, op='sum', labels=''):: '%s by (backend, model_name%s) (%s)' % [op, labels, p.backend(vector)],

    // *vector*, less the backends whose sum went back while the count did not: vLLM can observe negative times, and rate()
    // takes that for a restart.
    trusted(vector, family, window):: '(%s unless (%s > %s))' % [
      vector,
      p.byModel(p.ranged('resets', family + '_sum', window)),
      p.byModel(p.ranged('resets', family + '_count', window)),
    ],

    // Mean of a native histogram over *window*; absent when nothing was observed, never 0/0.
    mean(family, window):: '%s / (%s > 0)' % [
      p.trusted(p.byModel(p.ranged('rate', family + '_sum', window)), family, window),
      p.byModel(p.ranged('rate', family + '_count', window)),
    ],

    // *native* where no exporter covers the backend. The exporter's silence on a backend that it covers is an answer (too few
    // requests, say) and must not be filled in from another window.
    uncovered(native):: '(%s) unless on (backend) (%s == 1)' % [native, catalogue.recorded.backend_covered],

    // The exporter's figure, else the native one. Aggregation takes away the exporter's own job and instance, and makes one
    // of two exporters that cover the same backend.
    prefer(exported, native):: 'avg by (backend, model_name) (%s) or (%s)' % [exported, p.uncovered(native)],

    record(key, expr, labels={}):: {
      record: catalogue.recorded[key],
      expr: expr,
      [if labels != {} then 'labels']: labels,
    },
  },

  onModel: onModel,
  number(value):: '%g' % value,
}
