#!/bin/sh
# Prints the secrets that compose.yaml needs, new ones each time: sh infra/docker/make-env.sh > infra/.env
# A new password of Postgres does not open a volume that has an old one.
random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
# NATS takes a word that begins with a digit for a number, in some of them: so each begins with a letter.
for name in SERVICES_KEY NATS_INGEST_PASSWORD NATS_QUERY_PASSWORD NATS_GATEWAY_PASSWORD NATS_CLI_PASSWORD \
  POSTGRES_PASSWORD POSTGRES_ANALYST_PASSWORD GRAFANA_PASSWORD; do
  echo "TAPEDECK_$name=t$(random)"
done
