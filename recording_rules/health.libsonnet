// Who is there, and whether anything moves.
local catalogue = import '../mixin/catalogue.json';
local promql = import '../mixin/lib/promql.libsonnet';
local exported = catalogue.exported;
local recorded = catalogue.recorded;
local vllm = catalogue.vllm;

{
  local config = self._config,
  local p = promql.new(config),
  local targets = p.backend(p.targets),
  // A target may stand for several backends, as Ray's node agent does, and then lacks their label: its `up` says nothing of one
  // of them, and each is up whose gauges are there.
  local shown = if config.backendLabel == 'instance' then ''
  else ' or (%s) unless %s %s' % [
    p.by('group', ['backend'], p.backend(p.native(vllm.running))),
    p.on(['backend']),
    targets,
  ],

  prometheusRules+:: {
    groups+: [{
      name: 'tidegauge-health',
      rules: [
        p.record('backend_covered', p.by('max', ['backend'], exported.backend_up)),
        // Down is what nobody reaches: one observer's broken network is not the server's.
        p.record('backend_up', p.by('max', ['backend'], '%s or %s%s' % [targets, exported.backend_up, shown])),
        p.record('running', p.byModel(p.native(vllm.running))),
        p.record('waiting', p.byModel(p.native(vllm.waiting))),
        p.record('in_flight', '%s + %s' % [recorded.running, recorded.waiting]),
        // The token counters move while requests run; finished requests are added for servers whose answers have no
        // tokens (embeddings). The tag keeps the two token counters apart, which have the same labels.
        p.record('progress', p.byModel('%s or %s or %s' % [
          p.ranged('rate', vllm.output_tokens, '2m'),
          p.label(p.ranged('rate', vllm.prompt_tokens, '2m'), 'of', 'prompt'),
          p.ranged('rate', vllm.finished, '2m'),
        ])),
      ],
    }],
  },
}
