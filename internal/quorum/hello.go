package quorum

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Kind is the purpose of a connection between two servers.
type Kind uint8

// The kinds of stream.
const (
	Raft     Kind = iota + 1 // Raft's RPCs
	Forward                  // commands on their way to the leader
	Liveness                 // reports of the sessions that a server has heard from
	Probe                    // one question to a server that may not be a member yet
	Poll                     // a voter's standing, before an election
	Change                   // a reconfig requested by a client of another member
	kinds
)

var kindNames = [kinds]string{Raft: "raft", Forward: "forward", Liveness: "liveness", Probe: "probe", Poll: "poll", Change: "change"}

func (k Kind) String() string {
	if k > 0 && k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ClusterID identifies one ensemble for its whole life; all zero: not known yet. Its
// members know it, and use it to prove that they are members, so we must never log it.
type ClusterID [16]byte

// String returns the name of the ensemble, not the id.
func (c ClusterID) String() string { return c.Name().String() }

// Hash is the fingerprint of the list of servers in a configuration file.
type Hash [32]byte

func (h Hash) String() string { return hex.EncodeToString(h[:6]) }

// Identity is the description of a server in every handshake.
type Identity struct {
	ServerID string       // Raft's id: "3", or "3.1" for the first disk after the one that formed the ensemble
	Cluster  ClusterID    // zero until the server belongs to an ensemble; for a peer, zero until it has proved that it belongs to ours
	Ensemble EnsembleName // the server's name for its ensemble; zero until it belongs to one
	List     Hash         // hash of the servers in its configuration file; a handshake carries its first bytes
	Nonce    uint64       // random for every start of the process
	Beats    bool         // for an accepted caller: it understands working bytes on its stream (progress.go)
}

// Code is the answer to a handshake.
type Code uint8

// The answers.
const (
	Accepted       Code = iota
	WrongVersion        // the peers speak different versions of this protocol
	WrongCluster        // the peers belong to different ensembles
	WrongTarget         // the dialler meant another server
	WrongList           // neither belongs to an ensemble and their configuration files differ
	NotReady            // the server doesn't accept streams of this kind now
	wrongAnswer         // the answer can't be read
	NeedTLS             // the server speaks TLS only
	NoTLS               // the server speaks plaintext only
	BadCertificate      // the server doesn't accept the certificate
	NeedSASL            // the server accepts no connection without SASL
	NoSASL              // the server doesn't use SASL
	BadLogin            // the server doesn't accept the user or the password
	challenged          // not an answer yet: the challenge follows
	lastAnswerCode = challenged
)

// These codes are never sent. One side derives them from the other's behaviour.
const (
	CertificateRefused = lastAnswerCode + 1 + iota // the other side doesn't accept ours
	NoAgreement                                    // the two sides agree on no TLS parameters
	NoLogin                                        // the caller doesn't use SASL
	UnwantedLogin                                  // the caller uses SASL, this server doesn't
	LoginRefused                                   // the other side doesn't accept our user or password
	BadProof                                       // the other side doesn't know our password
	Impostor                                       // the other side names our ensemble and can't prove that it belongs to it
)

var codeNames = [...]string{"accepted", "speaks another version of the protocol", "belongs to another ensemble",
	"is another server than the one meant", "has a different list of servers in its configuration", "is not ready", "sent an invalid answer",
	"requires TLS, which this server does not use: set sslQuorum here too, or portUnification there",
	"does not use TLS, which this server requires: set sslQuorum there too, or portUnification here",
	"shows a certificate that is not accepted",
	"requires SASL by its quorum.auth.serverRequireSasl, which this server does not use: set quorum.auth.learnerRequireSasl here too, " +
		"or serverRequireSasl=false there",
	"does not accept SASL, which this server uses by its quorum.auth.learnerRequireSasl: set quorum.auth.enableSasl there too, " +
		"or learnerRequireSasl=false here",
	"shows a user or password that is not accepted", "asks for more",
	"does not accept our certificate", "agrees on no TLS connection",
	"does not use SASL, which this server requires by its quorum.auth.serverRequireSasl: set quorum.auth.learnerRequireSasl there too, " +
		"or serverRequireSasl=false here",
	"uses SASL by its quorum.auth.learnerRequireSasl, which this server does not accept: set quorum.auth.enableSasl here too, " +
		"or learnerRequireSasl=false there",
	"does not accept our user or password", "does not prove that it knows our password",
	"names our ensemble but does not prove that it belongs to it"}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// RefusedError explains why two servers don't talk to each other.
type RefusedError struct {
	Kind         Kind
	Addr         string
	To           string // the server that the dialler meant
	Code         Code
	Ours, Theirs Identity
	Incoming     bool  // the other side called
	Cause        error // set for some codes of TLS and SASL
}

func (e *RefusedError) Error() string {
	who := fmt.Sprintf("%s stream to server %s at %s", e.Kind, e.To, e.Addr)
	switch {
	case e.Incoming && e.Theirs.ServerID == "":
		who = "a server at " + e.Addr
	case e.To == "" && !e.Incoming: // any server
		who = fmt.Sprintf("%s stream to the server at %s", e.Kind, e.Addr)
	case e.Incoming:
		who = fmt.Sprintf("%s stream from server %s at %s", e.Kind, e.Theirs.ServerID, e.Addr)
	}
	switch {
	case e.Cause != nil:
		return fmt.Sprintf("%s: it %s: %v", who, e.Code, e.Cause)
	case e.Code >= NeedTLS:
		return fmt.Sprintf("%s: it %s", who, e.Code)
	}
	return fmt.Sprintf("%s: it %s (ours: server %s, ensemble %s, list %s; theirs: server %s, ensemble %s, list %s)",
		who, e.Code, e.Ours.ServerID, e.Ours.Ensemble, e.Ours.List, e.Theirs.ServerID, e.Theirs.Ensemble, e.Theirs.List)
}

// The handshake is one message each way, of a fixed size, so we don't have to limit any
// length:
//
//	magic[8] version u16 kind u8 code u8 from[32] to[32] ensemble[8] list[8] nonce u64 challenge[8] proof[16]
//
// Between members of one ensemble the dialler's proof follows (proof.go). The dialler's
// code is 0 or, if the dialler understands working bytes on its stream, beats. The
// answer repeats the kind and carries the code. See sasl.go for the handshake with
// SASL; a server that doesn't know SASL sees a different version and reports that.
const (
	magic       = "zkgopeer"
	version     = 1
	saslVersion = 2
	beats       = Code(1) // sent by a dialler
	idSize      = 32
	helloSize   = len(magic) + 2 + 1 + 1 + idSize + idSize + nameSize + listSize + 8 + challengeSize + proofSize
)

type hello struct {
	version uint16
	kind    Kind
	code    Code
	to      string
	from    Identity

	challenge challenge
	proof     proof // set in an answer
}

var (
	errMagic = errors.New("quorum: not a connection between servers of an ensemble")
	errHello = errors.New("quorum: malformed handshake")
)

func (h *hello) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, h.version)
	b = append(b, byte(h.kind), byte(h.code))
	b = appendID(b, h.from.ServerID)
	b = appendID(b, h.to)
	b = append(b, h.from.Ensemble[:]...)
	b = append(b, h.from.List[:listSize]...)
	b = binary.BigEndian.AppendUint64(b, h.from.Nonce)
	b = append(b, h.challenge[:]...)
	return append(b, h.proof[:]...)
}

