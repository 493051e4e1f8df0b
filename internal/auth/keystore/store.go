package keystore

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	jks "github.com/pavlo-v-chernykh/keystore-go/v4"
	"github.com/youmark/pkcs8"
	"software.sslmate.com/src/go-pkcs12"

	"github.com/zkgo/zkgo/internal/smallfile"
)

// Store identifies a key store or a trust store.
type Store struct {
	Location     string
	Password     string
	PasswordPath string // a file with the password; takes precedence over Password
	Type         string // JKS, PEM or PKCS12; empty: by file extension
}

// The store formats.
const (
	typeJKS    = "JKS"
	typePEM    = "PEM"
	typePKCS12 = "PKCS12"
)

// kind returns the store's format as ZooKeeper determines it: by the setting or by
// the file extension.
func (s Store) kind() (string, error) {
	switch t := strings.ToUpper(s.Type); t {
	case typeJKS, typePEM, typePKCS12:
		return t, nil
	case "":
	default:
		return "", fmt.Errorf("%s: unsupported key store type %s: want JKS, PEM or PKCS12", s.Location, s.Type)
	}
	switch ext := strings.ToLower(filepath.Ext(s.Location)); ext {
	case ".jks":
		return typeJKS, nil
	case ".pem":
		return typePEM, nil
	case ".p12", ".pfx":
		return typePKCS12, nil
	}
	return "", fmt.Errorf("%s: the extension is none of .jks, .pem, .p12: set the type (ssl.keyStore.type, ssl.trustStore.type)", s.Location)
}

// Sniff returns s with the format detected from the content if neither Type nor the
// extension determines it. We use it for command lines, which have no flag for the format:
// e.g. CA files are often called ca.crt. In a configuration file, we follow ZooKeeper's
// rule.
func (s Store) Sniff() Store {
	if _, err := s.kind(); err == nil || s.Type != "" {
		return s
	}
	b, err := smallfile.Read(s.Location)
	switch {
	case err != nil: // the caller will read it again and report why
		s.Type = typePEM
	case bytes.HasPrefix(b, []byte{0xfe, 0xed, 0xfe, 0xed}):
		s.Type = typeJKS
	case bytes.HasPrefix(b, []byte{0x30}):
		s.Type = typePKCS12
	default:
		s.Type = typePEM
	}
	return s
}

// password returns the store's password.
func (s Store) password() (string, error) {
	if s.PasswordPath == "" {
		return s.Password, nil
	}
	b, err := smallfile.Read(s.PasswordPath)
	if err != nil {
		return "", fmt.Errorf("password of %s: %w", s.Location, err)
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// open reads the file, and returns it with its format and password.
func (s Store) open() (data []byte, kind, password string, err error) {
	if kind, err = s.kind(); err != nil {
		return nil, "", "", err
	}
	if password, err = s.password(); err != nil {
		return nil, "", "", err
	}
	data, err = smallfile.Read(s.Location)
	return data, kind, password, err
}

// Certificate reads the private key and its certificate chain.
func (s Store) Certificate() (tls.Certificate, error) {
	data, kind, password, err := s.open()
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("key store: %w", err)
	}
	var cert tls.Certificate
	switch kind {
	case typeJKS:
		cert, err = keyFromJKS(data, password)
	case typePKCS12:
		cert, err = keyFromPKCS12(data, password)
	default:
		cert, err = keyFromPEM(data, password)
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("key store %s: %w", s.Location, err)
	}
	return cert, nil
}

// Pool reads the trusted certificates.
func (s Store) Pool() (*x509.CertPool, error) {
	data, kind, password, err := s.open()
	if err != nil {
		return nil, fmt.Errorf("trust store: %w", err)
	}
	var certs []*x509.Certificate
	switch kind {
	case typeJKS:
		certs, err = trustFromJKS(data, password)
	case typePKCS12:
		certs, err = trustFromPKCS12(data, password)
	default:
		certs, err = certsFromPEM(data)
	}
	if err == nil && len(certs) == 0 {
		err = errors.New("contains no certificate")
	}
	if err != nil {
		return nil, fmt.Errorf("trust store %s: %w", s.Location, err)
	}
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool, nil
}

// certificate combines a key and its chain, and checks that they match.
func certificate(key any, chain [][]byte) (tls.Certificate, error) {
	signer, ok := key.(crypto.Signer)
	if !ok {
		return tls.Certificate{}, fmt.Errorf("a key of type %T cannot sign", key)
	}
	if len(chain) == 0 {
		return tls.Certificate{}, errors.New("the key has no certificate")
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return tls.Certificate{}, err
	}
	if !belongs(signer, leaf) {
		return tls.Certificate{}, fmt.Errorf("the key does not belong to the certificate of %s", leaf.Subject)
	}
	return tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}

// belongs reports whether a certificate is the key's.
func belongs(key any, c *x509.Certificate) bool {
	signer, signs := key.(crypto.Signer)
	pub, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return signs && ok && pub.Equal(signer.Public())
}

// keyFromPEM reads a key and a certificate chain from one file.
func keyFromPEM(data []byte, password string) (tls.Certificate, error) {
	var chain [][]byte
	var key any
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		var err error
		switch {
		case block.Type == "CERTIFICATE":
			chain = append(chain, block.Bytes)
		case block.Type == "ENCRYPTED PRIVATE KEY":
			key, err = decrypt(block.Bytes, password)
		case block.Headers["DEK-Info"] != "":
			err = errors.New("the private key is encrypted in OpenSSL's old format, which is not safe: convert it with `openssl pkcs8 -topk8 -v2 aes-256-cbc`")
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			key, err = parseKey(block.Bytes)
		}
		if err != nil {
			return tls.Certificate{}, err
		}
	}
	if key == nil {
		return tls.Certificate{}, errors.New("contains no private key")
	}
	return certificate(key, chain)
}

