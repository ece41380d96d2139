#!/usr/bin/env bash
# Makes the certificates of the poller and caller tests, valid for a hundred years; the keys guard nothing but these tests.
set -euo pipefail
cd "$(dirname "$0")"
EXTENSIONS=$'basicConstraints=CA:FALSE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid'

key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
authority() {
    key "$1"
    openssl req -x509 -new -key "$1.key" -days 36500 -subj "/CN=tidegauge test $1" -out "$1.pem" \
        -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign"
}
signed() {
    key "$1"
    openssl req -new -key "$1.key" -subj "/CN=$1" | openssl x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial \
        -days 36500 -out "$1.pem" -extfile <(printf 'subjectAltName=%s\n%s\n' "$2" "$EXTENSIONS")
}
authority ca
authority other-ca
signed server "DNS:backend.example,IP:127.0.0.1"
signed elsewhere "DNS:elsewhere.example"
signed client "DNS:client.example"
rm -f ca.key other-ca.key ca.srl