func appendID(b []byte, id string) []byte {
	var field [idSize]byte
	copy(field[1:], id)
	field[0] = byte(min(len(id), idSize-1))
	return append(b, field[:]...)
}

func (h *hello) decode(b []byte) error {
	if len(b) != helloSize || string(b[:len(magic)]) != magic {
		return errMagic
	}
	b = b[len(magic):]
	h.version, h.kind, h.code = binary.BigEndian.Uint16(b), Kind(b[2]), Code(b[3])
	b = b[4:]
	var err error
	if h.from.ServerID, err = decodeID(b[:idSize]); err != nil {
		return err
	}
	if h.to, err = decodeID(b[idSize : 2*idSize]); err != nil {
		return err
	}
	b = b[2*idSize:]
	copy(h.from.Ensemble[:], b)
	b = b[nameSize:]
	copy(h.from.List[:listSize], b)
	b = b[listSize:]
	h.from.Nonce = binary.BigEndian.Uint64(b)
	copy(h.challenge[:], b[8:])
	copy(h.proof[:], b[8+challengeSize:])
	if h.known() && (h.kind == 0 || h.kind >= kinds || h.code > lastAnswerCode) {
		return errHello
	}
	return nil
}

// known reports whether this server understands the version of h.
func (h *hello) known() bool { return h.version == version || h.version == saslVersion }

