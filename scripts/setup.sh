# Shared set-up, to be sourced by the other scripts: `. "$(dirname "$0")/setup.sh"`.
#
# Defines REPO, and `set_up_venv DIR EXTRAS PACKAGE...`: a virtual environment in REPO/DIR that holds
# trtplug from this checkout. Writes nothing outside the checkout, save pip's own cache. Calling it
# again is cheap: DIR/trtplug-stamp holds a digest of all that decided the contents, and pip runs only
# when that digest differs.
#
# PYTHON=python3.12 in the environment names the Python to use.

set -euo pipefail

MACHINE_LACKS=4

# CDPATH would make `cd` print, and could lead it elsewhere.
unset CDPATH
REPO="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"

# User settings that would install packages elsewhere, or add others.
unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX
export PIP_USER=0

say() { printf '%s\n' "$*" >&2; }

lacking() {
  say ""
  say "This machine lacks something:"
  printf '  %s\n' "$@" >&2
  exit "$MACHINE_LACKS"
}

# Whether $1 is a Python that this project supports. A name on PATH proves nothing: the shims of
# pyenv exist for versions that are not active, and then fail.
_is_supported() {
  "$1" -I -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

# Whether $1 can make virtual environments: Debian and Ubuntu ship Python without this part.
_can_make_venv() {
  "$1" -I -c 'import ensurepip, venv' >/dev/null 2>&1
}

# Prints the Python to use, or says what is missing and exits with status 4.
find_python() {
  local candidate without_venv=""
  if [ -n "${PYTHON:-}" ]; then
    _is_supported "$PYTHON" ||
      lacking "PYTHON=$PYTHON is not a Python 3.10 to 3.14; unset it, or name another one."
    _can_make_venv "$PYTHON" || _lacking_venv "$PYTHON"
    echo "$PYTHON"
    return
  fi
  for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
    _is_supported "$candidate" || continue
    if _can_make_venv "$candidate"; then
      echo "$candidate"
      return
    fi
    without_venv="${without_venv:-$candidate}"
  done
  [ -z "$without_venv" ] || _lacking_venv "$without_venv"
  lacking "no Python 3.10 to 3.14 was found (looked for python3 and python3.10 to python3.14)." \
    "Debian or Ubuntu:  sudo apt-get install python3 python3-venv" \
    "Fedora:            sudo dnf install python3" \
    "macOS:             brew install python@3.12" \
    "or any other; then name it:  PYTHON=/path/to/python3.12 $0"
}

_lacking_venv() {
  local version
  version="$("$1" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
  lacking "$1 (Python $version) cannot make virtual environments: its venv or ensurepip module is missing." \
    "Debian or Ubuntu:  sudo apt-get install python$version-venv" \
    "or name another Python:  PYTHON=/path/to/python3.12 $0"
}

# Whether the environment $1 runs, has a pip, and was not left half-made by a set-up that was killed.
_is_whole() {
  [ ! -e "$1/trtplug-unfinished" ] && _is_supported "$1/bin/python" &&
    "$1/bin/python" -I -m pip --version >/dev/null 2>&1
}

# Digest of all that decides what an environment holds. The checkout's path is part of it, since
# scripts in the environment and the link to the checkout name it.
_digest() {
  "$1" -I - "$REPO" "${@:2}" <<'PY'
import hashlib, pathlib, sys
repo, *wanted = sys.argv[1:]
parts = [repo, sys.version, *wanted, pathlib.Path(repo, "pyproject.toml").read_text(encoding="utf-8")]
print(hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest())
PY
}

# The moved checkout: an environment's scripts still name the old place.
_is_where_made() {
  [ ! -e "$1/trtplug-home" ] || [ "$(cat "$1/trtplug-home")" = "$REPO" ]
}

_runs_on_wanted_python() {
  [ -z "${PYTHON:-}" ] ||
    [ "$("$1/bin/python" -c 'import sys; print(sys.version)')" = "$("$PYTHON" -c 'import sys; print(sys.version)')" ]
}

# set_up_venv DIR EXTRAS [PACKAGE...]: REPO/DIR gets trtplug with EXTRAS ("[test]" or ""), and each
# PACKAGE without its dependencies. Sets VENV to the environment's path.
set_up_venv() {
  local extras="$2"
  VENV="$REPO/$1"
  shift 2
  # One set-up at a time; the lock goes with the subshell. Without `flock` there is no lock.
  ( _set_up_locked "$extras" "$@" ) 9<"$REPO/pyproject.toml"
}

_set_up_locked() {
  local extras="$1" python digest
  shift
  if command -v flock >/dev/null 2>&1; then flock 9 || true; fi
  if ! { _is_whole "$VENV" && _is_where_made "$VENV" && _runs_on_wanted_python "$VENV"; }; then
    python="$(find_python)"
    say "making $VENV with $("$python" -V 2>&1)"
    { rm -rf "$VENV" && mkdir -p "$VENV"; } || lacking "the folder $REPO cannot be written to."
    touch "$VENV/trtplug-unfinished"
    "$python" -I -m venv "$VENV" 9<&- ||
      lacking "$python could not make the virtual environment $VENV; its own message is above."
  fi
  digest="$(_digest "$VENV/bin/python" "$extras" "$@")"
  [ ! -e "$VENV/trtplug-unfinished" ] && [ "$(cat "$VENV/trtplug-stamp" 2>/dev/null)" = "$digest" ] && return
  touch "$VENV/trtplug-unfinished"
  say "installing trtplug$extras and what it needs (about 350 MB to download the first time)"
  pip_install -e "$REPO$extras"
  # Taken for the files in them, so the Python version that they ask for says nothing here.
  [ $# -eq 0 ] || pip_install --no-deps --ignore-requires-python "$@"
  printf '%s\n' "$REPO" >"$VENV/trtplug-home"
  printf '%s\n' "$digest" >"$VENV/trtplug-stamp"
  rm "$VENV/trtplug-unfinished"
}

# For root on a read-only file system pip takes its cache for writable, and then stops at it.
_go_without_unusable_cache() {
  local cache
  cache="$("$VENV/bin/python" -I -m pip cache dir 2>/dev/null)" || return 0
  { mkdir -p "$cache" && [ -w "$cache" ]; } 2>/dev/null || export PIP_NO_CACHE_DIR=1
}

pip_install() {
  _go_without_unusable_cache
  "$VENV/bin/python" -I -m pip --disable-pip-version-check install -qq --no-input "$@" 9<&- ||
    lacking "pip could not install: $*" \
      "Its message is above. It needs the Python package index (or a mirror set in pip's configuration)" \
      "and about 2 GB of free disk space. Then run this script again."
}
