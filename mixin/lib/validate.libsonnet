// Holds a `_config` against the defaults: every fault is an error that names the key.
local addresses = (import '../catalogue.json').addresses;
local defaults = (import '../config.libsonnet')._config;
local grammar = import 'grammar.libsonnet';

local isAddress(text) = std.any([std.startsWith(text, one) for one in addresses.beginnings]);
local isHold(text) = grammar.seconds(text) != null;
local isWindow(text) = isHold(text) && grammar.seconds(text) > 0;

local windows = ['5m', '30m', '1h', '2h', '6h', '1d', '3d'];
local isBurnRate(one) = (
  std.isObject(one) && std.set(std.objectFields(one)) == ['factor', 'hold', 'long', 'severity', 'short']
  && std.isNumber(one.factor) && one.factor > 0 && std.isString(one.hold) && isHold(one.hold)
  && std.member(windows, one.long) && std.member(windows, one.short)
  && std.member(['critical', 'warning', 'info'], one.severity)
);

// RE2 knows more; what it knows is not worth a parser here.
local plain = ' of literals, groups, classes and repeats up to 1000';
local matchers(example) = [
  function(v) (
    local found = grammar.patterns(v);
    found != null && std.all([grammar.captures(one) != null for one in found])
  ),
  'matchers such as %s, joined by commas, without braces; regular expressions%s' % [example, plain],
];
local window(example) = [isWindow, 'a duration such as %s' % example];

// What a value of the right type must be besides, by the end of its key. [condition, what is asked for].
local rules = {
  vllmSelector: matchers('job="vllm"'),
  tidegaugeSelector: matchers('job="tidegauge"'),
  'gpu.selector': matchers('job="dcgm"'),
  backendLabel: [grammar.isLabel, 'a label name'],
  clusterLabel: [function(v) v == '' || grammar.isLabel(v), 'a label name, or empty'],
  stageWindow: window('15m'),
  exporterMemory: window('1d'),
  prefixMemory: window('1d'),
  loadingTime: window('15m'),
  burnRates: [
    function(v) v != [] && std.all([isBurnRate(one) for one in v]),
    'a list of { factor, long, short, severity, hold } whose windows are among ' + std.join(', ', windows),
  ],
  metricPrefixes: [
    function(v) v != [] && std.all([std.isString(one) && grammar.isPrefix(one) for one in v]),
    "a list of prefixes such as ['vllm:'], of letters, digits, underscores and colons",
  ],
  cuts: [
    function(v) std.all([std.isString(one) && grammar.isFraction(one) for one in v]),
    "a list of fractions in quotes, such as ['0.5']",
  ],
  'gpu.label': [grammar.isLabel, 'a label name'],
  'gpu.backendPattern': [
    function(v) grammar.captures(v) != null && grammar.captures(v) > 0,
    "a regular expression with a group for the GPU's place, such as '([^:]+).*'," + plain,
  ],
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
  if path[0] == 'holds' then [isHold, 'a duration such as 5m or 0s']
  else if std.member(['thresholds', 'limits'], path[0]) then [function(v) v >= 0, 'a number of at least 0']
  else if std.objectHas(rules, whole) then rules[whole]
  else if std.objectHas(rules, path[std.length(path) - 1]) then rules[path[std.length(path) - 1]]
  else [function(v) true, '']
);

local name(path) = std.join('.', ['_config'] + path);
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

// Settings that lost what they do not name, for want of a `+`. What has no key by default may have any.
local missing(path, value, default) = (
  local known = std.objectFields(default);
  local lost = std.filter(function(key) !std.objectHasAll(value, key), known);
  if path == ['kubernetes', 'labels'] then []
  else if lost != [] then ['%s: expected every key, found none of %s; with `+:` the defaults of the others stay' % [name(path), std.join(', ', lost)]]
  else std.flatMap(
    function(key) if std.isObject(value[key]) && std.isObject(default[key]) then missing(path + [key], value[key], default[key]) else [],
    known
  )
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
  local models = std.get(config, 'sloByModel', {});
  objectFaults([], config { sloByModel: {} }, defaults) + missing([], config, defaults)
  + (if std.isObject(models) then ofModels(models) else faults(['sloByModel'], models, {}))
);

// True, or an error with every fault on a line of its own.
function(config) (
  local found = all(config);
  if found == [] then true else error std.join('\n', found)
)
