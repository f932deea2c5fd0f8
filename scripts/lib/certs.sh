# shellcheck shell=bash disable=SC2154
# Certificates and kubeconfigs of a test cluster. To be sourced by bash.
#
# All files stand in the folder $run, which the sourcing script sets: ca.crt and ca.key, and
# NAME.crt and NAME.key of what the CA has issued. Elliptic curve keys, since they take
# milliseconds to make.

make_ca() {
	openssl_req -out "$run/ca.crt" -keyout "$run/ca.key" -subj "/CN=perilune-test-ca" \
		-addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,digitalSignature
}

# issue_server_cert NAME SUBJECT_ALT_NAMES
issue_server_cert() {
	issue "$1" "/CN=$1" -addext extendedKeyUsage=serverAuth -addext "subjectAltName=$2"
}

# issue_client_cert NAME USER [GROUP...]
issue_client_cert() {
	local name=$1 subject group
	subject=/CN=$(escape "$2")
	shift 2
	for group; do subject+=/O=$(escape "$group"); done
	issue "$name" "$subject" -addext extendedKeyUsage=clientAuth
}

# A key that signs the tokens of service accounts: NAME.key and NAME.pub.
make_token_key() {
	openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out "$run/$1.key"
	openssl pkey -in "$run/$1.key" -pubout -out "$run/$1.pub"
}

issue() {
	local name=$1 subject=$2
	shift 2
	mkdir -p "$(dirname "$run/$name")"
	openssl_req -CA "$run/ca.crt" -CAkey "$run/ca.key" -out "$run/$name.crt" -keyout "$run/$name.key" \
		-subj "$subject" -addext authorityKeyIdentifier=keyid "$@"
}

# An own configuration, since the system's would add the extensions of a CA to every certificate.
openssl_req() {
	openssl req -x509 -config <(printf '[req]\ndistinguished_name=dn\nstring_mask=utf8only\n[dn]\n') -utf8 \
		-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 \
		-addext subjectKeyIdentifier=hash "$@" 2>"$run/openssl.log" || fail_with_log "openssl failed" openssl
}

# A slash or plus sign would start another part of openssl's subject.
escape() {
	printf '%s' "$1" | sed 's|[\\/+]|\\&|g'
}

# kubeconfig NAME SERVER: prints one for the client certificate NAME, with all data inline
kubeconfig() {
	cat <<-END
		apiVersion: v1
		kind: Config
		current-context: perilune-test
		contexts:
		- name: perilune-test
		  context: {cluster: perilune-test, user: perilune-test}
		clusters:
		- name: perilune-test
		  cluster:
		    server: $2
		    certificate-authority-data: $(base64 -w0 "$run/ca.crt")
		users:
		- name: perilune-test
		  user:
		    client-certificate-data: $(base64 -w0 "$run/$1.crt")
		    client-key-data: $(base64 -w0 "$run/$1.key")
	END
}
