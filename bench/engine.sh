#!/usr/bin/env bash
# Training steps against PyTorch: bench/engine.py with Debian's Python, and its options behind the
# program (--rounds, --only, --json, --table). Some twenty minutes for all models.
set -euo pipefail

if ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
    echo "skipped: no PyTorch (tools/deps test installs it)"
    exit 0
fi
exec /usr/bin/python3 "$(dirname "$0")/engine.py" "$@"
