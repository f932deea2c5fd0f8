# How the scripts speak: what happens goes to stderr, headed by the script's name. To be sourced by bash.
# shellcheck shell=bash

say() { echo "$(basename "$0"): $*" >&2; }

fail() {
	say "$*"
	exit 1
}
