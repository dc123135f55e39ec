# shellcheck shell=bash
# Sourced by scripts/quickstart and scripts/test: finds what is missing, installs it by apt, configures
# and builds.

# need | Debian package | kind of probe | what to look for. "required" stops the set-up where it is
# missing and may not be installed; "optional" turns a feature off.
readonly REQUIREMENTS='
required|build-essential|command|c++
required|cmake|command|cmake
optional|ninja-build|command|ninja
required|python3|command|python3
required|xz-utils|command|xz
required|libcli11-dev|header|CLI/CLI.hpp
required|libexpected-dev|header|tl/expected.hpp
required|libfmt-dev|header|fmt/format.h
required|libsimdjson-dev|header|simdjson.h
required|libpcre2-dev|header|pcre2posix.h
required|libutf8proc-dev|header|utf8proc.h
optional|libsentencepiece-dev|header|sentencepiece_processor.h
optional|libopenmpi-dev|command|mpicxx
optional|python3-jinja2|module|jinja2
optional|nettle-dev|header|nettle/sha2.h
optional|libyaml-dev|header|yaml.h
required|libgtest-dev|header|gtest/gtest.h
required|libgmock-dev|header|gmock/gmock.h
required|librapidcheck-dev|header|rapidcheck.h
optional|python3-jsonschema|module|jsonschema
'

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

# True where the probe of one requirement finds it, however it was installed.
is_there() {
  local kind=$1 name=$2
  case "$kind" in
    command) command -v "$name" >/dev/null ;;
    header) printf '#include <%s>\n' "$name" | c++ -std=c++20 -M -x c++ - >/dev/null 2>&1 ;;
    module) python3 -c "import $name" >/dev/null 2>&1 ;;
  esac
}

# Prints "need|package" for each requirement that is not there.
missing_requirements() {
  local need package kind name
  while IFS='|' read -r need package kind name; do
    if [ -n "$need" ] && ! is_there "$kind" "$name"; then
      printf '%s|%s\n' "$need" "$package"
    fi
  done <<<"$REQUIREMENTS"
}

apt_install() {
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die 4 "not root and no sudo; ask for: apt-get install $*  (or run with --no-install)"
    root=(sudo)
  fi
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get --quiet)
  # A fresh machine has no package lists, an old one may have stale ones: both need an update first.
  if ! apt-get install --simulate "$@" >/dev/null 2>&1; then
    "${apt[@]}" update </dev/null >&2 || say "apt-get update failed; trying with the lists there are"
  fi
  local command=("${apt[@]}" install --yes --no-install-recommends "$@")
  "${command[@]}" </dev/null >&2 && return
  say "installing failed; once more with fresh package lists"
  "${apt[@]}" update </dev/null >&2
  "${command[@]}" </dev/null >&2 || die 4 "apt-get could not install: $*"
}

# install_requirements yes|no: makes everything in REQUIREMENTS be there, or says what is not.
install_requirements() {
  local allowed=$1 missing packages required
  missing=$(missing_requirements)
  [ -n "$missing" ] || return 0
  packages=$(cut -d'|' -f2 <<<"$missing" | tr '\n' ' ')
  required=$(sed -n 's/^required|//p' <<<"$missing" | tr '\n' ' ')
  say "missing: $packages"
  if [ "$allowed" = no ]; then
    [ -z "$required" ] || die 4 "required and not installed (--no-install): $required"
    say "all of these are optional: going on without them"
    return 0
  fi
  command -v apt-get >/dev/null ||
    die 4 "no apt-get here; install the equivalents of these Debian packages: $packages"
  say "installing by apt: $packages"
  # shellcheck disable=SC2086  # one word a package
  apt_install $packages
  required=$(missing_requirements | sed -n 's/^required|//p' | tr '\n' ' ')
  [ -z "$required" ] || die 4 "installed, but still not usable: $required"
}

# build PRESET [TARGET…]: configures if needed and builds, quietly on success.
build() {
  local preset=$1
  shift
  local generator=()
  # The generator of an existing build folder cannot be changed.
  if [ ! -e "build/$preset/CMakeCache.txt" ] && command -v ninja >/dev/null; then
    generator=(-G Ninja)
  fi
  if command -v ccache >/dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  fi
  say "configuring and building the preset '$preset'"
  cmake --preset "$preset" "${generator[@]}" >&2 || return
  local targets=()
  [ $# -eq 0 ] || targets=(--target "$@")
  cmake --build --preset "$preset" --parallel "$(nproc)" "${targets[@]}" >&2
}
