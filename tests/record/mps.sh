#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mps.sh RECORDER PATHS FILE - records a short CUDA program as a client of an MPS server.
#
# The server is one of our own, in a scratch folder, started for this and always stopped again. It is not recorded.
set -u
recorder=$1 paths=$2 file=$3
scratch=$(mktemp -d)
export CUDA_MPS_PIPE_DIRECTORY=$scratch/pipe CUDA_MPS_LOG_DIRECTORY=$scratch/log
mkdir "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"

stop() {
    echo quit | timeout 20 nvidia-cuda-mps-control >/dev/null 2>&1
    rm -rf "$scratch"
}
trap stop EXIT
trap 'exit 1' HUP INT TERM

if ! timeout 20 nvidia-cuda-mps-control -d; then
    echo "mps.sh: the MPS control daemon does not start" >&2
    exit 1
fi
# The first client has the daemon start the server; the one that is recorded finds it there.
timeout 40 "$paths" mps-client || echo "mps.sh: the first client failed" >&2
"$recorder" run -o "$file" --what "a client of an MPS server: start, 2 MiB, launches" -- timeout 40 "$paths" mps-client
status=$?
tail -n 20 "$CUDA_MPS_LOG_DIRECTORY"/*.log
exit $status
