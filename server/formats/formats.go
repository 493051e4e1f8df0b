// Package formats reads key stores and trust stores in PEM, PKCS12 and JKS files, and reads
// and writes the state as a file of ZooKeeper. Only a program that imports it links the
// libraries for these formats.
//
// It imports server for the interface, internal/auth/keystore, internal/offline/backup,
// internal/offline/zkfiles, session and tree.
package formats

import (
	"crypto/tls"
	"io"

	"github.com/zkgo/zkgo/internal/auth/keystore"
	"github.com/zkgo/zkgo/internal/offline/backup"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// All returns every format that zkgo knows, for server.Config.Env.Formats and for
// server.LoadConfig.
func All() server.Formats {
	return server.Formats{
		ServerTLS: func(k server.KeyStores, warn func(error)) (*tls.Config, error) {
			return keystore.ServerConfig(options(k), warn)
		},
		PeerTLS: func(k server.KeyStores, warn func(error)) (func() *tls.Config, error) {
			return keystore.PeerConfig(options(k), warn)
		},
		WriteState: func(w io.Writer, snap *tree.Snapshot, sessions *session.Table) error {
			return zkfiles.WriteSnapshot(w, snap, sessions, zkfiles.None)
		},
		WriteBody: zkfiles.WriteBody,
		ReadState: backup.ReadState,
	}
}

// options returns the settings for package keystore.
func options(k server.KeyStores) keystore.Options {
	return keystore.Options{
		Key: keystore.Store(k.Key), Trust: keystore.Store(k.Trust), ClientAuth: k.ClientAuth, Protocols: k.Protocols, CipherSuites: k.CipherSuites,
		Reload: k.Reload, CRL: k.CRL, OCSP: k.OCSP,
	}
}
