#!/usr/bin/env bash
# venv.sh PYTHON VENV REQUIREMENTS: make the virtual environment if it is missing and install the pinned packages.
set -euo pipefail
python=$1 venv=$2 requirements=$3

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "tidegauge needs Python 3.11 or newer; $python is missing or older. Set PYTHON=/path/to/python3.11." >&2
  exit 1
fi
if [ ! -x "$venv/bin/pip" ]; then
  echo "creating $venv"
  if ! "$python" -m venv "$venv" >/dev/null 2>&1; then
    # Debian splits venv off into its own package.
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
      "$python" -m venv --clear "$venv"
    else
      echo "$python -m venv failed; install the package python3-venv (as root: apt-get install python3-venv)." >&2
      exit 1
    fi
  fi
fi
echo "installing $requirements into $venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements" 2> >(grep -v '^WARNING' >&2)
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --editable . 2> >(grep -v '^WARNING' >&2)
