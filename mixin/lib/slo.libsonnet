// Service levels: which bucket edge a target is judged at, for each model.
//
// A share of requests can be read at a bucket edge only. A target between two edges is judged at the lower one: stricter
// than asked for, never kinder. The edges are vLLM's defaults unless `_config.slo.*.edges` says what the servers were
// started with.
local catalogue = import '../catalogue.json';
local promql = import 'promql.libsonnet';
local families = { ttft: catalogue.vllm.ttft, tpot: catalogue.vllm.tpot, e2e: catalogue.vllm.e2e };

local lower(edges, seconds) = (
  local below = std.filter(function(edge) edge <= seconds, edges);
  if below == [] then null else below[std.length(below) - 1]
);

local edgeOf(config, sli, seconds) = (
  local found = lower(std.sort(config.slo[sli].edges), seconds);
  assert found != null :
         '_config.slo.%s: no bucket edge at or below %g s; the lowest is %g s' % [sli, seconds, std.sort(config.slo[sli].edges)[0]];
  found
);

// A model name inside a regular expression inside PromQL.
local escape(name) = std.escapeStringJson(std.join('', [
  if std.member('\\.+*?()|[]{}^$', c) then '\\' + c else c
  for c in std.stringChars(name)
]));
local unquoted(text) = std.substr(text, 1, std.length(text) - 2);

// `1` is written `1.0` by the Python client and `1` by others.
local le(edge) = (
  local text = std.strReplace('%g' % edge, '.', '\\\\.');
  if std.member(text, '.') then 'le="%g"' % edge else 'le=~"%s|%s\\\\.0"' % [text, text]
);

{
  slis: ['ttft', 'tpot', 'e2e'],
  family(sli):: families[sli],
  edge(config, sli):: edgeOf(config, sli, config.slo[sli].seconds),

  // Matchers and edges: one for each model with a target of its own, one for all the others.
  targets(config, sli):: (
    local own = [
      model
      for model in std.objectFields(config.sloByModel)
      if std.objectHas(config.sloByModel[model], sli) && std.objectHas(config.sloByModel[model][sli], 'seconds')
    ];
    local names = std.join('|', [unquoted(escape(model)) for model in own]);
    local rest = if own == [] then '' else 'model_name!~"%s"' % names;
    [{ matcher: rest, le: le(edgeOf(config, sli, config.slo[sli].seconds)) }] + [
      {
        matcher: 'model_name=%s' % std.escapeStringJson(model),
        le: le(edgeOf(config, sli, config.sloByModel[model][sli].seconds)),
      }
      for model in own
    ]
  ),

  // What each model is held to: the default, and each model that has something of its own. `edge` is where it is judged.
  objectives(config, sli):: (
    local own = [model for model in std.objectFields(config.sloByModel) if std.objectHas(config.sloByModel[model], sli)];
    local names = std.join('|', [unquoted(escape(model)) for model in own]);
    local judged(target) = target { edge: edgeOf(config, sli, target.seconds) };
    [judged(config.slo[sli]) { matcher: if own == [] then '' else 'model_name!~"%s"' % names, labels: {} }] + [
      judged(config.slo[sli] + config.sloByModel[model][sli]) {
        matcher: 'model_name=%s' % std.escapeStringJson(model),
        // The series have it as well; said once more, no two alerts are duplicates to promtool.
        labels: { model_name: model },
      }
      for model in own
    ]
  ),
}
