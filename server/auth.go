package server

import (
	"crypto/md5" //nolint:gosec // see newDigest
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// mayNot reports whether the client must authenticate before op.
func (cs *clientSession) mayNot(op proto.Op) bool {
	need := cs.c.s.cfg.Auth.Require
	if len(need) == 0 || op == proto.OpAuth || op == proto.OpSASL {
		return false
	}
	return !slices.ContainsFunc(cs.identities(), func(id proto.ID) bool { return slices.Contains(need, id.Scheme) })
}

// authenticate answers auth. It doesn't wait for the requests before it; those after it
// have the identity.
func (c *conn) authenticate(w *work, h proto.RequestHeader, body []byte) bool {
	var req proto.AuthPacket
	r := proto.NewReader(body)
	if req.Decode(&r); r.Err() != nil {
		return c.garbled(r.Err())
	}
	if req.Scheme == schemeOptions {
		if !c.session.setOption(string(req.Auth)) {
			return c.turnAway(w, h, proto.ErrAuthFailed)
		}
		c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid}, nil)
		return true
	}
	ids, ok := c.prove(w, &req)
	if !ok {
		c.s.stats.AuthFailed.Add(1)
		c.complain("authentication failed", "scheme", req.Scheme)
		if req.Scheme == schemeEnsemble && c.s.cfg.ensembleScheme() {
			return false // the client should try another server
		}
		return c.turnAway(w, h, proto.ErrAuthFailed)
	}
	if !c.session.addIdentities(ids...) {
		return c.turnAway(w, h, proto.ErrAuthFailed)
	}
	c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid}, nil)
	return true
}

// schemeEnsemble is the scheme that a client uses to name the ensemble it wants.
const schemeEnsemble = "ensemble"

// identify returns the identities that an auth packet proves.
func (s *Server) identify(req *proto.AuthPacket) ([]proto.ID, bool) {
	switch req.Scheme {
	case "ip":
		return nil, true
	case "digest":
		if s.cfg.Auth.DigestDisabled || req.Auth == nil {
			return nil, false
		}
		id, err := digestID(s.cfg.Auth.DigestAlg, proto.JavaString(req.Auth))
		if err != nil {
			return nil, false
		}
		digest := proto.ID{Scheme: "digest", ID: id}
		if s.cfg.Auth.SuperDigest != "" && id == s.cfg.Auth.SuperDigest {
			return []proto.ID{{Scheme: schemeSuper}, digest}, true
		}
		return []proto.ID{digest}, true
	case schemeEnsemble:
		return nil, s.cfg.ensembleScheme() && s.knowsEnsemble(string(req.Auth))
	case schemeKey:
		if s.cfg.Auth.KeyScheme && s.fitsKey(req.Auth) {
			return []proto.ID{{Scheme: schemeKey}}, true
		}
	}
	return nil, false
}

// ensembleScheme reports whether a client may name the ensemble that it wants.
func (c *Config) ensembleScheme() bool { return c.Auth.EnsembleScheme || len(c.Auth.EnsembleNames) > 0 }

// knowsEnsemble reports whether this is the ensemble that a client wants. The check
// passes if the client names no ensemble, or if the server has no name.
func (s *Server) knowsEnsemble(name string) bool {
	switch names := s.cfg.Auth.EnsembleNames; {
	case name == "" || len(names) == 0:
		s.stats.EnsembleSkip.Add(1)
	case slices.Contains(names, name):
		s.stats.EnsembleSuccess.Add(1)
	default:
		s.stats.EnsembleFail.Add(1)
		return false
	}
	return true
}

// schemeKey is the scheme of ZooKeeper's KeyAuthenticationProvider, an example of a
// provider that reads the tree.
const schemeKey = "key"

// keyPath is the znode that holds the key: a client must present a multiple of it.
const keyPath = "/key"

// fitsKey reports whether auth satisfies the scheme key: it is a multiple of the number
// in /key, or /key doesn't exist.
func (s *Server) fitsKey(auth []byte) bool {
	s.tree.RLock()
	n := s.tree.Get(keyPath)
	var data string
	if n != nil {
		data = string(n.Data())
	}
	s.tree.RUnlock()
	if n == nil {
		return true
	}
	key, err := strconv.ParseInt(data, 10, 32)
	if err != nil {
		return false
	}
	number, err := strconv.ParseInt(string(auth), 10, 32)
	return err == nil && (key == 0 || number%key == 0)
}

// digestID returns user:base64(hash(user:password)); without a colon, all of auth is
// the user.
func digestID(alg, auth string) (string, error) {
	h := newDigest(alg)
	if h == nil {
		return "", fmt.Errorf("digest algorithm %q is unknown: want for instance SHA1, SHA-256, SHA-512 or SHA3-256", alg)
	}
	h.Write([]byte(auth))
	user, _, _ := strings.Cut(auth, ":")
	return user + ":" + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// newDigest returns the hash that Java calls alg, nil if there is none.
func newDigest(alg string) hash.Hash {
	switch strings.ToUpper(alg) {
	case "MD5":
		return md5.New() //nolint:gosec // existing ACLs may use it
	case "SHA", "SHA1", "SHA-1":
		return sha1.New()
	case "SHA-224":
		return sha256.New224()
	case "SHA-256":
		return sha256.New()
	case "SHA-384":
		return sha512.New384()
	case "SHA-512":
		return sha512.New()
	case "SHA-512/224":
		return sha512.New512_224()
	case "SHA-512/256":
		return sha512.New512_256()
	case "SHA3-224":
		return sha3.New224()
	case "SHA3-256":
		return sha3.New256()
	case "SHA3-384":
		return sha3.New384()
	case "SHA3-512":
		return sha3.New512()
	}
	return nil
}

// whoAmI lists the identities without their secrets.
func whoAmI(q *request, out []byte) []byte {
	resp := proto.WhoAmIResponse{IDs: []proto.ID{}}
	for _, id := range q.ids {
		switch id.Scheme {
		case "digest":
			id.ID, _, _ = strings.Cut(id.ID, ":")
		case schemeSuper:
			id.ID = "" // a super identity from a certificate has a name, which ZooKeeper doesn't show
		}
		resp.IDs = append(resp.IDs, id)
	}
	return resp.Append(out)
}
