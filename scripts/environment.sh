# Sourced by the scripts in this folder: finds Python 3.11 or newer and creates a virtual environment with ggshell.
# shellcheck shell=bash

# Prints the first Python on the PATH that is 3.11 or newer; GGSHELL_PYTHON takes precedence.
find_python() {
    local name
    for name in "${GGSHELL_PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
        if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$name"
            return 0
        fi
    done
    echo "Python 3.11 or newer (with venv) is required, and the PATH does not contain one. Set GGSHELL_PYTHON=/path/to/python." >&2
    return 1
}

# prepare_environment FOLDER EXTRAS: creates an environment with this checkout and these extras. It records a hash of
# pyproject.toml, so that a second run does not install anything. Sets BIN.
prepare_environment() {
    local folder=$1 extras=$2 python wanted extra missing=""
    if [ ! -x "$folder/bin/python" ]; then
        python=$(find_python) || exit 1
        echo "creating the environment $folder with $("$python" --version)"
        "$python" -m venv "$folder"
    fi
    BIN=$(cd "$folder/bin" && pwd)
    wanted=$("$BIN/python" -c 'import hashlib, sys; print(hashlib.sha256(open("pyproject.toml", "rb").read()).hexdigest())')
    for extra in ${extras//,/ }; do
        [ "$(cat "$folder/.installed-$extra" 2>/dev/null)" = "$wanted" ] || missing=1
    done
    if [ -n "$missing" ]; then
        echo "installing ggshell[$extras] (once)"
        # Most modules of the libraries are never imported: Python compiles the others when they are.
        "$BIN/python" -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[$extras]"
        for extra in ${extras//,/ }; do
            echo "$wanted" >"$folder/.installed-$extra"
        done
    fi
}