// decodeID accepts only digits and dots, because we write ids to logs.
func decodeID(b []byte) (string, error) {
	n := int(b[0])
	if n >= idSize {
		return "", errHello
	}
	for i, c := range b[1:] {
		if i < n && c != '.' && (c < '0' || c > '9') || i >= n && c != 0 {
			return "", errHello
		}
	}
	return string(b[1 : 1+n]), nil
}

func readHello(c net.Conn, by time.Time) (hello, error) {
	var b [helloSize]byte
	var h hello
	if err := c.SetReadDeadline(by); err != nil {
		return h, err
	}
	// We read the magic first, so that we don't wait for the rest from a peer that doesn't
	// speak this protocol.
	if _, err := io.ReadFull(c, b[:len(magic)]); err != nil {
		return h, err
	}
	if string(b[:len(magic)]) != magic {
		return h, errMagic
	}
	if _, err := io.ReadFull(c, b[len(magic):]); err != nil {
		return h, err
	}
	if err := h.decode(b[:]); err != nil {
		return h, err
	}
	return h, c.SetReadDeadline(time.Time{})
}

func writeHello(c net.Conn, h *hello, by time.Time) error {
	return write(c, h.append(make([]byte, 0, helloSize)), by)
}

// judge returns a server's answer to a handshake. Both sides apply it, each to the
// other's message.
//
// A stream of Raft or of commands needs two members of one ensemble, and exactly the
// server that the dialler meant: a server with a wiped disk is a different server.
// Servers use probes to find such mismatches, so we refuse a probe only if both servers
// are still waiting for their ensembles to form and their lists of servers differ.
func judge(kind Kind, ours, theirs Identity, meant string, is string) Code {
	none := EnsembleName{}
	if kind == Probe {
		if ours.Ensemble == none && theirs.Ensemble == none && ours.List != theirs.List {
			return WrongList
		}
		return Accepted
	}
	if ours.Ensemble == none || theirs.Ensemble == none {
		return NotReady
	}
	if ours.Ensemble != theirs.Ensemble {
		return WrongCluster
	}
	if meant != is {
		return WrongTarget
	}
	return Accepted
}

// HashOf returns the hash of a canonical form.
func HashOf(b []byte) Hash { return sha256.Sum256(b) }

// MarshalText makes ids readable in files.
func (c ClusterID) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(c[:])), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *ClusterID) UnmarshalText(b []byte) error { return decodeHex(c[:], b) }

// MarshalText makes hashes readable in files.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(b []byte) error { return decodeHex(h[:], b) }

func decodeHex(dst, src []byte) error {
	if len(src) != hex.EncodedLen(len(dst)) {
		return fmt.Errorf("%d hex digits, want %d", len(src), hex.EncodedLen(len(dst)))
	}
	_, err := hex.Decode(dst, src)
	return err
}
