// Builders of alerts: `new(config, board)` gives one function per severity, and one that fetches a second figure for a text;
// below are the pieces of text that name a subject. *board* is the key of the board that the alerts open; a single alert
// changes it with `{ board:: 'key' }`.
{
  new(config, board):: {
    local a = self,

    // The hold is looked up by name: an alert without one is a build error.
    local holdOf(name) =
      if std.objectHas(config.holds, name) then config.holds[name] else error 'holds.%s: not in mixin/config.libsonnet' % name,
    rule(severity, name, expr, summary, description, labels={}, hold=holdOf(name)):: {
      board:: board,
      alert: name,
      expr: expr,
      'for': hold,
      labels: { severity: severity } + labels,
      annotations: { summary: summary, description: description },
    },
    critical(name, expr, summary, description):: a.rule('critical', name, expr, summary, description),
    warning(name, expr, summary, description):: a.rule('warning', name, expr, summary, description),
    info(name, expr, summary, description):: a.rule('info', name, expr, summary, description),

    // What a template looks up: `SELECTOR` in the query becomes the alert's own *labels*, and its cluster, after *matchers*.
    lookup(query, labels, matchers=''):: (
      local all = (if config.clusterLabel == '' then [] else [config.clusterLabel]) + labels;
      local own = std.join(',', [label + '=%q' for label in all]);
      local selector = '{%s}' % (if matchers == '' then own else matchers + ',' + own);
      'printf "%s" %s | query' % [
        std.strReplace(std.strReplace(query, 'SELECTOR', selector), '"', '\\"'),
        std.join(' ', ['$labels.' + label for label in all]),
      ]
    ),
    // A figure between *before* and *after*; nothing where it is absent.
    figure(query, labels, format, before='', after='', matchers='')::
      '{{ with %s }}%s{{ . | first | value | %s }}%s{{ end }}' % [a.lookup(query, labels, matchers), before, format, after],
  },

  // A setting's *text* as it stands, where a template would take its braces for its own.
  literal(text):: std.strReplace(text, '{{', '{{ "{{" }}'),

  backend:: '{{ $labels.backend }}',
  model:: '{{ $labels.model_name }} on {{ $labels.backend }}',
  fleet:: 'fleet {{ $labels.fleet }}',
  value(format):: '{{ $value | %s }}' % format,
}
