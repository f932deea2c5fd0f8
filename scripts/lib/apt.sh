# shellcheck shell=bash
# How the scripts install Debian packages: through sudo where they do not run as root. To be sourced by bash.

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# apt_get VERB...: asks nothing, and waits while another one is at work
apt_get() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"
}
