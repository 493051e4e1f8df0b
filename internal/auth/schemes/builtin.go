package schemes

import (
	"slices"
	"strconv"

	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
)

// KeyPath is the znode with the key of the scheme key. A client must present a multiple of
// this number.
const KeyPath = "/key"

// Builtin proves identities by ZooKeeper's own schemes.
type Builtin struct {
	DigestDisabled         bool
	DigestAlg, SuperDigest string
	Ensemble               bool     // a client may name the ensemble that it wants
	EnsembleNames          []string // of this ensemble; empty: any
	// Key returns the data of the znode at KeyPath, if it exists. Nil: the scheme key is
	// disabled.
	Key   func() (data string, ok bool)
	Stats *stats.Server
}

// Identify returns the identities that an auth packet proves.
func (b *Builtin) Identify(req *proto.AuthPacket) ([]proto.ID, bool) {
	switch req.Scheme {
	case "ip":
		return nil, true
	case Digest:
		if b.DigestDisabled || req.Auth == nil {
			return nil, false
		}
		id, err := DigestID(b.DigestAlg, proto.JavaString(req.Auth))
		if err != nil {
			return nil, false
		}
		digest := proto.ID{Scheme: Digest, ID: id}
		if b.SuperDigest != "" && id == b.SuperDigest {
			return []proto.ID{{Scheme: Super}, digest}, true
		}
		return []proto.ID{digest}, true
	case Ensemble:
		return nil, b.Ensemble && b.knowsEnsemble(string(req.Auth))
	case Key:
		if b.Key != nil && fitsKey(b.Key, req.Auth) {
			return []proto.ID{{Scheme: Key}}, true
		}
	}
	return nil, false
}

// knowsEnsemble reports whether this is the ensemble that a client wants. The check
// passes if the client names no ensemble, or if the server has no name.
func (b *Builtin) knowsEnsemble(name string) bool {
	switch names := b.EnsembleNames; {
	case name == "" || len(names) == 0:
		b.Stats.EnsembleSkip.Add(1)
	case slices.Contains(names, name):
		b.Stats.EnsembleSuccess.Add(1)
	default:
		b.Stats.EnsembleFail.Add(1)
		return false
	}
	return true
}

// fitsKey reports whether auth satisfies the scheme key: it is a multiple of the number that
// key returns, or key returns none.
func fitsKey(key func() (data string, ok bool), auth []byte) bool {
	data, ok := key()
	if !ok {
		return true
	}
	divisor, err := strconv.ParseInt(data, 10, 32)
	if err != nil {
		return false
	}
	number, err := strconv.ParseInt(string(auth), 10, 32)
	return err == nil && (divisor == 0 || number%divisor == 0)
}
