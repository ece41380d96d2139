// What Prometheus reads of a text: matchers, regular expressions, durations. Each reads a text character by character
// and says what is in it, or null where Prometheus would refuse it; null as well for rarities of its syntax.
local digits = std.set(std.stringChars('0123456789'));
local letters = std.set(std.stringChars('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'));
local word = std.setUnion(std.setUnion(letters, digits), ['_']);
local within(chars, text) = std.all([std.setMember(c, chars) for c in std.stringChars(text)]);
// Of a size that can be a number.
local isDigits(text) = text != '' && std.length(text) <= 15 && within(digits, text);
local isPunctuation(c) = c >= ' ' && c <= '~' && !std.setMember(c, letters) && !std.setMember(c, digits);
// What follows a backslash, in Go and in PromQL alike.
local control = { a: '\u0007', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\u000b' };

local isLabel(text) = text != '' && within(word, text) && !std.setMember(text[0], digits);

// A walk over the characters of *text*: *step* makes the next state of a state and a character; a null is final.
local walked(text, begin, step) =
  std.foldl(function(state, c) if state == null then null else step(state, c), std.stringChars(text), begin);

// --- regular expressions -------------------------------------------------------------------------------------------
// `atom` is 1 after what can be repeated, 2 after a repeat, else 0; `seen` is the text of an unfinished repeat or flag, or
// the beginning of a possible range of a class. Every call is strict: a long text must not pile up unread states.
local regex(mode, atom=0, depth=0, groups=0, size=1, seen='') =
  { mode: mode, atom: atom, depth: depth, groups: groups, size: size, seen: seen };
local to(s, mode, atom=0, seen='') = regex(mode, atom, s.depth, s.groups, s.size, seen) tailstrict;
local close(s, atom) = if s.depth == 0 then null else regex('out', atom, s.depth - 1, s.groups, s.size) tailstrict;
local open(s) = regex('out', 0, s.depth, s.groups + 1, s.size) tailstrict;

// RE2 takes up to 1000 copies, those of repeats within repeats multiplied.
local repeated(s) = (
  local bounds = std.split(s.seen, ','), last = bounds[std.length(bounds) - 1];
  local valid = isDigits(bounds[0]) && (
    std.length(bounds) == 1
    || std.length(bounds) == 2 && (last == '' || isDigits(last) && std.parseInt(last) >= std.parseInt(bounds[0]))
  );
  if !valid then null
  else (
    local size = s.size * std.max(1, std.parseInt(if last == '' then bounds[0] else last));
    if size > 1000 then null else regex('out', 2, s.depth, s.groups, size) tailstrict
  )
);

local isFlags(text) = (
  local parts = std.split(text, '-');
  std.length(parts) <= 2 && std.all([within(['U', 'i', 'm', 's'], one) for one in parts])
  && (std.length(parts) == 1 || parts[1] != '')
);

local regexStep = {
  out(s, c):: (
    if c == '\\' then to(s, 'escape')
    else if c == '[' then to(s, 'class begin')
    else if c == '(' then regex('group', 0, s.depth + 1, s.groups, s.size) tailstrict
    else if c == ')' then close(s, 1)
    else if std.member('|^$', c) then to(s, 'out')
    else if c == '?' && s.atom == 2 then to(s, 'out')
    else if std.member('*+?{', c) && s.atom != 1 then null
    else if c == '{' then to(s, 'repeat')
    else if std.member('*+?', c) then to(s, 'out', 2)
    else to(s, 'out', 1)
  ),
  escape(s, c):: (
    if std.member('bBAz', c) then to(s, 'out')
    else if std.member('dDsSwW', c) || std.objectHas(control, c) || isPunctuation(c) then to(s, 'out', 1)
  ),
  group(s, c):: if c == '?' then to(s, 'flags') else self.out(open(s), c),
  flags(s, c):: (
    if !std.member(':)', c) then to(s, 'flags', 0, s.seen + c)
    else if !isFlags(s.seen) then null
    else if c == ':' then to(s, 'out')
    else if s.seen != '' then close(s, 0)
  ),
  'repeat'(s, c):: if c == '}' then repeated(s) else to(s, 'repeat', 0, s.seen + c),
  'class begin'(s, c):: if c == '^' then to(s, 'class first') else self['class first'](s, c),
  'class first'(s, c):: if c != ']' then self.class(s, c),
  class(s, c):: (
    if c == ']' then to(s, 'out', 1)
    else if c == '\\' then to(s, 'class escape')
    else if c == '-' && s.seen != '' then to(s, 'range', 0, s.seen)
    else if c != '[' then to(s, 'class', 0, c)
  ),
  'class escape'(s, c):: (
    if std.member('dDsSwW', c) then to(s, 'class')
    else if isPunctuation(c) then to(s, 'class', 0, c)
    else if c != 'b' && std.objectHas(control, c) then to(s, 'class', 0, control[c])
  ),
  range(s, c):: (
    if c == ']' then to(s, 'out', 1)
    else if c == '\\' then to(s, 'range escape', 0, s.seen)
    else if c != '[' && c >= s.seen then to(s, 'class')
  ),
  'range escape'(s, c):: if isPunctuation(c) && c >= s.seen then to(s, 'class'),
};

// The number of groups that a regular expression captures.
local captures(text) = (
  local end = walked(text, regex('out'), function(s, c) regexStep[s.mode](s, c));
  if end != null && end.mode == 'out' && end.depth == 0 then end.groups
);

// --- matchers ------------------------------------------------------------------------------------------------------
local operators = ['=', '!=', '=~', '!~'];
local matcher(mode, text='', operator='', quote='', patterns=[]) =
  { mode: mode, text: text, operator: operator, quote: quote, patterns: patterns };
local grown(s, mode, text) = matcher(mode, text, s.operator, s.quote, s.patterns) tailstrict;
local isSpace(c) = std.member(' \t\n\r', c);

local matcherStep = {
  label(s, c):: (
    if std.setMember(c, word) then grown(s, 'label', s.text + c)
    else if isSpace(c) && s.text == '' then s
    else if !isLabel(s.text) || s.text == '__name__' then null
    else matcherStep.operator(matcher('operator', '', '', '', s.patterns), c)
  ),
  operator(s, c):: (
    if std.member('"\'`', c) && std.member(operators, s.operator) then matcher('value', '', s.operator, c, s.patterns)
    else if std.member('=!~', c) && s.text == '' then matcher('operator', '', s.operator + c, '', s.patterns) tailstrict
    else if isSpace(c) then (if s.operator == '' then s else grown(s, 'operator', ' '))
  ),
  value(s, c):: (
    if c == s.quote then
      matcher('end', '', '', '', s.patterns + (if std.member(s.operator, '~') then [s.text] else [])) tailstrict
    else if s.quote == '`' then grown(s, 'value', s.text + c)
    else if c == '\\' then grown(s, 'escape', s.text)
    else if c != '\n' then grown(s, 'value', s.text + c)
  ),
  escape(s, c):: (
    if c == '\\' || c == s.quote then grown(s, 'value', s.text + c)
    else if std.objectHas(control, c) then grown(s, 'value', s.text + control[c])
  ),
  end(s, c):: if isSpace(c) then s else if c == ',' then matcher('label', '', '', '', s.patterns),
};

// The regular expressions among matchers.
local patterns(text) = (
  local end = walked(text, matcher('label'), function(s, c) matcherStep[s.mode](s, c));
  if text == '' then [] else if end != null && end.mode == 'end' then end.patterns
);

// --- durations -----------------------------------------------------------------------------------------------------
// In the order in which Prometheus wants them; `ms` has a letter of its own while it is read.
local units = [['y', 31536000], ['w', 604800], ['d', 86400], ['h', 3600], ['m', 60], ['s', 1], ['#', 0.001]];

local summed(text, at) = (
  if text == '' then 0
  else if at < std.length(units) then (
    local parts = std.splitLimit(text, units[at][0], 1);
    if std.length(parts) == 1 then summed(text, at + 1)
    else if isDigits(parts[0]) then (
      local rest = summed(parts[1], at + 1);
      if rest != null then std.parseInt(parts[0]) * units[at][1] + rest
    )
  )
);

// The seconds of a duration; Prometheus counts in nanoseconds and ends at 292 years.
local seconds(text) = (
  local found = if text == '' || std.member(text, '#') then null else summed(std.strReplace(text, 'ms', '#'), 0);
  if found != null && found < 9.2e9 then found
);

{
  captures:: captures,
  patterns:: patterns,
  seconds:: seconds,

  isLabel:: isLabel,
  // Names that every Prometheus reads without quotes begin so.
  isPrefix(text):: text == '' || within(std.setUnion(word, [':']), text) && !std.setMember(text[0], digits),
  // `0.25`, or `1`: at most 1.
  isFraction(text):: (
    local parts = std.split(text, '.');
    std.length(parts) <= 2 && std.member(['0', '1'], parts[0])
    && (std.length(parts) == 1 || isDigits(parts[1]) && (parts[0] == '0' || within(['0'], parts[1])))
  ),
}
