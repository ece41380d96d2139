// Builders of alerts: `new(config)` gives one function per severity, and below are the pieces of text that name a subject or
// fetch a second figure.
{
  new(config):: {
    local a = self,

    // The hold is looked up by name: an alert without one is a build error.
    rule(severity, name, expr, summary, description, labels={}, hold=config.holds[name]):: {
      board:: 'latency',
      alert: name,
      expr: expr,
      'for': hold,
      labels: { severity: severity } + labels,
      annotations: { summary: summary, description: description },
    },
    critical(name, expr, summary, description):: a.rule('critical', name, expr, summary, description),
    warning(name, expr, summary, description):: a.rule('warning', name, expr, summary, description),
    info(name, expr, summary, description):: a.rule('info', name, expr, summary, description),
  },

  backend:: '{{ $labels.backend }}',
  model:: '{{ $labels.model_name }} on {{ $labels.backend }}',
  fleet:: 'fleet {{ $labels.fleet }}',
  value(format):: '{{ $value | %s }}' % format,

  // A figure of *query* between *before* and *after*; nothing where it is absent. `SELECTOR` in the query becomes the
  // alert's own *labels*, after *matchers*.
  figure(query, labels, format, before='', after='', matchers=''):: (
    local own = std.join(',', [label + '=%q' for label in labels]);
    local selector = '{%s}' % (if matchers == '' then own else matchers + ',' + own);
    '{{ with printf "%s" %s | query }}%s{{ . | first | value | %s }}%s{{ end }}' % [
      std.strReplace(std.strReplace(query, 'SELECTOR', selector), '"', '\\"'),
      std.join(' ', ['$labels.' + label for label in labels]),
      before,
      format,
      after,
    ]
  ),
}
