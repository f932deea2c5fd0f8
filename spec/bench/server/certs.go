package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// makeCerts writes ca.pem and a kubeconfig for the port, and returns what the server shows.
func makeCerts(dir string, port int) *tls.Config {
	ca, caKey := issue(nil, nil, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "bench-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	})
	leaf, key := issue(ca, caKey, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "bench"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})
	check(os.WriteFile(filepath.Join(dir, "ca.pem"), caPEM, 0o600))
	check(os.WriteFile(filepath.Join(dir, "kubeconfig"), kubeconfig(caPEM, port), 0o600))
	return &tls.Config{
		Certificates:                []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}},
		NextProtos:                  []string{"h2", "http/1.1"},
		DynamicRecordSizingDisabled: true,
	}
}

// issue makes a key and a certificate that the CA has signed, or itself where there is no CA.
func issue(ca *x509.Certificate, caKey *ecdsa.PrivateKey, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(0, 0, 1)
	if ca == nil {
		ca, caKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	check(err)
	cert, err := x509.ParseCertificate(der)
	check(err)
	return cert, key
}

func kubeconfig(ca []byte, port int) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: bench
contexts:
- name: bench
  context: {cluster: bench, user: bench, namespace: default}
clusters:
- name: bench
  cluster:
    server: https://127.0.0.1:%d
    certificate-authority-data: %s
users:
- name: bench
  user: {token: bench}
`, port, base64.StdEncoding.EncodeToString(ca))
}
