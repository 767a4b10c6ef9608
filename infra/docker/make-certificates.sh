#!/bin/sh
# Makes what compose.tls.yaml needs, in a folder: an authority, and one certificate for all servers. Needs openssl 3.
#
#   sh infra/docker/make-certificates.sh infra/tls
#
# The authority's key is thrown away, so to renew the certificate make all of it again, and start everything again.
set -e
[ -n "$1" ] || { echo "usage: $0 folder" >&2; exit 1; }
command -v openssl >/dev/null || { echo "$0 needs openssl 3" >&2; exit 1; }
# What openssl says is shown where it fails.
run() { said=$(openssl "$@" 2>&1) || { echo "$said" >&2; echo "$0 needs openssl 3" >&2; exit 1; }; }
umask 022
mkdir -p "$1"
cd "$1"
authority=$(mktemp)
trap 'rm -f "$authority" request.pem' EXIT
key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
run req -x509 $key -keyout "$authority" -out ca.crt -days 3650 -subj "/CN=Tapedeck's containers" \
  -addext "basicConstraints=critical,CA:true" -addext "keyUsage=critical,keyCertSign,cRLSign"
run req $key -keyout tls.key -out request.pem -subj /CN=tapedeck \
  -addext "subjectAltName=DNS:nats,DNS:postgres,DNS:ingest,DNS:query"
run x509 -req -in request.pem -CA ca.crt -CAkey "$authority" -out tls.crt -days 3650 -copy_extensions copy
# The services run as user 10001.
chmod 600 tls.key
chown 10001:10001 tls.key 2>/dev/null || echo "run this as root: chown 10001:10001 $1/tls.key" >&2
