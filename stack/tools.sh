#!/usr/bin/env bash
# Make sure Prometheus, promtool, Alertmanager and amtool are there: on PATH, else from Debian's packages.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }
missing=()
have prometheus && have promtool || missing+=(prometheus)
# Debian calls Alertmanager's binary prometheus-alertmanager.
{ have prometheus-alertmanager || have alertmanager; } && have amtool || missing+=(prometheus-alertmanager)
[ ${#missing[@]} = 0 ] && exit 0

hint="Put prometheus, promtool, alertmanager and amtool on PATH, or as root: apt-get install ${missing[*]}"
if ! have apt-get; then
  echo "missing: ${missing[*]}, and this system has no apt-get. $hint" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "missing: ${missing[*]}, and only root can install them. $hint" >&2
  exit 1
fi
echo "installing Debian's ${missing[*]}"
log=$(mktemp)
if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -5 "$log" >&2
  echo "could not install ${missing[*]}. $hint" >&2
  exit 1
fi
rm -f "$log"
