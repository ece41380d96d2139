// The boards as committed, with the one setting that they take from `_config`: where their links to runbooks lead.
local set(variable, value) =
  if variable.name == 'runbooks' then variable { query: value, current+: { text: value, value: value } } else variable;

function(config, boards) {
  [file]: boards[file] {
    templating+: { list: [set(variable, config.runbookBaseUrl) for variable in boards[file].templating.list] },
  }
  for file in std.objectFields(boards)
}
