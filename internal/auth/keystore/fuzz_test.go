package keystore

import (
	"encoding/pem"
	"testing"
)

// FuzzStore checks that reading key and trust stores of every type returns a store or
// an error, and that a certificate always comes with a key.
func FuzzStore(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"), "password")
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{0x30, 0x80}}), "p")
	f.Add([]byte{0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0x7f, 0xff, 0xff, 0xff}, "password")
	f.Add([]byte{0x30, 0x82, 0xff, 0xff, 2, 1, 3}, "")
	f.Fuzz(func(t *testing.T, data []byte, password string) {
		if cert, err := keyFromPEM(data, password); err == nil && (cert.PrivateKey == nil || len(cert.Certificate) == 0) {
			t.Fatal("a key store without a key or a certificate has no error")
		}
		if cert, err := keyFromJKS(data, password); err == nil && (cert.PrivateKey == nil || len(cert.Certificate) == 0) {
			t.Fatal("a key store without a key or a certificate has no error")
		}
		if cert, err := keyFromPKCS12(data, password); err == nil && cert.PrivateKey == nil {
			t.Fatal("a key store without a key has no error")
		}
		_, _ = certsFromPEM(data)
		_, _ = trustFromPKCS12(data, password)
		_, _ = trustFromJKS(data, password)
	})
}
