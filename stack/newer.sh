#!/usr/bin/env bash
# Unpack Prometheus 3 and promtool from Debian's newer suite into build/newer, without touching the system's packages.
# The rule tests run under both generations where this succeeds; where it does not, they say so and use the one there is.
set -euo pipefail

suite=forky
root=build/newer
[ -x $root/usr/bin/promtool ] && exit 0
command -v apt-get >/dev/null && command -v dpkg >/dev/null || { echo "no apt: the rules are tested with the installed Prometheus only" >&2; exit 0; }

work=$PWD/build/apt
mkdir -p "$work"/lists/partial "$work"/cache/archives/partial "$work"/dl "$root"
# The mirror that this machine is configured with; apt checks the signatures.
mirror=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | grep -v '^ *#' |
  grep -oE '(https?|file|mirror\+file):[^ ]+' | head -1 || true)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
if [ -z "$mirror" ] || [ ! -e $keyring ]; then
  echo "no Debian mirror configured: the rules are tested with the installed Prometheus only" >&2
  exit 0
fi
echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/sources.list"
options=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
echo "getting Prometheus 3 from Debian $suite into $root"
if apt-get "${options[@]}" -o APT::Update::Error-Mode=any -qq update >"$work/log" 2>&1 &&
  (cd "$work/dl" && apt-get "${options[@]}" -qq download prometheus promtool prometheus-alertmanager) >>"$work/log" 2>&1; then
  for deb in "$work"/dl/*.deb; do dpkg -x "$deb" "$root"; done
  rm -rf "$work"
else
  tail -2 "$work/log" >&2
  echo "Prometheus 3 could not be had: the rules are tested with the installed Prometheus only" >&2
fi
