#!/bin/sh
# Plain curl and jq: what failed last, lists page by page, and what fails next. sh curl.sh
set -eu
tapedeck=${TAPEDECK_URL:-http://127.0.0.1:7052}

echo "== the last failures"
curl -fsS "$tapedeck/api/v1/events?last=5&kind=*.failed" | jq -r '.items[] | "\(.recordedAt) \(.source) \(.summary)"'

echo "== failed builds that took more than a second"
curl -fsS "$tapedeck/api/v1/operations?kind=build&outcome=failed" |
  jq -r '.items[] | select(.durationMs > 1000) | "\(.source) \(.subject) \(.durationMs) ms \(.cause.reason)"'

echo "== all builds on main, page by page"
page=
while :; do
  answer=$(curl -fsS -G "$tapedeck/api/v1/operations" -d kind=build -d label=branch=main -d limit=100 -d "page=$page")
  echo "$answer" | jq -r '.items[] | "\(.source) \(.subject) \(.outcome // "running")"'
  page=$(echo "$answer" | jq -r '.nextPage // empty')
  [ -n "$page" ] || break
done

echo "== what fails in the next minute"
position=$(curl -fsS "$tapedeck/api/v1/status" | jq -r .logPosition)
# Without -S: that the time is over is no error.
curl -fsN --max-time 60 -H 'accept: application/x-ndjson' "$tapedeck/api/v1/stream?kind=*.failed&after=$position" |
  jq -r --unbuffered 'select(.type == "event") | .event.summary'
