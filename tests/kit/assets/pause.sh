#!/bin/sh
# Process of a pod's sandbox: does nothing until SIGTERM or SIGINT.
trap 'exit 0' TERM INT
while :; do
  sleep 3600 &
  wait $!
done
