#!/bin/sh
# What the image runs: a service, a check of one, or a command of the CLI.
case "$1" in
  ingest | query | gateway | check) exec tapedeck-server "$@" ;;
  tapedeck | tapedeck-server) exec "$@" ;;
  *) exec tapedeck "$@" ;;
esac
