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

// Kind says what a connection between two servers carries.
type Kind uint8

// The kinds of stream.
const (
	Raft     Kind = iota + 1 // Raft's RPCs
	Forward                  // commands on their way to the leader
	Liveness                 // which sessions were heard from
	Probe                    // one question to a server that may not be a member yet
	Canvass                  // how a voter stands, before an election
	Change                   // a reconfig that a client of another member asks for
	kinds
)

var kindNames = [kinds]string{Raft: "raft", Forward: "forward", Liveness: "liveness", Probe: "probe", Canvass: "canvass", Change: "change"}

func (k Kind) String() string {
	if k > 0 && k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ClusterID identifies one ensemble for its whole life; all zero: not known yet. Its
// members know it, and prove by it that they are members. It is in no log.
type ClusterID [16]byte

// String returns the name of the ensemble, not the id.
func (c ClusterID) String() string { return c.Name().String() }

// Hash is the fingerprint of the list of servers in a configuration file.
type Hash [32]byte

func (h Hash) String() string { return hex.EncodeToString(h[:6]) }

// Identity is what a server says about itself in every handshake.
type Identity struct {
	ServerID string       // Raft's: "3", or "3.1" for the first disk after the one that formed the ensemble
	Cluster  ClusterID    // zero until the server belongs to an ensemble; of a peer, zero until it has proved to belong to ours
	Ensemble EnsembleName // as the server names its ensemble; zero until it belongs to one
	List     Hash         // of the servers in its configuration file; a handshake has the first bytes of it
	Nonce    uint64       // random for every start of the process
	Beats    bool         // of an accepted caller: it understands signs of life on its stream (progress.go)
}

// Code is the answer to a handshake.
type Code uint8

// The answers.
const (
	Accepted       Code = iota
	WrongVersion        // the peers speak different versions of this protocol
	WrongCluster        // the peers belong to different ensembles
	WrongTarget         // the dialled server is not who the dialler takes it for
	WrongList           // neither belongs to an ensemble and their configuration files differ
	NotReady            // the server does not take streams of this kind now
	wrongAnswer         // the answer cannot be read
	NeedTLS             // the server speaks TLS only
	NoTLS               // the server speaks plaintext only
	BadCertificate      // the certificate is not accepted
	NeedSASL            // the server lets nobody in without SASL
	NoSASL              // the server does not take SASL
	BadLogin            // the user or the password is not accepted
	challenged          // no answer yet: the challenge follows
	lastAnswerCode = challenged
)

// What is never sent: it is what one side knows of the other.
const (
	CertificateRefused = lastAnswerCode + 1 + iota // the other side does not accept ours
	NoAgreement                                    // on how to speak TLS
	NoLogin                                        // the caller does not use SASL
	UnwantedLogin                                  // the caller uses SASL, this server does not
	LoginRefused                                   // the other side does not accept our user or password
	BadProof                                       // the other side does not know our password
	Impostor                                       // the other side names our ensemble and cannot prove that it belongs to it
)

var codeNames = [...]string{"accepted", "speaks another version of the protocol", "belongs to another ensemble",
	"is another server than the one meant", "has a different list of servers in its configuration", "is not ready", "answered with nonsense",
	"demands TLS, which this server does not speak: set sslQuorum here too, or portUnification there",
	"does not speak TLS, which this server demands: set sslQuorum there too, or portUnification here",
	"shows a certificate that is not accepted",
	"demands SASL by its quorum.auth.serverRequireSasl, which this server does not use: set quorum.auth.learnerRequireSasl here too, " +
		"or serverRequireSasl=false there",
	"does not take SASL, which this server uses by its quorum.auth.learnerRequireSasl: set quorum.auth.enableSasl there too, " +
		"or learnerRequireSasl=false here",
	"shows a user or password that is not accepted", "asks for more",
	"does not accept our certificate", "agrees on no TLS connection",
	"does not use SASL, which this server demands by its quorum.auth.serverRequireSasl: set quorum.auth.learnerRequireSasl there too, " +
		"or serverRequireSasl=false here",
	"uses SASL by its quorum.auth.learnerRequireSasl, which this server does not take: set quorum.auth.enableSasl here too, " +
		"or learnerRequireSasl=false there",
	"does not accept our user or password", "does not prove that it knows our password",
	"names our ensemble and does not prove that it belongs to it"}

func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// RefusedError says why two servers do not talk to each other.
type RefusedError struct {
	Kind         Kind
	Addr         string
	To           string // the server that was meant
	Code         Code
	Ours, Theirs Identity
	Incoming     bool  // the other side called
	Cause        error // of some codes that have to do with TLS and SASL
}

func (e *RefusedError) Error() string {
	who := fmt.Sprintf("%s stream to server %s at %s", e.Kind, e.To, e.Addr)
	switch {
	case e.Incoming && e.Theirs.ServerID == "":
		who = "a server at " + e.Addr
	case e.To == "" && !e.Incoming: // whichever it is
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

// The handshake is one message each way, of a fixed size so that there is
// nothing to bound:
//
//	magic[8] version u16 kind u8 code u8 from[32] to[32] ensemble[8] list[8] nonce u64 challenge[8] proof[16]
//
// Between members of one ensemble the dialler's proof follows (proof.go).
// The dialler's code is 0 or, from a server that understands signs of life on its
// stream, beats; the answer repeats the kind and has the code. How it
// goes where SASL is used is in sasl.go; a server that has never heard of that
// finds another version there, and says so.
const (
	magic       = "zkgopeer"
	version     = 1
	saslVersion = 2
	beats       = Code(1) // of a dialler
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
	proof     proof // of an answer
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

// known says whether this server understands what such a message means.
func (h *hello) known() bool { return h.version == version || h.version == saslVersion }

// decodeID takes digits and dots only, since ids end up in logs.
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
	// The magic first: what does not speak this protocol is not waited for.
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

// judge is what a server answers to a handshake; both sides apply it, each to
// what the other said.
//
// Raft and the streams of commands need two members of one ensemble, and the
// very server that was meant: a server whose disk was wiped is another one. A
// probe is how servers find out, so it only ends where both still wait for
// their ensemble to form and wait for different ones.
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

// HashOf is the fingerprint of a canonical form.
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
