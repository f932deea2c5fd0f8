package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

type keyPair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// makeCerts writes a CA, and a server's and a client's certificate of it, unless they are there.
func makeCerts(dir string, renew bool) {
	if _, err := os.Stat(filepath.Join(dir, "cert.pem")); err == nil && !renew {
		return
	}
	ca := issue(dir, "ca.pem", "ca.key", nil, &x509.Certificate{
		Subject:               pkix.Name{CommonName: "h2server-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	})
	issue(dir, "client.pem", "client.key", ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "client"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	issue(dir, "cert.pem", "key.pem", ca, &x509.Certificate{
		Subject:     pkix.Name{CommonName: "h2server"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// issue makes a key and a certificate that the CA has signed, or itself where there is no CA.
func issue(dir, certFile, keyFile string, ca *keyPair, template *x509.Certificate) *keyPair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	if ca == nil {
		ca = &keyPair{template, key}
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	check(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	check(err)
	writePEM(filepath.Join(dir, keyFile), "PRIVATE KEY", keyDER)
	writePEM(filepath.Join(dir, certFile), "CERTIFICATE", certDER)
	cert, err := x509.ParseCertificate(certDER)
	check(err)
	return &keyPair{cert, key}
}

func writePEM(file, kind string, der []byte) {
	check(os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// loadCerts sets what new connections get; the old ones keep what they have.
func (s *server) loadCerts(dir, clientCA string) error {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	if clientCA != "" {
		pem, err := os.ReadFile(clientCA)
		if err != nil {
			return err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: no certificate in it", clientCA)
		}
	}
	s.tls.Store(config)
	return nil
}
