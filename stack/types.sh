#!/usr/bin/env bash
# Install Grafana's own types and the TypeScript compiler into build/types, for the check of the boards' JSON. Where npm or
# node is missing, or nothing can be fetched, the check is left out and says so.
set -euo pipefail

root=build/types
wanted=tests/types/package.json
cmp -s $wanted $root/package.json && [ -x $root/node_modules/.bin/tsc ] && exit 0
command -v npm >/dev/null && command -v node >/dev/null || { echo "no npm: the boards are not checked against Grafana's types" >&2; exit 0; }

rm -rf $root
mkdir -p $root
cp $wanted $root/package.json
echo "installing Grafana's types and TypeScript into $root"
if ! npm install --prefix $root --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error >$root/log 2>&1; then
  tail -2 $root/log >&2
  rm -rf $root/node_modules
  echo "Grafana's types could not be had: the boards are not checked against them" >&2
fi