// decrypt decrypts a PKCS8 private key.
func decrypt(der []byte, password string) (any, error) {
	if password == "" {
		return nil, errors.New("the private key is encrypted, but no password is set")
	}
	key, err := pkcs8.ParsePKCS8PrivateKey(der, []byte(password))
	if err != nil {
		return nil, fmt.Errorf("the private key cannot be decrypted: wrong password, or not PBES2 with AES or 3DES: %w", err)
	}
	return key, nil
}

// parseKey parses a private key in any of the three encodings.
func parseKey(der []byte) (any, error) {
	if k, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		return k, nil
	}
	if k, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return k, nil
	}
	k, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, errors.New("the private key is neither PKCS8 nor PKCS1 nor SEC1")
	}
	return k, nil
}

// certsFromPEM reads all certificates of a PEM file.
func certsFromPEM(data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certs)+1, err)
		}
		certs = append(certs, c)
	}
	return certs, nil
}

// keyFromPKCS12 reads the key and its chain.
func keyFromPKCS12(data []byte, password string) (tls.Certificate, error) {
	key, leaf, more, err := pkcs12.DecodeChain(data, password)
	if err != nil {
		return tls.Certificate{}, err
	}
	// Java stores the certificates in the order in which they were imported, so a CA's
	// certificate may be the first.
	all := append([]*x509.Certificate{leaf}, more...)
	if own := slices.IndexFunc(all, func(c *x509.Certificate) bool { return belongs(key, c) }); own > 0 {
		all = append([]*x509.Certificate{all[own]}, slices.Delete(slices.Clone(all), own, own+1)...)
	}
	chain := make([][]byte, len(all))
	for i, c := range all {
		chain[i] = c.Raw
	}
	return certificate(key, chain)
}

// trustFromPKCS12 reads the certificates of a trust store, or of a key store that is
// used as a trust store.
func trustFromPKCS12(data []byte, password string) ([]*x509.Certificate, error) {
	certs, err := pkcs12.DecodeTrustStore(data, password)
	if err == nil {
		return certs, nil
	}
	_, leaf, more, chainErr := pkcs12.DecodeChain(data, password)
	if chainErr != nil {
		return nil, err
	}
	return append(more, leaf), nil
}

// loadJKS opens a Java key store.
func loadJKS(data []byte, password string) (jks.KeyStore, error) {
	ks := jks.New(jks.WithOrderedAliases())
	if err := ks.Load(bytes.NewReader(data), []byte(password)); err != nil {
		return ks, fmt.Errorf("wrong password or damaged: %w", err)
	}
	return ks, nil
}

// keyFromJKS reads the first private key. Since version 9, Java writes PKCS12 to
// files with the extension .jks, so keyFromJKS accepts that format, too.
func keyFromJKS(data []byte, password string) (tls.Certificate, error) {
	if isDER(data) {
		return keyFromPKCS12(data, password)
	}
	ks, err := loadJKS(data, password)
	if err != nil {
		return tls.Certificate{}, err
	}
	for _, alias := range ks.Aliases() {
		if !ks.IsPrivateKeyEntry(alias) {
			continue
		}
		e, err := ks.GetPrivateKeyEntry(alias, []byte(password))
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("entry %q: %w", alias, err)
		}
		key, err := parseKey(e.PrivateKey)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("entry %q: %w", alias, err)
		}
		var chain [][]byte
		for _, c := range e.CertificateChain {
			chain = append(chain, c.Content)
		}
		return certificate(key, chain)
	}
	return tls.Certificate{}, errors.New("contains no private key")
}

// trustFromJKS reads the trusted certificates and the certificates of keys.
func trustFromJKS(data []byte, password string) ([]*x509.Certificate, error) {
	if isDER(data) {
		return trustFromPKCS12(data, password)
	}
	ks, err := loadJKS(data, password)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for _, alias := range ks.Aliases() {
		raw, err := entryCerts(ks, alias)
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", alias, err)
		}
		for _, r := range raw {
			c, err := x509.ParseCertificate(r.Content)
			if err != nil {
				return nil, fmt.Errorf("entry %q: %w", alias, err)
			}
			certs = append(certs, c)
		}
	}
	return certs, nil
}

// entryCerts returns the certificates of an entry of any type.
func entryCerts(ks jks.KeyStore, alias string) ([]jks.Certificate, error) {
	if ks.IsTrustedCertificateEntry(alias) {
		e, err := ks.GetTrustedCertificateEntry(alias)
		return []jks.Certificate{e.Certificate}, err
	}
	return ks.GetPrivateKeyEntryCertificateChain(alias)
}

// isDER reports whether data starts with an ASN.1 sequence, like PKCS12.
func isDER(data []byte) bool { return len(data) > 0 && data[0] == 0x30 }
