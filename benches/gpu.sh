#!/usr/bin/env bash
# What a GPU does with the service: is it right, how fast is it, and what happens at the limits. Takes less than ten minutes.
#
#   benches/gpu.sh build DIR      builds the program, its tests and its benchmark of GPUs for a machine without Rust, and
#                                 copies the goldens beside them. Needs nvcc; CARGO_BUILD_ARGS are added to every build.
#   benches/gpu.sh run DIR OUT    runs them. Needs an NVIDIA driver and the libraries of CUDA (in LD_LIBRARY_PATH, or in
#                                 the Python packages nvidia-*). Writes OUT/gpu.md: every step, its outcome, and what it
#                                 means; what the steps print is beside it.
set -uo pipefail

build() {
  set -e
  root=$(cd "$(dirname "$0")/.." && pwd)
  mkdir -p "$1"
  to=$(cd "$1" && pwd)
  cd "$root"
  # The last line of a build that is an executable has its path.
  executable() {
    # shellcheck disable=SC2086
    cargo build --release --features cuda ${CARGO_BUILD_ARGS:-} --message-format=json "$@" |
      sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
  }
  cp "$(executable --bin pdr-audit)" "$to/pdr-audit"
  cp "$(executable -p pdr-audit-lm --test cuda)" "$to/tests"
  cp "$(executable -p pdr-audit-lm --bench cuda)" "$to/bench"
  strip "$to/pdr-audit" "$to/tests" "$to/bench"
  rm -rf "$to/goldens"
  cp -r tests/fixtures/goldens "$to/goldens"
  cp -r models "$to/models"
  cp benches/gpu.sh benches/gpu_commands.py "$to"
  du -sh "$to"
}

# Where Python packages have the libraries of CUDA.
libraries() {
  python3 - <<'PY' 2>/dev/null
import pathlib, site
roots = [*site.getsitepackages(), site.getusersitepackages()]
print(":".join(str(path) for root in roots for path in pathlib.Path(root).glob("nvidia/*/lib")))
PY
}

# step NAME SECONDS COMMAND: runs a command with a limit; its output goes to OUT/NAME.
step() {
  local name=$1 limit=$2
  shift 2
  local started=$SECONDS
  timeout "$limit" "$@" >"$out/$name" 2>&1
  rc=$?
  printf '\n## %s: %s, %s s\n\n' "$name" "$([ $rc = 0 ] && echo done || echo "exit status $rc")" $((SECONDS - started)) >>"$report"
}

# say MEANING: a line of the report.
say() { printf -- '- %s\n' "$1" >>"$report"; }
# show PATTERN NAME: the lines of a step's output with a pattern.
show() { { grep -E "$1" "$out/$2" | head -n "${3:-40}" | sed 's/^/    /'; echo; } >>"$report"; }

run() {
  here=$(cd "$1" && pwd)
  mkdir -p "$2"
  out=$(cd "$2" && pwd)
  report=$out/gpu.md
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  local found
  found=$(libraries)
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:-}${found:+${LD_LIBRARY_PATH:+:}$found}"
  export CUDA_CACHE_PATH=$work/cache PDR_AUDIT_TEST_GOLDENS=$here/goldens
  {
    echo "# $(date -u +%F), $(nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader | tr '\n' ';')"
    echo
    echo "    benches/gpu.sh run $1 $2"
  } >"$report"

  step kernels 120 "$here/tests" --test-threads=1 --nocapture there_is_a_kernel every_program
  show 'libraries not found|SKIPPED|UNSUPPORTED_PTX|running without|test result' kernels
  if grep -q SKIPPED "$out/kernels"; then
    say "**Skipped: the GPU or a library was not found. Set LD_LIBRARY_PATH; nothing below counts.**"
  fi

  step tests-cold 180 "$here/tests" --test-threads=1 --nocapture
  show 'panicked|^test .* FAILED|test result' tests-cold
  show 'worst error|from candle' tests-cold 200
  say "f32 off by about 1e-3 and halves right: products are rounded, see crates/lm/src/models/cuda/product.rs. A kernel off by less than 1e-4 alone: a tolerance of the test. NaN, or more than 1e-3: a wrong kernel; run compute-sanitizer on that test."
  step tests-warm 180 "$here/tests" --test-threads=1
  show 'FAILED|test result' tests-warm
  say "What the first run took longer is what compiling kernels takes."

  for dtype in f32 f16 bf16; do
    step "score-$dtype" 60 env PDR_AUDIT__ENGINE__DEVICE=cuda PDR_AUDIT__ENGINE__DTYPE=$dtype \
      "$here/pdr-audit" score - --model "$here/models/demo" <<<'{"text": "The brass clock struck nine in Fallowfield."}'
    show '"loss"|error|rror:' "score-$dtype"
  done
  step score-cpu 60 env PDR_AUDIT__ENGINE__DEVICE=cpu "$here/pdr-audit" score - --model "$here/models/demo" \
    <<<'{"text": "The brass clock struck nine in Fallowfield."}'
  show '"loss"|rror' score-cpu
  say "f32 and the CPU agree to 1e-4, f16 to 0.02 and bf16 to 0.05 in the loss; otherwise an operation is wrong: the tests of parity above say in which family."

  step commands 120 "$here/gpu_commands.py" "$here/pdr-audit" "$here/models" "$here/goldens"
  show ':' commands

  step http 90 bash -c "http \"$here/pdr-audit\" \"$here/models/demo\""
  show 'two thousand|batch_tokens|MiB|rror' http
  say "The budget (batch_tokens) is 16,384; less only where that does not fit in the memory of the GPU."

  step bench 240 "$here/bench" --rounds 1
  show '"what":"(copy|product)"' bench
  show '"what":"(step|statistics|head|scan)"' bench 60
  show '"what":"forward"' bench
  say "Products below 650 TFLOP/s in bf16 on an H200: 60 % of the datasheet is out of reach, compare with the products. queued_ms near ms: the host is what bounds the pass."

  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      step "sanitizer-$tool" 120 compute-sanitizer --tool $tool "$here/tests" --test-threads=1 decoder:: row_statistics:: the_scan_equals
      show 'ERROR SUMMARY|RACECHECK SUMMARY|Invalid|hazard' "sanitizer-$tool"
    done
  fi
  echo >>"$report"
  say "$SECONDS s in all"
  cat "$report"
}

# The service on the GPU with an empty cache: loads, answers two thousand texts, and ends.
http() {
  port=18091
  PDR_AUDIT__ENGINE__DEVICE=cuda PDR_AUDIT__SERVER__PORT=$port "$1" serve --model "$2" &
  server=$!
  for _ in $(seq 200); do
    curl -fs "localhost:$port/readyz" >/dev/null && break
    sleep 0.2
  done
  {
    printf '{"inputs":["The brass clock struck nine in Fallowfield."'
    for i in $(seq 2000); do printf ',"The brass clock number %s struck nine in Fallowfield, and again at ten."' "$i"; done
    printf ']}'
  } | curl -s -o /dev/null -w 'two thousand texts: %{http_code} in %{time_total} s\n' "localhost:$port/v1/score" \
    -H 'content-type: application/json' --data-binary @-
  nvidia-smi --query-gpu=memory.used --format=csv,noheader
  kill -TERM "$server"
  wait "$server"
}
export -f http

case "${1:-}" in
  build) build "$2" ;;
  run) run "$2" "$3" ;;
  *)
    sed -n '2,10p' "$0"
    exit 2
    ;;
esac
