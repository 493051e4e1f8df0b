package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

// signer signs with a user's OpenPGP key.
type signer struct {
	entity *openpgp.Entity
	config *packet.Config
}

// newSigner reads the private key, armored or not. Signatures are dated like the commit, and
// have no random parts, so they are reproducible with keys of kind Ed25519 and RSA.
func newSigner(keyFile, passphraseFile string, at time.Time) (*signer, error) {
	b, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	keys, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(b))
	if err != nil {
		if keys, err = openpgp.ReadKeyRing(bytes.NewReader(b)); err != nil {
			return nil, fmt.Errorf("%s: no OpenPGP key (gpg --export-secret-keys --armor writes one): %w", keyFile, err)
		}
	}
	if len(keys) != 1 || keys[0].PrivateKey == nil {
		return nil, fmt.Errorf("%s: want one private key, have %d keys", keyFile, len(keys))
	}
	s := &signer{entity: keys[0]}
	if s.entity.PrivateKey.Encrypted {
		if passphraseFile == "" {
			return nil, fmt.Errorf("%s has a passphrase: give its file with -passphrase-file", keyFile)
		}
		words, err := os.ReadFile(passphraseFile)
		if err != nil {
			return nil, err
		}
		if err := s.entity.DecryptPrivateKeys(bytes.TrimRight(words, "\r\n")); err != nil {
			return nil, fmt.Errorf("%s: the passphrase in %s is wrong: %w", keyFile, passphraseFile, err)
		}
	}
	// A signature can't be older than its key.
	if created := s.entity.PrivateKey.CreationTime; created.After(at) {
		at = created
	}
	random := false
	s.config = &packet.Config{Time: func() time.Time { return at }, NonDeterministicSignaturesViaNotation: &random}
	if _, ok := s.entity.SigningKey(at); !ok {
		return nil, fmt.Errorf("%s: the key can't sign on %s", keyFile, at.Format(time.DateOnly))
	}
	return s, nil
}

// publicKeyFile is the name of the file with the public key, which gpg and Helm read.
const publicKeyFile = "release-key.gpg"

// sign signs the checksums, which cover every file, and the Helm chart, because Helm verifies the
// chart's signature. It adds the public key.
func (r *release) sign(s *signer) error {
	var public bytes.Buffer
	err := s.entity.Serialize(&public)
	if err = errors.Join(err, os.WriteFile(filepath.Join(r.out, publicKeyFile), public.Bytes(), 0o644)); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&b, s.entity, bytes.NewReader(sums), s.config); err != nil {
		return err
	}
	b.WriteByte('\n')
	if err := os.WriteFile(filepath.Join(r.out, "SHA256SUMS.asc"), b.Bytes(), 0o644); err != nil {
		return err
	}
	if r.chartYAML == nil {
		return nil
	}
	return r.signChart(s)
}

// signChart writes what helm verify reads: the chart's description and checksum, signed.
func (r *release) signChart(s *signer) error {
	sum, err := sha256File(filepath.Join(r.out, r.chartName()))
	if err != nil {
		return err
	}
	key, ok := s.entity.SigningKey(s.config.Now())
	if !ok {
		return errors.New("the key can't sign")
	}
	var b bytes.Buffer
	w, err := clearsign.Encode(&b, key.PrivateKey, s.config)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n...\nfiles:\n  %s: sha256:%s\n", bytes.TrimRight(r.chartYAML, "\n"), r.chartName(), sum)
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	_, err = io.WriteString(&b, "\n")
	return errors.Join(err, os.WriteFile(filepath.Join(r.out, r.chartName()+".prov"), b.Bytes(), 0o644))
}
