package gray

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// quorumTLS writes one self-signed certificate that all servers share, and
// returns the settings that make them use TLS between each other.
func quorumTLS(dir string) ([]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ensemble"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, &cert, &cert, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	trust, store := filepath.Join(dir, "trust.pem"), filepath.Join(dir, "key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	both := append(public[:len(public):len(public)], pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	return []string{
		"sslQuorum=true", "ssl.quorum.hostnameVerification=false",
		"ssl.quorum.keyStore.location=" + store, "ssl.quorum.keyStore.type=PEM",
		"ssl.quorum.trustStore.location=" + trust, "ssl.quorum.trustStore.type=PEM",
	}, errors.Join(os.WriteFile(trust, public, 0o600), os.WriteFile(store, both, 0o600))
}
