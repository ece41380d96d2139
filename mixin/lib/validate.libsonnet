// Holds a `_config` against the defaults: every fault is an error that names the key.
local addresses = (import '../catalogue.json').addresses;
local defaults = (import '../config.libsonnet')._config;

local digits = std.set(std.stringChars('0123456789'));
local letters = std.set(std.stringChars('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_'));
local within(chars, text) = std.all([std.setMember(c, chars) for c in std.stringChars(text)]);

local isLabel(text) = (
  text != '' && std.setMember(text[0], letters) && within(std.setUnion(letters, digits), text)
);
// Not a parser of PromQL: what has no operator is no matcher, but the name of a job.
local isMatchers(text) = text == '' || std.member(text, '=') || std.member(text, '~');
local isAddress(text) = std.any([std.startsWith(text, one) for one in addresses.beginnings]);
// One number and one unit, as the recorded names have them.
local isDuration(text) = (
  local size = std.length(text);
  size >= 2 && std.setMember(text[size - 1], std.set(['s', 'm', 'h', 'd', 'w'])) && text[0] != '0'
  && within(digits, std.substr(text, 0, size - 1))
);
local isNumber(text) = std.length(text) > 0 && within(std.setUnion(digits, ['.']), text) && text != '.';

local windows = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'];
local isBurnRate(one) = (
  std.isObject(one) && std.set(std.objectFields(one)) == ['factor', 'hold', 'long', 'severity', 'short']
  && std.isNumber(one.factor) && one.factor > 0 && isDuration(one.hold)
  && std.member(windows, one.long) && std.member(windows, one.short)
  && std.member(['critical', 'warning', 'info'], one.severity)
);

// What a value of the right type must be besides, by the end of its key. [condition, what is asked for].
local rules = {
  vllmSelector: [isMatchers, 'matchers such as job="vllm"'],
  tidegaugeSelector: [isMatchers, 'matchers such as job="tidegauge"'],
  'gpu.selector': [isMatchers, 'matchers such as job="dcgm"'],
  backendLabel: [isLabel, 'a label name'],
  clusterLabel: [function(v) v == '' || isLabel(v), 'a label name, or empty'],
  stageWindow: [isDuration, 'a duration such as 15m'],
  loadingTime: [isDuration, 'a duration such as 15m'],
  exporterMemory: [isDuration, 'a duration such as 1d'],
  prefixMemory: [isDuration, 'a duration such as 1d'],
  burnRates: [
    function(v) v != [] && std.all([isBurnRate(one) for one in v]),
    'a list of { factor, long, short, severity, hold } whose windows are among ' + std.join(', ', windows),
  ],
  metricPrefixes: [function(v) v != [] && std.all([std.isString(one) for one in v]), "a list of prefixes such as ['vllm:']"],
  cuts: [
    function(v) std.all([std.isString(one) && isNumber(one) && std.parseJson(one) <= 1 for one in v]),
    "a list of fractions in quotes, such as ['0.5']",
  ],
  'gpu.label': [isLabel, 'a label name'],
  runbookBaseUrl: [isAddress, addresses.expected],
  dashboardBaseUrl: [isAddress, addresses.expected],
  seconds: [function(v) v > 0, 'seconds above 0'],
  objective: [function(v) v > 0 && v < 1, 'a share between 0 and 1'],
  edges: [
    function(v) v != [] && std.all([std.isNumber(one) && one > 0 for one in v]),
    'a list of bucket edges in seconds',
  ],
};
local rule(path) = (
  local whole = std.join('.', path);
  if path[0] == 'holds' then rules.stageWindow
  else if std.member(['thresholds', 'limits'], path[0]) then [function(v) v >= 0, 'a number of at least 0']
  else if std.objectHas(rules, whole) then rules[whole]
  else if std.objectHas(rules, path[std.length(path) - 1]) then rules[path[std.length(path) - 1]]
  else [function(v) true, '']
);

local name(path) = '_config.' + std.join('.', path);
local named = { string: 'a text', number: 'a number', boolean: 'true or false', object: 'settings', array: 'a list', 'null': 'nothing', 'function': 'a function' };

// The faults of *value* at *path*, whose default is *default*.
local faults(path, value, default) = (
  local wanted = std.type(default), found = std.type(value);
  if path == ['kubernetes', 'labels'] then (
    if found == 'object' && std.all([std.isString(value[key]) for key in std.objectFields(value)]) then []
    else ['%s: expected labels and their values, found %s' % [name(path), std.manifestJsonMinified(value)]]
  )
  else if found != wanted then ['%s: expected %s, found %s' % [name(path), named[wanted], std.manifestJsonMinified(value)]]
  else if found == 'object' then objectFaults(path, value, default)
  else if !rule(path)[0](value) then ['%s: expected %s, found %s' % [name(path), rule(path)[1], std.manifestJsonMinified(value)]]
  else []
),
      objectFaults(path, value, default) = std.flatMap(
  function(key)
    if std.objectHasAll(default, key) then faults(path + [key], value[key], default[key])
    else ['%s: unknown key; known: %s' % [name(path + [key]), std.join(', ', std.objectFieldsAll(default))]],
  std.objectFieldsAll(value)
);

// A model's own targets look like the defaults, less the edges.
local ofModels(models) = std.flatMap(
  function(model)
    if !std.isObject(models[model]) then faults(['sloByModel', model], models[model], {})
    else std.flatMap(
      function(sli)
        if !std.objectHas(defaults.slo, sli)
        then ['%s: unknown key; known: %s' % [name(['sloByModel', model, sli]), std.join(', ', std.objectFields(defaults.slo))]]
        else faults(['sloByModel', model, sli], models[model][sli], { seconds: 1, objective: 1 }),
      std.objectFields(models[model])
    ),
  std.objectFields(models)
);

local all(config) = (
  objectFaults([], config { sloByModel: {} }, defaults)
  + (if std.isObject(config.sloByModel) then ofModels(config.sloByModel) else faults(['sloByModel'], config.sloByModel, {}))
);

// True, or an error with every fault on a line of its own.
function(config) (
  local found = all(config);
  if found == [] then true else error std.join('\n', found)
)
