#!/usr/bin/env bash
# Lint, format, types, layers, module sizes. Runs all of them, then says which failed.
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh" || exit

set_up_venv .venv "[test]" rapidocr-onnxruntime==1.4.4
cd "$REPO"
export PATH="$VENV/bin:$PATH"

LARGEST_MODULE=500
failed=()

check() {
  local name="$1"
  shift
  say "== $name"
  "$@" || failed+=("$name")
}

module_sizes() {
  local lines file status=0
  while read -r lines file; do
    if [ "$lines" -gt "$LARGEST_MODULE" ]; then
      say "$file: $lines lines; at most $LARGEST_MODULE: two ideas?"
      status=1
    fi
  done < <(find trtplug -name '*.py' -exec wc -l {} \;)
  return "$status"
}

shell_syntax() {
  local file status=0
  for file in "${shell_scripts[@]}"; do bash -n "$file" || status=1; done
  return "$status"
}

# Scripts have no suffix: their first line shows the language.
python_scripts=()
shell_scripts=(scripts/setup.sh)
for file in scripts/* .ci/run; do
  [ -f "$file" ] || continue
  case "$(head -n 1 "$file")" in
    '#!'*python*) python_scripts+=("$file") ;;
    '#!'*sh) shell_scripts+=("$file") ;;
  esac
done
python_files=(. ${python_scripts[@]+"${python_scripts[@]}"})

cuda_files=()
while IFS= read -r file; do cuda_files+=("$file"); done < <(find plugins -name '*.cuh' -o -name '*.cu')

check "ruff check" ruff check "${python_files[@]}"
check "ruff format" ruff format --check "${python_files[@]}"
check "mypy" mypy
check "import-linter" lint-imports
check "module sizes" module_sizes
check "shell syntax" shell_syntax
if [ "${#cuda_files[@]}" -gt 0 ]; then
  check "clang-format" clang-format --dry-run --Werror "${cuda_files[@]}"
fi

if [ "${#failed[@]}" -gt 0 ]; then
  say ""
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
say "all checks passed"
